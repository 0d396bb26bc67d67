"""Labels: which positions of which tensors belong together, so that they can only go together.

Units that meet are tied (union–find); a unit that turns out to be a product is replaced by its factors. All of it works
on whole label vectors (see `units.py`).
"""

import numpy
from numpy.typing import NDArray

from topiarist.tracing.units import Reason, UnitForest
from topiarist.tracing.vectors import Axes, Vector, common, follow, or_none, paired_columns


class Labels(UnitForest):
    """Units that can be tied, merged into products and split again."""

    def tie(self, left: Vector, right: Vector, reason: Reason) -> None:
        """Let two vectors stand for the same units, position by position; `reason` is for what has to be fixed."""
        while True:
            one, other = self._padded(self.units_at(left), self.units_at(right))
            different = (one != other).any(1)
            if not different.any():
                return
            left, right, one, other = left[different], right[different], one[different], other[different]
            one, other = self._without_common(one, other)
            first, second = (one > 0).sum(1), (other > 0).sum(1)
            empty = (first == 0) | (second == 0)
            if empty.any():  # beside nothing, or beside a part of itself, a unit has to stay
                self.fix(numpy.concatenate([one[empty], other[empty]]), reason)
            single = (first == 1) & (second == 1)
            self._unite(one[single, 0], other[single, 0])
            self._define(one[(first == 1) & (second > 1), 0], other[(first == 1) & (second > 1)])
            self._define(other[(second == 1) & (first > 1), 0], one[(second == 1) & (first > 1)])
            several = (first > 1) & (second > 1)
            if several.any():
                self._unite_products(one[several], other[several], reason)
            rest = ~empty & ~(self._all_fixed(one) & self._all_fixed(other))
            left, right = left[rest], right[rest]
            if not len(left):
                return

    def _all_fixed(self, units: Vector) -> NDArray[numpy.bool_]:
        """Return the positions all of whose units are fixed: what they are tied to does not matter."""
        fixed: NDArray[numpy.bool_] = ((self._why[self.roots(units)] > 0) | (units == 0)).all(1)
        return fixed

    @staticmethod
    def _padded(one: Vector, other: Vector) -> tuple[Vector, Vector]:
        width = max(one.shape[1], other.shape[1])
        first, second = (
            numpy.concatenate([each, numpy.zeros((len(each), width - each.shape[1]), numpy.int64)], axis=1)
            for each in (one, other)
        )
        return first, second

    @staticmethod
    def _without_common(one: Vector, other: Vector) -> tuple[Vector, Vector]:
        """Leave out, row by row, what both have; what stays keeps its order, 0 behind it."""
        if one.shape[1] == 1:
            return one, other
        same = (one[:, :, None] == other[:, None, :]) & (one[:, :, None] > 0)

        def rest(units: Vector, common: NDArray[numpy.bool_]) -> Vector:
            left = numpy.where(common, 0, units)
            order = numpy.argsort(left == 0, axis=1, kind="stable")
            return numpy.take_along_axis(left, order, axis=1)

        return rest(one, same.any(2)), rest(other, same.any(1))

    def _unite(self, left: Vector, right: Vector) -> None:
        """Make plain units one, pair by pair; the earliest number stands for all."""
        while len(left):
            one, other = self.roots(left), self.roots(right)
            different = one != other
            left, right, one, other = left[different], right[different], one[different], other[different]
            if not len(left):
                return
            low, high = numpy.minimum(one, other), numpy.maximum(one, other)
            self._unite_families(low, high)
            self._parents[high] = low
            roots = self.roots(low)  # where pairs of this round hang together, not `low` itself
            for units in (low, high):
                numpy.bitwise_or.at(self._marks, roots, self._marks[units])
                unknown = (self._why[units] > 0) & (self._why[roots] == 0)
                self._why[roots[unknown]] = self._why[units[unknown]]

    def _unite_families(self, left: Vector, right: Vector) -> None:
        pairs = numpy.stack([self.families(left), self.families(right)], 1)
        pairs = pairs[:1] if (pairs == pairs[0]).all() else numpy.unique(pairs, axis=0)
        for pair in pairs.tolist():
            low, high = sorted(follow(self._family_parents, numpy.array(pair)).tolist())
            self._family_parents[high] = low

    def _define(self, units: Vector, rows: Vector) -> None:
        """Let plain units stand for products; of several products for one unit, the first in this round.

        A unit that was just tied to one of its own factors is left for the next round, which fixes the others.
        """
        units, rows = self.roots(units), self.roots(rows)
        apart = ~(rows == units[:, None]).any(1)
        units, rows = units[apart], rows[apart]
        if not len(units):
            return
        units, first = numpy.unique(units, return_index=True)
        rows = rows[first]
        waits = self._products[rows].any(1) | (self._products[units] > 0) | numpy.isin(rows, units).any(1)
        waits[0] &= bool(self._products[rows[0]].any() or self._products[units[0]])  # a circle begins somewhere
        units, rows = units[~waits], rows[~waits]
        start, missing = len(self._factors), rows.shape[1] - self._factors.shape[1]
        self._factors = numpy.pad(self._factors, ((0, 0), (0, max(missing, 0))))
        self._factors = numpy.concatenate([self._factors, numpy.pad(rows, ((0, 0), (0, max(-missing, 0))))])
        self._products[units] = numpy.arange(start, len(self._factors))
        for column in rows.T:
            numpy.bitwise_or.at(self._marks, column, self._marks[units])
            free = (self._why[column] == 0) & (self._why[units] > 0)
            self._why[column[free]] = self._why[units[free]]
        self._marks[0] = self._why[0] = 0

    def _unite_products(self, one: Vector, other: Vector, reason: Reason) -> None:
        """Pair the factors of products that meet: those that change with the positions in the same way."""
        counts = (one > 0).sum(1), (other > 0).sum(1)
        if any((count != count[0]).any() for count in counts):
            self.fix(numpy.concatenate([one, other]), reason)
            return
        pairs = paired_columns(one[:, : counts[0][0]], other[:, : counts[1][0]])
        for place, own in pairs:
            self._unite(one[:, place], other[:, own])
        left = [numpy.delete(one, [pair[0] for pair in pairs], 1), numpy.delete(other, [pair[1] for pair in pairs], 1)]
        self.fix(numpy.concatenate([each.reshape(-1, 1) for each in left]), reason)  # none but those that have no like

    def merge(self, vectors: Axes, sizes: list[int]) -> Vector | None:
        """Return the vector of axes that become one, the last of them running fastest; None where none has units."""
        if all(vector is None for vector in vectors):
            return None
        merged = numpy.zeros((1, 0), numpy.int64)
        for vector, size in zip(vectors, sizes, strict=True):
            own = numpy.zeros((size, 0), numpy.int64) if vector is None else vector
            before = numpy.repeat(merged, size, axis=0)
            merged = numpy.concatenate([before, numpy.tile(own, (len(merged), 1))], axis=1)
        return merged

    @staticmethod
    def joined(vectors: list[Vector]) -> Vector:
        """Return the vector of axes that are listed one after the other."""
        width = max(vector.shape[1] for vector in vectors)
        return numpy.concatenate([numpy.pad(vector, ((0, 0), (0, width - vector.shape[1]))) for vector in vectors])

    def split(self, vector: Vector | None, sizes: list[int], reason: Reason) -> Axes:
        """Return the vectors of an axis that becomes several, the last of them running fastest."""
        if vector is None or len(sizes) == 1:
            return [None] * len(sizes) if vector is None else [vector]
        rows, columns = sizes[0], len(vector) // sizes[0]
        if columns == 1:
            return [vector, *self.split(None, sizes[1:], reason)]
        if rows == 1:
            return [None, *self.split(vector, sizes[1:], reason)]
        across, along = self._split_in_two(vector, rows, columns, reason)
        return [across, *self.split(along, sizes[1:], reason)]

    def _split_in_two(
        self, vector: Vector, rows: int, columns: int, reason: Reason
    ) -> tuple[Vector | None, Vector | None]:
        units = self.units_at(vector)
        table = units.reshape(rows, columns, -1)
        across = common(table)  # what a row has at all its positions
        along = common(table.transpose(1, 0, 2))
        both = numpy.concatenate([numpy.repeat(across, columns, axis=0), numpy.tile(along, (rows, 1))], axis=1)
        if numpy.array_equal(*self._padded(self._in_order(both), self._in_order(units))):
            return or_none(self._in_order(across)), or_none(self._in_order(along))
        if (
            units.shape[1] == 1 and units.all() and len(numpy.unique(units)) == len(units)
        ):  # plain: they become products
            first, second = self.create(rows), self.create(columns)
            product = numpy.concatenate([numpy.repeat(first, columns, 0), numpy.tile(second, (rows, 1))], axis=1)
            self._define(units[:, 0], product)
            return first, second
        for row in range(1, rows):  # mixed: the same column of every row goes together
            self.tie(table[0], table[row], reason)
        return None, self.units_at(table[0])

    def copy(self) -> "Labels":
        """Return labels that can change without changing these."""
        made = Labels()
        for name, value in vars(self).items():
            setattr(made, name, value.copy() if isinstance(value, (numpy.ndarray, list)) else value)
        return made
