"""Label vectors, and what can be said of them by themselves."""

import numpy
from numpy.typing import NDArray

Vector = NDArray[numpy.int64]
Axes = list[Vector | None]  # one vector per axis of a tensor; None where it has no units: batch, tokens, height, width


def follow(parents: Vector, units: Vector) -> Vector:
    """Follow parents to the end, and remember the way."""
    found = parents[units]
    while True:
        further = parents[found]
        if (further == found).all():
            parents[units] = found
            return found
        found = further


def common(table: Vector) -> Vector:
    """Return, row by row (n_rows, n_positions, n_factors), the units that all positions of the row have."""
    first = table[:, 0, :]
    held = (first[:, None, :, None] == table[:, :, None, :]).any(3).all(1)
    return numpy.where(held, first, 0)


def or_none(vector: Vector) -> Vector | None:
    """Return a vector; None where it has no units."""
    return vector if vector.any() else None


def correspond(one: Vector, other: Vector) -> bool:
    """Return whether two columns of units change at the same positions."""
    pairs = len(numpy.unique(numpy.stack([one, other], 1), axis=0))
    return pairs == len(numpy.unique(one)) == len(numpy.unique(other))
