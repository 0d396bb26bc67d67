"""Distinctiveness: remove the units that do what others do already.

After Gedeon and Harris (1991), as Tanovic applies it to a trained network (Comparison of distinctiveness pruning and
genetic algorithms for the reduction of a fully trained neural network). `published` is that to the letter: one sweep
over pairs, the outgoing weights of similar units are added, complementary pairs are deleted. The text says that weights
and biases are summed; a sum of incoming weights would make another unit of it, so outgoing weights are our reading.

Ours measures groups in the place of pairs, merges with the right scale and a constant, keeps one of two complements,
and makes up for the rest by a least-squares refit of the layers that read the units.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Self

from pydantic import Field, model_validator

from topiarist.methods.groups import different_units, same_as_one, spanning_units
from topiarist.methods.pairs import Order, angles_between, sweep
from topiarist.methods.spaces import Looked, look
from topiarist.methods.task import Proposal, Task
from topiarist.settings import Settings
from topiarist.surgery import Edit, Merge, MergeUnits, RemoveUnits, choose_units
from topiarist.surgery.choice.allotment import Losses, lost_shares
from topiarist.surgery.choice.costs import Costs
from topiarist.surgery.choice.evidence import Activity, activity_of
from topiarist.surgery.width.reexpressions import put_back

PUBLISHED_ANGLE = 15.0
SIGMOID_CENTRE = 0.5
Removals = dict[str, tuple[int, ...]]


class Distinctiveness(Settings):
    """Where to stop: at an angle, at a fraction of the units, or where a budget given to `shape` says.

    `angle_degrees`: every unit that goes lies within this angle of the span of those that stay; published, of one of
    them. `keep_fraction`: so many of the units of each space stay, those that make up best for the others. Without
    either, and without a budget, only units go that are constant or, to within 0.1°, the same as another; published,
    the angle is 15°. `rounds` above 1 cut to a fraction or a budget step by step, with retraining between; by an angle,
    each round looks again. `spaces` names those to cut, unless all. `pairs` is the order of the published sweep. Widths
    can be kept to multiples of `multiple_of`.
    """

    angle_degrees: float | None = Field(default=None, ge=0, le=90)
    keep_fraction: float | None = Field(default=None, gt=0, le=1)
    published: bool = False
    pairs: Order = "in order"
    rounds: int = Field(default=1, ge=1)
    spaces: tuple[str, ...] | None = None
    multiple_of: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _what_goes_together(self) -> Self:
        if self.angle_degrees is not None and self.keep_fraction is not None:
            raise ValueError("angle_degrees and keep_fraction both say where to stop: give one")
        if self.published and (self.keep_fraction is not None or self.rounds > 1 or self.multiple_of > 1):
            raise ValueError("the published method has one sweep and an angle: no keep_fraction, rounds or multiple_of")
        if not self.published and self.pairs != "in order":
            raise ValueError("the order of pairs belongs to the published method")
        return self

    @property
    def stops_itself(self) -> bool:
        """Say whether an angle or a fraction is given."""
        return self.published or self.angle_degrees is not None or self.keep_fraction is not None

    def propose(self, task: Task) -> Proposal:
        """Decide which units are merged and which are removed."""
        looked = look(task, self.spaces)
        if self.published:
            return self._sweep(looked)
        if task.limits:
            return self._within(task, looked)
        if self.keep_fraction is not None:
            keep = {name: self._wanted(task, name, space.size) for name, space in looked.spaces.items()}
            return self._choose(task, looked, keep, f"{self.keep_fraction:.0%} of the units of each space shall stay")
        return self._span(looked)

    def _wanted(self, task: Task, name: str, size: int) -> int:
        """Give the width of a space after this round, as far towards the last as the task says."""
        assert self.keep_fraction is not None
        last = max(1.0, self.keep_fraction * task.widths.get(name, size))
        return min(max(1, round(math.pow(size, 1 - task.share) * math.pow(last, task.share))), size)

    def _sweep(self, looked: Looked) -> Proposal:
        """Do as the paper does, in every space."""
        angle = PUBLISHED_ANGLE if self.angle_degrees is None else self.angle_degrees
        edits, reasons = [], []
        for name in looked.spaces:
            seen = activity_of(looked.model, looked.anatomy, name, looked.batches, most_positions=None)
            if seen is None:
                continue
            angles = angles_between(seen.about(SIGMOID_CENTRE if seen.sigmoid else 0.0))
            found = sweep(angles, angle, self.pairs)
            merges = tuple(Merge(unit=unit, into=into) for unit, into in sorted(found.merged.items()))
            edits += in_turn(name, merges, sorted(found.removed), refit=False)
            reasons.append(
                f"'{name}': of {len(angles)} units, {len(merges)} are within {angle:g}° of another and"
                f" {len(found.removed)} go with a complement"
            )
        return Proposal(tuple(edits), tuple(reasons))

    def _span(self, looked: Looked) -> Proposal:
        """Keep units that span the others."""
        angle = self.angle_degrees
        edits: list[Edit] = []
        reasons, others = [], {}
        for name in looked.spaces:
            seen = activity_of(looked.model, looked.anatomy, name, looked.batches)
            if seen is None:
                continue
            gone = self._not_needed(seen)
            kept = sorted(set(range(len(seen.means))) - set(gone))
            merges = [merge for unit in gone if (merge := same_as_one(seen, kept, unit)) is not None]
            edits += in_turn(name, merges, (), refit=False)
            others[name] = renumbered(set(gone) - {merge.unit for merge in merges}, merges)
            reasons.append(
                f"'{name}': of {len(seen.means)} units, {len(merges)} are the same as another, opposite or constant"
                + ("" if angle is None else f", and {len(others[name])} within {angle:g}° of the span of those kept")
            )
        return Proposal((*edits, *removal_of(others, refit=True)), tuple(reasons))

    def _not_needed(self, seen: Activity) -> tuple[int, ...]:
        """Give the units that others stand for, as many as multiples of a width allow."""
        angle, size = self.angle_degrees, len(seen.means)
        kept = different_units(seen) if angle is None else spanning_units(seen, angle)
        return put_back(tuple(sorted(set(range(size)) - set(kept))), size, self.multiple_of)

    def _within(self, task: Task, looked: Looked) -> Proposal:
        """Allot widths within limits, then choose units."""
        key = f"losses {self.spaces}"
        if key not in task.memory:
            shares = lost_shares(looked.model, looked.anatomy, looked.batches)
            task.memory[key] = Losses(Costs(looked.model, looked.anatomy), shares)
        losses = replace(task.memory[key], multiple_of=self.multiple_of)
        widths = losses.within(parameters=task.limits.get("parameters"), macs=task.limits.get("macs"))
        asked = " and ".join(f"{limit:,} {measure}" for measure, limit in task.limits.items())
        return self._choose(task, looked, widths, f"widths allotted within {asked}")

    def _choose(self, task: Task, looked: Looked, keep: Mapping[str, int], reason: str) -> Proposal:
        """Choose the units that make up best for the others, for given widths."""
        units = choose_units(
            task.model, task.example_input, keep=keep, calibration=task.calibration, multiple_of=self.multiple_of
        )
        widths = ", ".join(
            f"'{name}' {space.size} → {space.size - len(units.get(name, ()))}" for name, space in looked.spaces.items()
        )
        return Proposal(tuple(removal_of(units, refit=True)), (f"{reason}: {widths}",))


def in_turn(name: str, merges: Sequence[Merge], removed: Sequence[int], *, refit: bool) -> list[Edit]:
    """Give the edits of one space: merges first, then removals with the numbers that units have then."""
    merging: list[Edit] = [MergeUnits(space=name, merges=tuple(merges))] if merges else []
    return [*merging, *removal_of({name: renumbered(set(removed), merges)}, refit=refit)]


def renumbered(units: set[int], merges: Sequence[Merge]) -> tuple[int, ...]:
    """Give the numbers that units have once others are merged away."""
    gone = sorted(merge.unit for merge in merges)
    return tuple(unit - sum(other < unit for other in gone) for unit in sorted(units))


def removal_of(units: Mapping[str, Sequence[int]], *, refit: bool) -> list[Edit]:
    """Give one removal from all spaces together; none where nothing goes."""
    some = {name: tuple(found) for name, found in units.items() if found}
    return [RemoveUnits(units=some, refit=refit)] if some else []
