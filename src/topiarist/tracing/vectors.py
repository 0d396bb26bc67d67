"""Label vectors, and what can be said of them by themselves."""

from itertools import permutations

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


def paired_columns(one: Vector, other: Vector) -> list[tuple[int, int]]:
    """Return which columns of two tables of units change at the same positions, each paired with one other at most.

    All of them are paired where that is possible; the others are left out.
    """
    if one.shape[1] == other.shape[1]:
        for order in permutations(range(one.shape[1])):
            if all(correspond(one[:, place], other[:, own]) for place, own in enumerate(order)):
                return list(enumerate(order))
    pairs: list[tuple[int, int]] = []
    for place in range(one.shape[1]):
        taken = {own for _, own in pairs}
        free = (own for own in range(other.shape[1]) if own not in taken)
        match = next((own for own in free if correspond(one[:, place], other[:, own])), None)
        if match is not None:
            pairs.append((place, match))
    return pairs
