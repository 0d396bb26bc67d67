"""Pairs of units that do the same, or the opposite: distinctiveness as Gedeon and Harris (1991) measure it.

The activations of two units over all samples are two vectors. Below a threshold angle the units are similar, above 180°
minus the threshold complementary.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy
from numpy.typing import NDArray

Floats = NDArray[numpy.float64]
Order = Literal["in order", "most similar first", "all at once"]


@dataclass(frozen=True)
class Sweep:
    """What one sweep over all pairs decides: units merged into others, and units removed with their complement."""

    merged: dict[int, int]
    removed: frozenset[int]


def angles_between(products: Floats) -> Floats:
    """Give the angle of each pair in degrees, from the products of activations; a unit that is zero is at 90°."""
    lengths = numpy.sqrt(products.diagonal().clip(min=0))
    scale = numpy.where(lengths > 0, lengths, numpy.inf)
    cosines = products / numpy.outer(scale, scale)
    angles: Floats = numpy.degrees(numpy.arccos(cosines.clip(-1, 1)))
    return angles


def sweep(angles: Floats, threshold: float, order: Order = "in order") -> Sweep:
    """Visit each pair of units once: merge the second into the first if similar, remove both if complementary.

    In order: each unit that is left, from the first, with each that follows it. Most similar first: the pair nearest
    to 0° or 180° comes first. All at once: every pair counts, also one of whose units another pair has taken away. At
    least one unit stays.
    """
    merged, removed = VISITS[order](angles, threshold)
    if len(merged) + len(removed) == len(angles):
        removed.remove(min(removed))
    alive = set(range(len(angles))) - set(merged) - removed
    kept = {unit: end for unit, into in merged.items() if (end := followed(into, merged)) in alive}
    return Sweep(kept, frozenset(removed | (set(merged) - set(kept))))


def followed(unit: int, merged: dict[int, int]) -> int:
    """Give the unit into which another has gone in the end."""
    while unit in merged:
        unit = merged[unit]
    return unit


def in_order(angles: Floats, threshold: float) -> tuple[dict[int, int], set[int]]:
    """Visit pairs by number."""
    alive = numpy.ones(len(angles), dtype=bool)
    merged: dict[int, int] = {}
    removed: set[int] = set()
    for unit in range(len(angles)):
        if not alive[unit]:
            continue
        later = numpy.flatnonzero(alive[unit + 1 :]) + unit + 1
        complements = later[angles[unit, later] > 180 - threshold]
        end = complements[0] if len(complements) else len(angles)
        similar = later[(later < end) & (angles[unit, later] < threshold)]
        merged |= dict.fromkeys(similar.tolist(), unit)
        alive[similar] = False
        if len(complements):
            removed |= {unit, int(end)}
            alive[[unit, end]] = False
    return merged, removed


def nearest_first(angles: Floats, threshold: float) -> tuple[dict[int, int], set[int]]:
    """Visit pairs by how near they are to the same or the opposite direction; of equals, by number."""
    distance = numpy.minimum(angles, 180 - angles)
    first, second = numpy.triu_indices(len(angles), 1)
    order = numpy.argsort(distance[first, second], kind="stable")
    order = order[distance[first[order], second[order]] < threshold]
    alive = [True] * len(angles)
    merged: dict[int, int] = {}
    removed: set[int] = set()
    for one, other in zip(first[order].tolist(), second[order].tolist(), strict=True):
        if alive[one] and alive[other]:
            alive[other] = False
            if angles[one, other] < 90:
                merged[other] = one
            else:
                alive[one] = False
                removed |= {one, other}
    return merged, removed


def all_at_once(angles: Floats, threshold: float) -> tuple[dict[int, int], set[int]]:
    """Mark pairs as if none were changed by another: the second of similar ones goes, and both complements."""
    later = numpy.triu(numpy.ones_like(angles, dtype=bool), 1)
    complements = later & (angles > 180 - threshold)
    removed = set(numpy.flatnonzero(complements.any(axis=0) | complements.any(axis=1)).tolist())
    similar = later & (angles < threshold)
    firsts = similar.argmax(axis=0)
    seconds = (unit for unit in numpy.flatnonzero(similar.any(axis=0)).tolist() if unit not in removed)
    return {unit: int(firsts[unit]) for unit in seconds}, removed


VISITS: dict[Order, Callable[[Floats, float], tuple[dict[int, int], set[int]]]] = {
    "in order": in_order,
    "most similar first": nearest_first,
    "all at once": all_at_once,
}
