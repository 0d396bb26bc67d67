"""Cuts units by hand, straight from the positions of an anatomy: removing a unit must equal masking what reads it."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd

from tests.networks import built, outputs
from topiarist.tracing import Anatomy, Inputs, Place, Space


class Written(nn.Module):
    """A network from a function of the network and its input, and from the layers and parameters it names."""

    def __init__(self, code: Callable[[Any, Tensor], Any], **parts: nn.Module | nn.Parameter) -> None:
        super().__init__()
        self.code = code
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: Tensor) -> Any:
        return self.code(self, x)


Makers = dict[str, Callable[[], nn.Module | nn.Parameter]]


def written(code: Callable[[Any, Tensor], Any], shape: tuple[int, ...], parts: Makers) -> tuple[nn.Module, Tensor]:
    """Make a network from its code, with an example input."""
    model, example = built(lambda: Written(code, **{name: make() for name, make in parts.items()}), shape, seed=1)
    assert isinstance(example, Tensor)
    return model, example


def cut(model: nn.Module, space: Space, units: Sequence[int]) -> nn.Module:
    """Return a copy without some units of a space."""
    model = copy.deepcopy(model)
    for place in space.producers:
        layer, kept = model.get_submodule(place.module), kept_positions(place, units)
        keep(layer, ("weight", "bias"), 0, kept)
    for place in space.passes:
        layer, kept = model.get_submodule(place.module), kept_positions(place, units)
        if place.parameter is not None:
            keep(layer, (place.parameter,), place.dimension, kept)
        else:
            cut_pass(layer, kept)
    for place in space.consumers:
        layer, kept = model.get_submodule(place.module), kept_positions(place, units)
        keep(layer, ("weight",), 1, kept)
    return model


def cut_pass(layer: Any, kept: Tensor) -> None:
    """Leave some positions of a layer that units pass through."""
    if isinstance(layer, _ConvNd):
        layer.groups = len(kept) * layer.groups // layer.out_channels
    if isinstance(layer, nn.GroupNorm):
        layer.num_groups, layer.num_channels = len(kept) * layer.num_groups // layer.num_channels, len(kept)
    if isinstance(layer, _NormBase):
        keep(layer, ("running_mean", "running_var"), 0, kept)
    if isinstance(layer, nn.PReLU):
        layer.num_parameters = len(kept)
    keep(layer, ("weight", "bias"), 0, kept)


def keep(layer: nn.Module, names: Sequence[str], dimension: int, kept: Tensor) -> None:
    """Leave some positions of a layer's tensors."""
    for name in names:
        old = getattr(layer, name, None)
        if old is not None:
            new = old.detach().index_select(dimension, kept)
            setattr(layer, name, nn.Parameter(new) if isinstance(old, nn.Parameter) else new)


def kept_positions(place: Place, units: Sequence[int]) -> Tensor:
    """Return the positions of a place that do not belong to some units."""
    gone = place.positions[list(units)].reshape(-1)
    return torch.as_tensor(numpy.setdiff1d(numpy.arange(place.length), gone))


def masked(model: nn.Module, space: Space, units: Sequence[int]) -> nn.Module:
    """Return a copy in which nothing reads some units of a space."""
    model = copy.deepcopy(model)
    for place in space.consumers:
        weight = model.get_submodule(place.module).weight
        assert isinstance(weight, Tensor)
        weight.detach()[:, torch.as_tensor(place.positions[list(units)].reshape(-1))] = 0
    return model


def check_cuts(model: nn.Module, example_input: Inputs, found: Anatomy) -> None:
    """Assert for every free space that removing units gives what masking them gives."""
    for space in found.free.values():
        for units in {(0,), (space.size - 1,), tuple(range(0, space.size, 2))} if space.size > 1 else ():
            smaller = outputs(cut(model, space, units), example_input)
            same = outputs(masked(model, space, units), example_input)
            for left, right in zip(smaller, same, strict=True):
                torch.testing.assert_close(left, right, rtol=1e-10, atol=1e-12)
