"""Which units there are, which of them are one and the same, and where each layer meets them.

Every row that a layer writes gets a number. An addition ties numbers together; a concatenation lists them one after the
other; what passes through keeps them. At the end, rows with one number are one unit.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy
from numpy.typing import NDArray
from torch import Tensor

Indices = NDArray[numpy.int64]
Role = Literal["writes", "passes", "reads"]


class NotUnderstoodError(Exception):
    """An operation that cannot be followed; the text says what was found."""


@dataclass(frozen=True)
class Layout:
    """The units along one axis of a tensor, counted from the right: -1 is the last.

    `units` (n_positions,) is the unit at each position. `slots` (n_positions,) counts within a unit that flattening
    has spread over several positions in a row: 0 is the first of them.
    """

    axis: int
    units: Indices
    slots: Indices

    def spread(self, repeat: int) -> "Layout":
        """Return the layout after flattening what lies behind the axis, `repeat` positions per unit."""
        slots = (self.slots[:, None] * repeat + numpy.arange(repeat)).reshape(-1)
        return Layout(self.axis, numpy.repeat(self.units, repeat), slots)

    def moved(self, axis: int) -> "Layout":
        """Return the same units along another axis."""
        return Layout(axis, self.units, self.slots)

    @staticmethod
    def joined(parts: "list[Layout]") -> "Layout":
        """Return the layout of tensors that are concatenated along the axis of their units."""
        units, slots = (numpy.concatenate([getattr(part, name) for part in parts]) for name in ("units", "slots"))
        return Layout(parts[0].axis, units, slots)


@dataclass(frozen=True)
class Fixed:
    """A tensor whose units cannot change, along whatever axis: the network's input and what is computed from it.

    `parameter` is the name of a parameter or buffer that forward reads directly; `shape` is its own shape.
    """

    source: str
    parameter: str | None = None
    shape: tuple[int, ...] = ()


Operand = tuple[Tensor, Layout | Fixed]
Whereabouts = Layout | Fixed | tuple[Any, ...] | None


def everywhere(value: Any, place: Whereabouts) -> Whereabouts:
    """Return a place for every tensor of a result."""
    if isinstance(value, Tensor):
        return place
    if isinstance(value, (tuple, list)) and any(isinstance(item, Tensor) for item in value):
        return tuple(everywhere(item, place) for item in value)
    return None


@dataclass
class Meeting:
    """Where a layer, or a parameter of its own, meets units: one number per position of the axis."""

    module: str
    role: Role
    units: Indices
    slots: Indices
    parameter: str | None = None
    dimension: int = 0


@dataclass
class Units:
    """All units found so far, as a union–find forest (`parents`), with where and how layers meet them."""

    parents: list[int] = field(default_factory=list)
    reasons: dict[int, str] = field(default_factory=dict)
    meetings: dict[tuple[str, Role], Meeting] = field(default_factory=dict)
    sources: dict[tuple[str, int], Indices] = field(default_factory=dict)
    grouped: set[int] = field(default_factory=set)
    modulated: set[int] = field(default_factory=set)
    same_size: list[tuple[Indices, Indices]] = field(default_factory=list)
    just_met: set[str] = field(default_factory=set)
    read_directly: set[str] = field(default_factory=set)
    read_otherwise: set[str] = field(default_factory=set)

    def create(self, count: int) -> Indices:
        """Return fresh units."""
        start = len(self.parents)
        self.parents.extend(range(start, start + count))
        return numpy.arange(start, start + count)

    def find(self, unit: int) -> int:
        """Return the number that stands for a unit and all that are tied to it."""
        while self.parents[unit] != unit:
            self.parents[unit] = self.parents[self.parents[unit]]
            unit = self.parents[unit]
        return unit

    def roots(self, units: Indices) -> Indices:
        """Return the numbers that stand for units."""
        found = numpy.array(self.parents)
        while not numpy.array_equal(found, found[found]):
            found = found[found]
        roots: Indices = found[units]
        return roots

    def tie(self, left: Indices, right: Indices) -> None:
        """Make units one and the same, pair by pair; the earlier number stands for both."""
        for pair in zip(left.tolist(), right.tolist(), strict=True):
            first, second = sorted(map(self.find, pair))
            self.parents[second] = first

    def fix(self, units: Indices, reason: str) -> None:
        """Record that units can be neither removed nor added, and why."""
        for unit in units.tolist():
            self.reasons.setdefault(unit, reason)

    def constant(self, source: str, count: int) -> Indices:
        """Return the fixed units of a source, along an axis of this many positions."""
        key = source, count
        if key not in self.sources:
            self.sources[key] = self.create(count)
            self.fix(self.sources[key], f"they come from '{source}'")
        return self.sources[key]

    def constant_layout(self, constant: Fixed, count: int, axis: int) -> Layout:
        """Return the layout of a fixed tensor along an axis."""
        return Layout(axis, self.constant(constant.source, count), numpy.zeros(count, dtype=numpy.int64))

    def meet(self, module: str, role: Role, layout: Layout, parameter: str | None = None, dimension: int = 0) -> None:
        """Record that a layer meets units; a layer that is called twice ties what it meets."""
        key = (module if parameter is None else f"{module}.{parameter}".removeprefix("."), role)
        self.just_met.add(key[0])
        if key in self.meetings:
            self.tie(self.meetings[key].units, layout.units)
            if self.meetings[key].dimension != dimension and parameter is not None:
                self.read_otherwise.add(key[0])
        else:
            self.meetings[key] = Meeting(module, role, layout.units, layout.slots, parameter, dimension)

    def written(self, module: str, count: int, axis: int) -> Layout:
        """Return what a layer writes; a layer that is called twice writes the same units twice."""
        earlier = self.meetings.get((module, "writes"))
        units = self.create(count) if earlier is None else earlier.units
        layout = Layout(axis, units, numpy.zeros(count, dtype=numpy.int64))
        self.meet(module, "writes", layout)
        return layout

    def fix_layer(self, module: str, reason: str) -> None:
        """Fix all units that a layer meets."""
        for meeting in self.meetings.values():
            if meeting.module == module and meeting.parameter is None:
                self.fix(meeting.units, reason)

    def fix_parameters(self) -> None:
        """Fix units that meet a parameter which is also read in a way that was not followed.

        A parameter that lies along units and is read elsewhere too cannot be cut, nor can that of a layer that is also
        read beside the layer.
        """
        for meeting in list(self.meetings.values()):
            own = f"{meeting.module}.{meeting.parameter}".removeprefix(".")
            if meeting.parameter is not None and own in self.read_otherwise:
                self.fix(meeting.units, f"'{own}' is read in another way too")
            beside = [name for name in self.read_directly if name.rpartition(".")[0] == meeting.module]
            if meeting.parameter is None and beside:
                self.fix(meeting.units, f"'{beside[0]}' is read beside its layer")

    def fix_sizes(self) -> None:
        """Fix units whose number stands for that of others, unless operations tie the two."""
        for pair in self.same_size:
            first, second = (numpy.unique(self.roots(units)) for units in pair)
            if not numpy.array_equal(first, second):
                for units in pair:
                    self.fix(units, "one size stands for two sets of units")
