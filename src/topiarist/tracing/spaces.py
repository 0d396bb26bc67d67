"""Unit spaces: sets of units that lie along the same axes of the same parameters; and what parameters they make up."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

import numpy
from numpy.typing import NDArray

from topiarist.tracing.labels import Labels
from topiarist.tracing.remedies import EQUAL_PARTS
from topiarist.tracing.units import Mark
from topiarist.tracing.vectors import Vector

Role = Literal["writes", "passes", "reads"]
Indices = NDArray[numpy.int64]


@dataclass(frozen=True)
class Place:
    """Where one layer, or one parameter that forward reads directly, meets the units of a space.

    Parameters
    ----------
    module, role : str, {"writes", "passes", "reads"}
        The module that holds the parameters, and how they meet the units.
    length, positions : int, array (n_units, n_occurrences, n_repeats)
        The length of the axis, and the units' places along it: a unit occurs once, or more often where its tensor is
        joined with itself, or where it is one of the dims of several heads; flattening repeats it over a row of them.
    tensors : tuple of (str, int)
        The parameters and buffers of the module that have this axis, and which of their axes it is.
    parameter : str, optional
        The parameter where it is no layer that torch has, or not used as one; None for a layer.
    uneven, scattered : bool
        Whether units have different numbers of positions; whether the rows of a unit are of different lengths, or lie
        differently from unit to unit, so that units can go and none can come.
    """

    module: str
    role: Role
    length: int
    positions: Indices = field(repr=False)
    tensors: tuple[tuple[str, int], ...]
    parameter: str | None = None
    uneven: bool = False
    scattered: bool = False

    @property
    def dimension(self) -> int:
        """Return the axis of the first of its tensors."""
        return self.tensors[0][1]

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
        The layers and parameters that write them, pass them on and read them.
    modulated, averaged, escaped, counted : bool
        Whether values which do not come from their own writers are combined with them, as a gate for all units is;
        whether a mean or a norm runs over them; whether more than the consumers sees them, as attention sees queries;
        whether forward multiplies with their number, as attention with the root of that of its dims.
    units : array (n_units,)
        Their numbers in the labels of the anatomy.
    """

    name: str
    size: int
    reason: str | None
    producers: tuple[Place, ...]
    passes: tuple[Place, ...]
    consumers: tuple[Place, ...]
    modulated: bool = False
    averaged: bool = False
    escaped: bool = False
    counted: bool = False
    units: Indices = field(default_factory=lambda: numpy.zeros(0, numpy.int64), repr=False, compare=False)

    @property
    def places(self) -> tuple[Place, ...]:
        """Return where all layers meet the units, writers first."""
        return (*self.producers, *self.passes, *self.consumers)

    @property
    def fixed(self) -> bool:
        """Return whether units can neither go nor come."""
        return self.reason is not None

    @property
    def readers(self) -> tuple[Place, ...]:
        """Return the consumers that are plain linear layers and convolutions."""
        return tuple(place for place in self.consumers if place.parameter is None)


@dataclass(frozen=True)
class Meeting:
    """The axis of one parameter or of several of a layer, with the units along it."""

    module: str
    role: Role
    vector: Vector
    tensors: tuple[tuple[str, int], ...]
    parameter: str | None = None


def group_units(labels: Labels, met: list[Vector]) -> list[tuple[Indices, list[int]]]:
    """Return sets of units that lie along the same axes equally often, with the numbers of those axes.

    `met` are the units along each axis. Sets come in the order of their first axis, units in the order of their first
    position there. Which axes a unit has is told by the sum of random numbers, one for each axis and count.
    """
    total = len(labels)
    signatures = numpy.zeros(total, numpy.uint64)
    firsts = numpy.full(total, numpy.iinfo(numpy.int64).max)
    random = numpy.random.default_rng(0)
    start = 0
    for units in met:
        found, first, counts = numpy.unique(units.reshape(-1), return_index=True, return_counts=True)
        keep = found > 0
        found, first, counts = found[keep], first[keep], counts[keep]
        for count in numpy.unique(counts).tolist():
            signatures[found[counts == count]] += random.integers(2**63, dtype=numpy.uint64)
        firsts[found] = numpy.minimum(firsts[found], start + first)
        start += units.size
    present = numpy.flatnonzero(firsts < numpy.iinfo(numpy.int64).max)
    present = present[numpy.argsort(firsts[present], kind="stable")]
    keys = numpy.stack([labels.families(present), signatures[present].view(numpy.int64), labels.why(present)], 1)
    _, first, inverse = numpy.unique(keys, axis=0, return_index=True, return_inverse=True)
    order = numpy.argsort(inverse.reshape(-1), kind="stable")
    parts = numpy.split(present[order], numpy.cumsum(numpy.bincount(inverse.reshape(-1)))[:-1])
    sets = [parts[group] for group in numpy.argsort(first)]
    member = numpy.full(total, -1)
    for number, units in enumerate(sets):
        member[units] = number
    taken: list[list[int]] = [[] for _ in sets]
    for number, units in enumerate(met):
        for group in numpy.unique(member[units]).tolist():
            if group >= 0:
                taken[group].append(number)
    return list(zip(sets, taken, strict=True))


def find_spaces(labels: Labels, meetings: list[Meeting]) -> dict[str, Space]:
    """Group the units that lie along the same axes; spaces come in the order in which they are met."""
    spaces: dict[str, Space] = {}
    met = [labels.units_at(meeting.vector) for meeting in meetings]
    rank = numpy.full(len(labels), -1)
    for units, numbers in group_units(labels, met):
        rank[units] = numpy.arange(len(units))
        places = [_find_place(meetings[number], met[number], rank, len(units)) for number in numbers]
        rank[units] = -1
        uneven = next((place.name for place in places if place.uneven), None)
        reason = labels.reason(int(units[0]))
        if reason is None and uneven is not None:
            reason = f"they lie unevenly along '{uneven}'; {EQUAL_PARTS}"
        roles = {role: tuple(place for place in places if place.role == role) for role in ("writes", "passes", "reads")}
        marks = labels.marks(units)
        name = _space_name(reason, roles)
        crossed = next((number for number in numbers if met[number].shape[1] > 1), None)
        if crossed is not None and not places[numbers.index(crossed)].uneven:
            name += _factor_name(met[crossed], units, places[numbers.index(crossed)], marks)
        name = unused(name, spaces)
        spaces[name] = Space(
            name,
            len(units),
            reason,
            roles["writes"],
            roles["passes"],
            roles["reads"],
            bool(marks & Mark.MODULATED),
            bool(marks & Mark.AVERAGED),
            bool(marks & Mark.ESCAPED),
            units=units,
        )
    return spaces


def _space_name(reason: str | None, roles: Mapping[str, tuple[Place, ...]]) -> str:
    """Name a space after the first layer or parameter that writes it; the units of an input after that input."""
    if roles["reads"] and not roles["writes"] and reason is not None and reason.startswith("they come from '"):
        return reason.split("'")[1]
    if writers := roles["writes"] or roles["passes"]:
        layer = writers[0].module.partition(".parametrizations")[0]
        of_layer = (writers[0].parameter or "weight").startswith(("weight", "bias", "in_proj", "original"))
        return layer if layer and of_layer else writers[0].name
    return "constant"


def _factor_name(met: Vector, units: Indices, place: Place, marks: Mark) -> str:
    """Return what tells the spaces apart that cross along one axis: heads and their dims, groups and their members."""
    together = (met > 0).sum(axis=1) > 1
    if not numpy.isin(met[together], units).any():
        return ""
    if place.repeat > 1 or place.scattered:
        return ":heads" if marks & Mark.HEADS else ":groups"
    return ":dims" if marks & (Mark.DIMS | Mark.ESCAPED) else ":members"


def _find_place(meeting: Meeting, units: Vector, rank: Indices, size: int) -> Place:
    """Return the place of a set of units along an axis; `rank` has their numbers in the set, -1 for others."""
    ranks = rank[units]
    doubled = units.shape[1] > 1 and (ranks >= 0).sum(axis=1).max(initial=0) > 1
    ranks = ranks.max(axis=1)
    order = numpy.argsort(ranks, kind="stable")
    rows = order[numpy.count_nonzero(ranks < 0) :]
    per_unit, left = divmod(len(rows), size)
    if left or doubled:
        return Place(
            meeting.module, meeting.role, len(units), rows[:, None, None], meeting.tensors, meeting.parameter, True
        )
    lengths = row_lengths(rows.reshape(size, per_unit))
    even = len(set(lengths)) == 1
    shaped = rows.reshape(size, -1, lengths[0] if even else 1)
    place = Place(meeting.module, meeting.role, len(units), shaped, meeting.tensors, meeting.parameter)
    return place if even else replace(place, scattered=True)


def row_lengths(rows: Indices) -> list[int]:
    """Return how many positions of a unit follow each other, row after row; none where units (rows) differ in that."""
    breaks = numpy.diff(rows, axis=1) != 1
    if (breaks != breaks[:1]).any():
        return []
    ends = [*(numpy.flatnonzero(breaks[0]) + 1).tolist(), rows.shape[1]]
    return [end - start for start, end in pairwise([0, *ends])]


def unused(name: str, taken: Container[str], joint: str = "#") -> str:
    """Return a name that is not taken yet: 'conv', then 'conv#2'."""
    number, free = 2, name
    while free in taken:
        free, number = f"{name}{joint}{number}", number + 1
    return free
