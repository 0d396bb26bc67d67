"""Unit spaces: sets of units that the same layers write, pass on and read; and what parameters they make up."""

import math
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy
from numpy.typing import NDArray
from torch import nn

from topiarist.tracing.units import Indices, Meeting, Role, Units

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Place:
    """Where one layer, or one parameter that forward reads directly, meets the units of a space.

    Parameters
    ----------
    module, role : str, {"writes", "passes", "reads"}
        The layer, and how it meets the units.
    length, positions : int, array (n_units, n_occurrences, n_repeats)
        The length of the layer's axis, and the units' places along it: a unit occurs once, or more often where its
        tensor is joined with itself; flattening repeats it over a row of them.
    parameter, dimension : str, int
        The parameter that forward reads directly, if it is one, and its axis.
    uneven : bool
        Whether its rows are of different lengths, or lie differently from unit to unit.
    """

    module: str
    role: Role
    length: int
    positions: NDArray[numpy.int64] = field(repr=False)
    parameter: str | None = None
    dimension: int = 0
    uneven: bool = False

    @property
    def offset(self) -> int:
        """Return the first position of the space along the axis; 0 unless something else comes before it."""
        return int(self.positions.min())

    @property
    def repeat(self) -> int:
        """Return how many positions in a row belong to one unit."""
        return int(self.positions.shape[2])

    @property
    def name(self) -> str:
        """Name the layer or the parameter."""
        return self.module if self.parameter is None else f"{self.module}.{self.parameter}".removeprefix(".")


@dataclass(frozen=True)
class Space:
    """A set of interchangeable units.

    Parameters
    ----------
    name, size : str, int
        The first layer that writes them, and how many they are.
    reason : str, optional
        Why they are fixed; None where they are not.
    producers, passes, consumers : tuple[Place, ...]
        The layers that write them, pass them on and read them.
    modulated : bool
        Whether values which do not come from their own writers are combined with them, as a gate for all units is.
    """

    name: str
    size: int
    reason: str | None
    producers: tuple[Place, ...]
    passes: tuple[Place, ...]
    consumers: tuple[Place, ...]
    modulated: bool = False

    @property
    def places(self) -> tuple[Place, ...]:
        """Return where all layers meet the units, writers first."""
        return (*self.producers, *self.passes, *self.consumers)

    @property
    def fixed(self) -> bool:
        """Return whether units can neither go nor come."""
        return self.reason is not None


def find_spaces(units: Units) -> dict[str, Space]:
    """Group the units that the same layers meet; spaces come in the order in which they are met."""
    meetings = list(units.meetings.values())
    met = [units.roots(meeting.units) for meeting in meetings]
    reasons = {units.find(unit): reason for unit, reason in reversed(units.reasons.items())}
    sources = {units.find(int(numbers[0])): source for (source, count), numbers in units.sources.items() if count}
    grouped, modulated = ({units.find(unit) for unit in marked} for marked in (units.grouped, units.modulated))
    spaces: dict[str, Space] = {}
    for members, numbers in _group(met, reasons):
        first = int(members[0])
        places = [_find_place(meetings[number], met[number], members, first in grouped) for number in numbers]
        uneven = next((place.name for place in places if place.uneven), None)
        reason = reasons.get(first) or (f"they lie unevenly along '{uneven}'" if uneven is not None else None)
        roles = {role: tuple(place for place in places if place.role == role) for role in ("writes", "passes", "reads")}
        writers = roles["writes"] or roles["passes"]
        name = unused(writers[0].name if writers else sources.get(first, "constant"), spaces)
        change = not modulated.isdisjoint(members.tolist())
        spaces[name] = Space(name, len(members), reason, roles["writes"], roles["passes"], roles["reads"], change)
    return spaces


def _group(met: list[Indices], reasons: dict[int, str]) -> Iterator[tuple[Indices, list[int]]]:
    """Yield sets of units that take part in the same meetings equally often, with the numbers of those meetings.

    The units of a set come in the order of their first meeting.
    """
    parts: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, units in enumerate(met):
        found, first, counts = numpy.unique(units, return_index=True, return_counts=True)
        order = numpy.argsort(first)
        for unit, count in zip(found[order].tolist(), counts[order].tolist(), strict=True):
            parts[unit].append((number, count))
    sets: defaultdict[tuple[tuple[tuple[int, int], ...], str | None], list[int]] = defaultdict(list)
    for unit, signature in parts.items():
        sets[tuple(signature), reasons.get(unit)].append(unit)
    for (taken, _), members in sets.items():
        yield numpy.array(members), [number for number, _ in taken]


def _find_place(meeting: Meeting, units: Indices, members: Indices, grouped: bool) -> Place:
    """Return the place of a set of units along the axis of a layer that meets it."""
    rank = {unit: number for number, unit in enumerate(members.tolist())}
    ranks = numpy.array([rank.get(unit, -1) for unit in units.tolist()])
    order = numpy.argsort(ranks, kind="stable")
    rows = order[numpy.count_nonzero(ranks < 0) :].reshape(len(members), -1)
    lengths = _row_lengths(rows, meeting.slots, alone=len(members) == 1 and not grouped)
    even = len(set(lengths)) == 1
    shaped = rows.reshape(len(members), -1, lengths[0] if even else 1)
    return Place(meeting.module, meeting.role, len(units), shaped, meeting.parameter, meeting.dimension, not even)


def _row_lengths(rows: Indices, slots: Indices, *, alone: bool) -> list[int]:
    """Return how many positions of a unit follow each other, row after row; none where the units (rows) differ in that.

    Other units lie between two rows; where the unit is alone in its space, only the slots tell them apart.
    """
    breaks = numpy.diff(rows, axis=1) != 1
    if alone:
        breaks |= slots[rows[:, 1:]] == 0
    if (breaks != breaks[0]).any():
        return []
    ends = [*(numpy.flatnonzero(breaks[0]) + 1).tolist(), rows.shape[1]]
    return [end - start for start, end in pairwise([0, *ends])]


def unused(name: str, taken: Container[str], joint: str = "#") -> str:
    """Return a name that is not taken yet: 'conv', then 'conv#2'."""
    number, free = 2, name
    while free in taken:
        free, number = f"{name}{joint}{number}", number + 1
    return free


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
