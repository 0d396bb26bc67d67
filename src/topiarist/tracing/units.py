"""Units: what is known of them, and which of them are at the positions of a label vector.

A label vector (n_positions, n_factors) lies along one axis of a tensor. Each entry is a unit, 0 for none: a position
goes when any of its units goes. Positions with one unit are plain; those with several are products, as head × dim is
after heads and their dims were merged into one axis.
"""

from collections.abc import Callable
from enum import IntFlag

import numpy
from numpy.typing import NDArray

from topiarist.tracing.vectors import Vector, follow

Reason = str | Callable[[], str]  # a call where finding the words costs something
_LARGEST = numpy.iinfo(numpy.int64).max


class Mark(IntFlag):
    """What happens to units on the way, apart from being written and read by parameters."""

    AVERAGED = 1  # a mean or a norm runs over them
    ESCAPED = 2  # their values are summed, or multiplied with other activations: not only parameters read them
    MODULATED = 4  # values which do not come from their own writers are combined with them
    HEADS = 8  # matrices of activations are multiplied one by one along them
    DIMS = 16  # they are columns of such a matrix


class UnitForest:
    """All units found so far: a union–find forest with families, products, reasons and marks.

    The family of a unit are those that it was created with and those that these were tied to: units of one space.
    """

    def __init__(self) -> None:
        self._count = 1  # number 0 stands for no unit
        self._parents = numpy.arange(64)
        self._families = numpy.zeros(64, numpy.int64)
        self._family_parents = numpy.arange(64)
        self._family_count = 1
        self._why = numpy.zeros(64, numpy.int64)  # number of the reason why a unit is fixed; 0 where it is not
        self._marks = numpy.zeros(64, numpy.int64)
        self._products = numpy.zeros(64, numpy.int64)  # number of the row of factors; 0 for a plain unit
        self._factors = numpy.zeros((1, 2), numpy.int64)  # of each product, 0 behind the last
        self.reasons: list[str] = [""]

    def create(self, count: int) -> Vector:
        """Return fresh units (count, 1) of one new family."""
        start = self._count
        self._count += count
        if self._count > len(self._parents):
            size = max(2 * len(self._parents), self._count)
            old = len(self._parents)
            self._parents = numpy.concatenate([self._parents, numpy.arange(old, size)])
            self._families, self._why, self._marks, self._products = (
                numpy.concatenate([array, numpy.zeros(size - old, numpy.int64)])
                for array in (self._families, self._why, self._marks, self._products)
            )
        if self._family_count >= len(self._family_parents):
            size = 2 * len(self._family_parents)
            self._family_parents = numpy.concatenate([self._family_parents, numpy.arange(size // 2, size)])
        self._families[start : self._count] = self._family_count
        self._family_count += 1
        return numpy.arange(start, self._count).reshape(count, 1)

    def roots(self, units: Vector) -> Vector:
        """Return the numbers that stand for units; products stay what they are."""
        return follow(self._parents, units)

    def families(self, units: Vector) -> Vector:
        """Return the families of units that are roots."""
        return follow(self._family_parents, self._families[units])

    def units_at(self, vector: Vector) -> Vector:
        """Return the plain units at each position (n_positions, n_factors), in order, 0 behind the last."""
        found = self.roots(vector)
        while self._products[found].any():
            found = self._in_order(self.roots(self._expanded(found)))
        return found if found.shape[1] == 1 else self._in_order(found)

    def _expanded(self, found: Vector) -> Vector:
        """Replace each product by its factors."""
        rows = self._products[found]
        wide = self._factors[rows]  # (n_positions, n_factors, most)
        wide[:, :, 0] = numpy.where(rows > 0, wide[:, :, 0], found)
        return wide.reshape(len(found), -1)

    def _in_order(self, found: Vector) -> Vector:
        """Sort the units at each position by family, name each once, and leave out columns without any."""
        key = numpy.where(found > 0, self.families(found) * self._count + found, _LARGEST)
        order = numpy.argsort(key, axis=1, kind="stable")
        sorted_units = numpy.take_along_axis(found, order, axis=1)
        repeated = numpy.zeros(found.shape, bool)
        repeated[:, 1:] = (sorted_units[:, 1:] == sorted_units[:, :-1]) & (sorted_units[:, 1:] > 0)
        if repeated.any():
            return self._in_order(numpy.where(repeated, 0, sorted_units))
        width = max(int((sorted_units > 0).sum(1).max(initial=0)), 1)
        return sorted_units[:, :width]

    def fix(self, vector: Vector, reason: Reason) -> None:
        """Record that the units at some positions can neither go nor come, and why; the first reason counts."""
        units = self.units_at(vector)
        new = units[(units > 0) & (self._why[units] == 0)]
        if len(new):
            text = reason if isinstance(reason, str) else reason()
            if text not in self.reasons:
                self.reasons.append(text)
            self._why[new] = self.reasons.index(text)

    def reason(self, unit: int) -> str | None:
        """Return why a unit, which must be a root, is fixed; None where it is not."""
        return self.reasons[self._why[unit]] or None

    def why(self, units: Vector) -> Vector:
        """Return numbers for the reasons why units, which must be roots, are fixed; 0 where they are not."""
        return self._why[units]

    def mark(self, vector: Vector, mark: Mark) -> None:
        """Mark the units at some positions."""
        self._marks[self.units_at(vector)] |= mark
        self._marks[0] = 0

    def marks(self, units: Vector) -> Mark:
        """Return the marks that some of units, which must be roots, have."""
        return Mark(int(numpy.bitwise_or.reduce(self._marks[units])))

    def count(self, vector: Vector, copies: NDArray[numpy.int64]) -> int:
        """Return how many positions there are when each unit is there `copies` times; number 0 must have 1."""
        return int(copies[self.units_at(vector)].prod(axis=1).sum())

    def alive(self, vector: Vector, gone: NDArray[numpy.bool_]) -> NDArray[numpy.bool_]:
        """Return the positions none of whose units is gone; number 0 must not be."""
        return ~numpy.asarray(gone[self.units_at(vector)].any(axis=1))

    def __len__(self) -> int:
        return self._count
