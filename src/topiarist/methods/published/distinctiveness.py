"""Distinctiveness as published: one sweep over pairs of units that do the same, or the opposite.

After Gedeon and Harris (1991), as Tanovic applies it to a trained network (Comparison of distinctiveness pruning and
genetic algorithms for the reduction of a fully trained neural network). The activations of two units over all samples
are two vectors. Below a threshold angle the units are similar: one is removed, and its outgoing weights are added to
the other's. Above 180° minus the threshold they are complementary: both are removed. The text says that weights and
biases are summed; a sum of incoming weights would make another unit, so outgoing weights are our reading.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy
from numpy.typing import NDArray
from pydantic import Field

from topiarist.methods.distinctiveness import removal_of, renumbered
from topiarist.methods.job import Request
from topiarist.methods.method import Method, Proposal, Traits
from topiarist.surgery import Edit, Merge, MergeUnits
from topiarist.surgery.choice.activity import activity_of

SIGMOID_CENTRE = 0.5  # the paper moves outputs of a sigmoid from [0, 1] to [−0.5, 0.5]
Floats = NDArray[numpy.float64]
Order = Literal["in order", "most similar first", "all at once"]


class PublishedDistinctiveness(Method):
    """One sweep over the pairs of units of every space, without a refit."""

    name: ClassVar[str] = "published-distinctiveness"
    traits: ClassVar[Traits] = Traits(
        summary="Merge similar pairs of units and delete complementary ones, as published.",
        in_rightsizing=False,
        all_samples=True,
    )

    angle_degrees: float = Field(default=15.0, ge=0, le=90, description="Pairs within this angle are similar.")
    pairs: Order = Field(default="in order", description="The order in which pairs are visited.")
    spaces: tuple[str, ...] | None = Field(default=None, description="Cut only these spaces of units, such as hidden0.")

    @property
    def has_own_target(self) -> bool:
        """The angle decides."""
        return True

    def propose(self, request: Request) -> Proposal:
        """Sweep once over the pairs of each space."""
        edits: list[Edit] = []
        reasons = []
        found = request.cuttable(self.spaces)
        for name in found.spaces:
            seen = activity_of(request.model, found, name, request.batches, most_positions=None)
            if seen is None:
                continue
            angles = angles_between(seen.about(SIGMOID_CENTRE if seen.sigmoid else 0.0))
            decided = sweep(angles, self.angle_degrees, self.pairs)
            merges = tuple(Merge(unit=unit, into=into) for unit, into in sorted(decided.merged.items()))
            edits += [MergeUnits(space=name, merges=merges)] if merges else []
            edits += removal_of({name: renumbered(set(decided.removed), merges)}, refit=False)
            reasons.append(
                f"'{name}': of {len(angles)} units, {len(merges)} are within {self.angle_degrees:g}° of another and"
                f" {len(decided.removed)} go with a complement"
            )
        return Proposal(tuple(edits), tuple(reasons))


@dataclass(frozen=True)
class Sweep:
    """What one sweep over all pairs decides: units merged into others, and units removed with their complement."""

    merged: dict[int, int]
    removed: frozenset[int]


def angles_between(products: Floats) -> Floats:
    """Return the angle of each pair in degrees, from the products of activations; a unit that is zero is at 90°."""
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
    kept = {unit: end for unit, into in merged.items() if (end := _followed(into, merged)) in alive}
    return Sweep(kept, frozenset(removed | (set(merged) - set(kept))))


def _followed(unit: int, merged: dict[int, int]) -> int:
    """Return the unit into which another was merged in the end."""
    while unit in merged:
        unit = merged[unit]
    return unit


def _in_order(angles: Floats, threshold: float) -> tuple[dict[int, int], set[int]]:
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


def _nearest_first(angles: Floats, threshold: float) -> tuple[dict[int, int], set[int]]:
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


def _all_at_once(angles: Floats, threshold: float) -> tuple[dict[int, int], set[int]]:
    """Mark pairs as if none were changed by another: the second of similar ones goes, and both complements."""
    later = numpy.triu(numpy.ones_like(angles, dtype=bool), 1)
    complements = later & (angles > 180 - threshold)
    removed = set(numpy.flatnonzero(complements.any(axis=0) | complements.any(axis=1)).tolist())
    similar = later & (angles < threshold)
    firsts = similar.argmax(axis=0)
    seconds = (unit for unit in numpy.flatnonzero(similar.any(axis=0)).tolist() if unit not in removed)
    return {unit: int(firsts[unit]) for unit in seconds}, removed


VISITS: dict[Order, Callable[[Floats, float], tuple[dict[int, int], set[int]]]] = {
    "in order": _in_order,
    "most similar first": _nearest_first,
    "all at once": _all_at_once,
}
