"""Masks: weights that stay zero in anybody's training loop, and units that are gone for a moment without a cut."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy
import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from topiarist.errors import ModelError
from topiarist.surgery.reexpressions import check_units, free_space
from topiarist.surgery.unit_numbers import Units, unit_numbers
from topiarist.surgery.watching import first_of
from topiarist.tracing import Inputs, Place, anatomy


class Masks:
    """Weight masks of a network, by the name of the parameter; False is a weight that stays zero.

    Call `step()` after each step of the optimizer, as in `loss.backward(); optimizer.step(); masks.step()`.
    """

    def __init__(self, model: nn.Module, masks: Mapping[str, Tensor]) -> None:
        parameters = dict(model.named_parameters())
        for name, mask in masks.items():
            if name not in parameters:
                raise ModelError(f"the network has no parameter '{name}'")
            if mask.shape != parameters[name].shape:
                asked, found = tuple(parameters[name].shape), tuple(mask.shape)
                raise ModelError(f"the mask of '{name}' must have shape {asked}; found {found}")
        self.masks = {
            name: mask.detach().to(parameters[name].device, torch.bool, copy=True) for name, mask in masks.items()
        }
        self._owners = [(owner_of(model, name), name.rpartition(".")[2]) for name in self.masks]
        self._weights: list[Tensor] = []
        self._factors: list[Tensor] = []
        self._zeros: list[Tensor] = []
        self.step()

    @classmethod
    def of_zeros(cls, model: nn.Module) -> "Masks":
        """Hold the weights that are zero now; biases and norms are left alone."""
        weights = {name: parameter for name, parameter in model.named_parameters() if parameter.ndim > 1}
        return cls(model, {name: weight.detach() != 0 for name, weight in weights.items()})

    @torch.no_grad()
    def step(self) -> None:
        """Make the masked weights zero again."""
        current: list[Tensor] = [getattr(module, name) for module, name in self._owners]
        if list(map(id, current)) != list(map(id, self._weights)):  # a parameter was replaced
            self._weights = current
            self._factors = [mask.to(weight) for mask, weight in zip(self.masks.values(), current, strict=True)]
            self._zeros = [weight.new_zeros(()) for weight in current]
        for zero, weight, factor in zip(self._zeros, current, self._factors, strict=True):
            torch.addcmul(zero, weight, factor, out=weight)  # 0 + weight × factor: never −0

    @property
    def sparsity(self) -> float:
        """Give the fraction of weights, of those that have a mask, that are masked."""
        total = sum(mask.numel() for mask in self.masks.values())
        return sum(int((~mask).sum()) for mask in self.masks.values()) / total if total else 0.0


def owner_of(model: nn.Module, name: str) -> nn.Module:
    """Give the module that holds a parameter."""
    return model.get_submodule(name.rpartition(".")[0])


class UnitMasks:
    """Units that are gone for a moment, to see what their removal would do without cutting.

    >>> masks = UnitMasks(model, example_input)
    >>> with masks.without({"hidden0": [3, 5]}):
    ...     score(model)
    """

    def __init__(self, model: nn.Module, example_input: Inputs) -> None:
        self.model = model
        self.anatomy = anatomy(model, example_input, partial=True)

    @contextmanager
    def without(self, units: Mapping[str, Units]) -> Iterator[nn.Module]:
        """Let the readers of units see zeros inside the block."""
        with ExitStack() as hooks:
            for name, found in units.items():
                space, numbers = free_space(self.anatomy, name), list(unit_numbers(found))
                check_units(space, numbers)
                for place in space.consumers:
                    handle = self.model.get_submodule(place.module).register_forward_pre_hook(
                        hide(place, numbers), with_kwargs=True
                    )
                    hooks.callback(handle.remove)
            yield self.model


def hide(place: Place, units: list[int]) -> Any:
    """Give the hook that hides units from a reader."""
    mask = numpy.ones(place.length)
    mask[place.positions[units].reshape(-1)] = 0

    def hook(
        module: nn.Module, taken: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        x = first_of(taken, named)
        shape = (-1, *(1,) * len(module.kernel_size)) if isinstance(module, _ConvNd) else (-1,)
        return (x * torch.from_numpy(mask).to(x).reshape(shape),), {}

    return hook
