"""Wider networks for the race of widths: which spaces widen together, what that costs, and their first weights."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from topiarist.models.copying import copied
from topiarist.randomness import generator, isolated
from topiarist.surgery import layers
from topiarist.surgery.choice.costs import Costs
from topiarist.surgery.choice.evidence import blind_spot
from topiarist.tracing import Anatomy

NEARLY_FREE = 0.25  # of the parameters and of the work: what widening the spaces that are raced first may cost in all

Factors = Mapping[str, int]


def groups_of(costs: Costs, model: nn.Module, found: Anatomy) -> list[tuple[str, ...]]:
    """Return the spaces to widen first, which all together are nearly free to double, and then all spaces.

    Spaces that more than plain layers sees, as those of queries, or that a norm runs over are left as they are.
    Of 3072-10-10-10-10 the two inner layers come first: doubled, they cost 2 % more parameters, the first layer 99 %.
    """
    seen = [name for name, space in found.free.items() if blind_spot(space) is None]
    every = tuple(name for name in seen if learns(model, found, name))
    cheap: list[str] = []
    for name in sorted(every, key=lambda each: more(costs, {each: 2})):
        if more(costs, dict.fromkeys([*cheap, name], 2)) <= NEARLY_FREE:
            cheap.append(name)
    return [tuple(cheap), every] if 0 < len(cheap) < len(every) else [every] if every else []


def more(costs: Costs, factors: Factors) -> float:
    """Return by which share parameters or multiply-accumulates grow, the larger, with so many times the units."""
    widths = {name: factor * costs.widths[name] for name, factor in factors.items()}
    parameters = costs.parameters(widths) / max(costs.parameters({}), 1)
    return max(parameters, costs.macs(widths) / max(costs.macs({}), 1)) - 1


def learns(model: nn.Module, found: Anatomy, space: str) -> bool:
    """Return whether the layers that write a space are trained: fresh units of others would stay as they are drawn."""
    return all(
        getattr(model.get_submodule(place.module), name).requires_grad
        for place in found.spaces[space].producers
        for name, _ in place.tensors
    )


def forgotten(model: nn.Module, seed: int) -> nn.Module:
    """Return a copy of a trained network with the initial weights that its layers draw by themselves."""
    fresh = copied(model)
    with isolated(seed):
        for module in fresh.modules():
            reset = getattr(module, "reset_parameters", None)
            if callable(reset):
                reset()
    return fresh


def redraw(model: nn.Module, like: nn.Module, seed: int) -> None:
    """Draw the kernels of a widened network anew, in place, with the spread that a network of its kind has.

    A kernel that reads n times the inputs has 1 / √n of the spread, so that what it gives keeps its size. The weights
    that the narrow network has stay, so scaled, and the seed is the same for all widths: networks that have much in
    common are compared with less noise.
    """
    for name, module in model.named_modules():
        weight, usual = (getattr(each, "weight", None) for each in (module, like.get_submodule(name)))
        if not isinstance(weight, Tensor) or not isinstance(usual, Tensor) or weight.ndim < 2:
            continue
        scale = math.sqrt(usual[0].numel() / weight[0].numel())
        drawn = torch.randn(weight.shape, generator=generator(seed, name), dtype=torch.float64).to(weight)
        drawn *= float(usual.detach().std()) * scale
        drawn[tuple(slice(length) for length in usual.shape)] = scale * usual.detach()
        layers.put(module, "weight", drawn)
