"""What the integers of a network's modules have to become when its units change."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy

from topiarist.tracing.constraints import Constraint
from topiarist.tracing.integers import Attribute, Copies, Size, expressions_within
from topiarist.tracing.labels import Labels
from topiarist.tracing.spaces import Indices
from topiarist.tracing.vectors import Vector

_COMPARED = ("==", "comparison")


@dataclass
class Solution:
    """The integers that change, and what the code asks for that no integers give."""

    values: dict[Attribute, int] = field(default_factory=dict)
    violated: list[Constraint] = field(default_factory=list)
    softened: list[Constraint] = field(default_factory=list)  # what weights can make up for


class _Counts:
    """Counts positions for one set of copies, each axis once; `units` are those that axes are known to have."""

    def __init__(self, labels: Labels, units: dict[int, tuple[Vector, Vector]]) -> None:
        self.labels, self._units = labels, units
        self._found: dict[int, int] = {}

    def count(self, vector: Vector, copies: Copies) -> int:
        """Return how many positions there are; `copies` must be the same in each call."""
        key = id(vector)
        if key not in self._found:
            if key not in self._units or self._units[key][0] is not vector:  # as in a copy
                self._units[key] = vector, self.labels.units_at(vector)
            self._found[key] = int(copies[self._units[key][1]].prod(axis=1).sum())
        return self._found[key]


class Solver:
    """Finds integers for changed counts of units."""

    def __init__(self, labels: Labels, constraints: Sequence[Constraint], old: dict[Attribute, int]) -> None:
        self.labels, self.constraints = labels, constraints
        self.attributes = [
            {part for part in expressions_within(constraint.expression) if isinstance(part, Attribute)}
            for constraint in constraints
        ]
        self.by_attribute: dict[Attribute, list[int]] = {}
        for number, found in enumerate(self.attributes):
            for attribute in found:
                self.by_attribute.setdefault(attribute, []).append(number)
        self.old = {attribute: old[attribute] for attribute in self.by_attribute}  # others decide nothing
        self.index_units()

    def index_units(self) -> None:
        """Find the units that each constraint counts, again after more of them were tied."""
        self.units = [units_of(self.labels, constraint) for constraint in self.constraints]
        self._by_constraint = {
            id(constraint): units for constraint, units in zip(self.constraints, self.units, strict=True)
        }
        self._resolved: dict[int, tuple[Vector, Vector]] = {}
        self._counted = numpy.concatenate([numpy.zeros(0, numpy.int64), *self.units])
        self._counting = numpy.repeat(numpy.arange(len(self.units)), [len(units) for units in self.units])

    def units_of(self, constraint: Constraint) -> Vector:
        """Return the units that one of its constraints counts."""
        return self._by_constraint[id(constraint)]

    def computes_with(self, attribute: Attribute) -> bool:
        """Return whether code makes values of an integer, and compares it with nothing."""
        asked = [self.constraints[number] for number in self.by_attribute[attribute]]
        return any(each.soft for each in asked) and not any(each.function in _COMPARED for each in asked)

    def solve(self, copies: Copies) -> Solution:
        """Return the integers for a network whose units are there so many times each."""
        looked_at = set(self._counting[copies[self._counted] != 1].tolist())
        solution, counts = Solution(), _Counts(self.labels, self._resolved)
        before: dict[Attribute, int] | None = None
        while solution.values != before:
            before = dict(solution.values)
            self._propose(sorted(looked_at), counts, copies, solution)
            new = solution.values.keys() - before.keys()  # a value that was proposed stays
            looked_at |= {number for attribute in new for number in self.by_attribute[attribute]}
        self._keep_answers(sorted(looked_at), counts, copies, solution)
        values = {**self.old, **solution.values}
        for number in sorted(looked_at):
            if not self._holds(number, counts, copies, values):
                constraint = self.constraints[number]
                (solution.softened if constraint.soft else solution.violated).append(constraint)
        solution.values = {key: value for key, value in solution.values.items() if value != self.old[key]}
        return solution

    def _propose(self, numbers: Iterable[int], counts: _Counts, copies: Copies, solution: Solution) -> None:
        """Set attributes to the values that constraints ask for: first those that stand alone, then what is left."""
        numbers = list(numbers)
        values = {**self.old, **solution.values}
        several: list[tuple[int, list[Attribute]]] = []
        for alone in (True, False):
            for number in numbers:
                constraint = self.constraints[number]
                if isinstance(constraint.expression, Attribute) is not alone or constraint.soft:
                    continue
                required = constraint.required(counts, copies)
                now = constraint.expression.value(counts, copies, values)
                if now == required or constraint.is_comparison:
                    continue
                open_ones = [each for each in self.attributes[number] if each not in solution.values]
                if len(open_ones) > 1:
                    open_ones = [each for each in open_ones if not self._must_stay(each, counts, copies)]
                if alone:
                    asked = solution.values.setdefault(constraint.expression, required)  # type: ignore[arg-type]
                    values[constraint.expression] = asked  # type: ignore[index]
                elif len(open_ones) == 1:
                    solution.values |= self._in_proportion(number, open_ones, counts, copies, values)
                    values |= solution.values
                elif open_ones:
                    several.append((number, open_ones))
        for number, open_ones in several:
            if all(solution.values.get(each, self.old[each]) == self.old[each] for each in open_ones):
                solution.values |= self._in_proportion(number, open_ones, counts, copies, values)
                values |= solution.values

    def _in_proportion(
        self, number: int, among: Iterable[Attribute], counts: _Counts, copies: Copies, values: dict[Attribute, int]
    ) -> dict[Attribute, int]:
        """Return an attribute with a value that gives a constraint what it asks for: the one that breaks the least.

        `width // heads` with 32 and 4 is to become 4: a width of 16 does it; 2 heads would make 16 of it.
        """
        constraint = self.constraints[number]
        required = constraint.required(counts, copies)
        now = constraint.expression.value(counts, copies, values)
        found: list[tuple[int, str, Attribute, int]] = []
        for attribute in among if now > 0 else ():
            tried = {**values, attribute: values[attribute] * required // now}
            if constraint.expression.value(counts, copies, tried) == required:
                others = (each for each in self.by_attribute[attribute] if not self.constraints[each].soft)
                broken = sum(not self._holds(each, counts, copies, tried) for each in others)
                found.append((broken, f"{attribute.module}.{attribute}", attribute, tried[attribute]))
        return dict([min(found)[2:]]) if found else {}

    def _holds(self, number: int, counts: _Counts, copies: Copies, values: dict[Attribute, int]) -> bool:
        constraint = self.constraints[number]
        return constraint.expression.value(counts, copies, values) == constraint.required(counts, copies)

    def _keep_answers(self, numbers: Iterable[int], counts: _Counts, copies: Copies, solution: Solution) -> None:
        """Let attributes that code does nothing with but compare them follow what they are compared with.

        `if self.inputs != self.outputs` asks whether there is a layer between the two: where 32 outputs become 16, as
        many as there were inputs, 16 inputs become 8.
        """
        for number in numbers:
            values = {**self.old, **solution.values}
            if not self.constraints[number].is_comparison or self._holds(number, counts, copies, values):
                continue
            compared = sorted(self.attributes[number], key=lambda each: (each.module, str(each)))
            changed = [each for each in compared if each in solution.values and self.old[each] > 0]
            for attribute in (each for each in compared if each not in solution.values):
                asked = self.by_attribute[attribute]
                if not changed or not all(self.constraints[each].is_comparison for each in asked):
                    continue
                followed = self.old[attribute] * solution.values[changed[0]] // self.old[changed[0]]
                tried = {**values, attribute: max(followed, 1)}
                if all(self._holds(each, counts, copies, tried) for each in asked):
                    solution.values[attribute] = tried[attribute]
                    break

    def _must_stay(self, attribute: Attribute, counts: _Counts, copies: Copies) -> bool:
        """Return whether code asks for what an attribute is now, as it does for the number of heads when dims go."""
        asked = (self.constraints[number] for number in self.by_attribute[attribute])
        return any(
            each.expression == attribute and not each.soft and each.required(counts, copies) == self.old[attribute]
            for each in asked
        )


def units_of(labels: Labels, constraint: Constraint) -> Indices:
    """Return the units that a constraint counts, in the axis and in the sizes that it is computed from."""
    vectors = [part.vector for part in expressions_within(constraint.expression) if isinstance(part, Size)]
    vectors += [constraint.vector] if constraint.vector is not None else []
    found = [labels.units_at(vector).reshape(-1) for vector in vectors]
    units = numpy.unique(numpy.concatenate(found)) if found else numpy.zeros(0, numpy.int64)
    return units[units > 0]
