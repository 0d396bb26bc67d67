"""The sizes of a network's parameters as formulas of the widths of its spaces."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch import nn

from topiarist.tracing.spaces import Place, Space

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class ParameterSize:
    """The shape of one parameter: along each axis so many positions, and so many more per unit of some spaces.

    A linear layer with a bias that reads 3 inputs and a space of n units, and writes a space of m units, has a weight
    of (0 + 1·m) · (3 + 1·n) numbers and a bias of (0 + 1·m).
    """

    positions: list[int]
    per_unit: list[dict[str, int]]

    def count(self, widths: Mapping[str, int]) -> int:
        """Return how many numbers the parameter has with some widths."""
        axes = zip(self.positions, self.per_unit, strict=True)
        return math.prod(fixed + sum(widths[name] * each for name, each in units.items()) for fixed, units in axes)


def shapes_of(model: nn.Module) -> Shapes:
    """Return the shapes of a network's parameters by name; what is tied is named once."""
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


def parameter_sizes(spaces: Iterable[Space], shapes: Shapes) -> dict[str, ParameterSize]:
    """Return the size of each parameter as a formula of the widths of some spaces."""
    sizes = {name: ParameterSize(list(shape), [{} for _ in shape]) for name, shape in shapes.items()}
    for space in spaces:
        for place in space.places:
            for name, axis in _axes_of(place, shapes):
                sizes[name].positions[axis] -= place.positions.size
                units = sizes[name].per_unit[axis]
                units[space.name] = units.get(space.name, 0) + math.prod(place.positions.shape[1:])
    return sizes


def _axes_of(place: Place, shapes: Shapes) -> list[tuple[str, int]]:
    """Return the parameters, with their axis, that change with the units at a place; buffers do not count."""
    axes = [(place.name, place.dimension)]
    if place.parameter is None:
        reads = place.role == "reads"
        axes = [(f"{place.module}.{own}".removeprefix("."), int(reads)) for own in ("weight", "bias")[: 2 - reads]]
    return [(name, axis) for name, axis in axes if name in shapes]
