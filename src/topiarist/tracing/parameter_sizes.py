"""How many numbers each parameter has, as a formula of the widths of spaces."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy
from torch import nn

from topiarist.tracing.spaces import Place, Space

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class ParameterSize:
    """The shape of one parameter: along each axis so many positions, and so many for each unit of some spaces.

    A linear layer with a bias that reads 3 inputs and a space of n units, and writes a space of m units, has a weight
    of (0 + 1·m) · (3 + 1·n) numbers and a bias of (0 + 1·m). Where spaces cross along an axis, as heads and their dims
    do, positions are counted for each pair of units.
    """

    axes: list[dict[tuple[str, ...], int]]

    def count(self, widths: Mapping[str, int]) -> int:
        """Return how many numbers the parameter has with some widths."""
        total = 1
        for axis in self.axes:  # plain loops: asked a hundred thousand times where widths are allotted
            along = 0
            for names, each in axis.items():
                for name in names:
                    each *= widths[name]
                along += each
            total *= along
        return total


def shapes_of(model: nn.Module) -> Shapes:
    """Return the shapes of a network's parameters by name; what is tied is named once."""
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


def parameter_sizes(spaces: Iterable[Space], shapes: Shapes) -> dict[str, ParameterSize]:
    """Return the size of each parameter as a formula of the widths of some spaces."""
    met: defaultdict[tuple[str, int], list[tuple[Space, Place]]] = defaultdict(list)
    for space in spaces:
        for place in space.places:
            for tensor, axis in place.tensors:
                met[f"{place.module}.{tensor}".removeprefix("."), axis].append((space, place))
    sizes = {}
    for name, shape in shapes.items():
        sizes[name] = ParameterSize(
            [dict(_axis_size(met.get((name, axis), []), length)) for axis, length in enumerate(shape)]
        )
    return sizes


def _axis_size(met: list[tuple[Space, Place]], length: int) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield, for each set of spaces that cross along an axis, how many positions there are per product of units."""
    if len(met) == 1:
        place = met[0][1]
        yield (met[0][0].name,), place.positions.size // met[0][0].size
        yield (), length - place.positions.size
        return
    held = numpy.zeros((length, len(met)), bool)
    for number, (_, place) in enumerate(met):
        held[place.positions.reshape(-1), number] = True
    rows, counts = numpy.unique(held, axis=0, return_counts=True)
    for row, count in zip(rows, counts.tolist(), strict=True):
        together = [space for (space, _), here in zip(met, row.tolist(), strict=True) if here]
        yield tuple(space.name for space in together), count // math.prod(space.size for space in together)
