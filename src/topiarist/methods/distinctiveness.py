"""Distinctiveness: remove the units that do what others do already.

The idea is that of Gedeon and Harris (1991); `published.Distinctiveness` has it as Tanovic applies it. Ours measures
groups in the place of pairs: a unit is not needed where it lies near the *span* of others, not only near one of them.
It merges with the right scale and a constant, keeps one of two complements, and makes up for the rest by a
least-squares refit of the layers that read the units.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy
import torch
from pydantic import Field, model_validator
from torch.nn.modules.conv import _ConvNd

from topiarist.methods.depth import propose_with_blocks
from topiarist.methods.job import Job, Limits, Request
from topiarist.methods.method import Method, Proposal, Resizing, Traits
from topiarist.methods.speed import not_faster
from topiarist.surgery import Edit, Merge, MergeUnits, RemoveUnits
from topiarist.surgery.choice.activity import Activity, activity_of
from topiarist.surgery.choice.allotment import Losses, lost_shares
from topiarist.surgery.choice.choosing import cut_to_widths
from topiarist.surgery.choice.comparing import nearest_widths
from topiarist.surgery.choice.costs import Costs
from topiarist.surgery.width.reexpressions import put_back
from topiarist.tracing import Anatomy
from topiarist.training import TrainConfig

SAME_DEGREES = 0.1  # units nearer than this to a multiple of another, plus a constant, compute the same
SMALLEST_SHARE = 1e-12  # of a unit's variance: what rounding leaves of a unit that the others explain
CHANNEL_BLOCKS = {"AVX512": 16}  # channels that a processor computes at once; 8 where not known better
ROOM = 1.5  # times the cost of the narrowest network in blocks, below which smaller blocks are taken


class Distinctiveness(Method):
    """Where to stop: at an angle, at a fraction of the units, or where a budget given to `resize` decides.

    Without any of them, only units go that are constant or, to within 0.1°, the same as another.
    """

    name: ClassVar[str] = "distinctiveness"
    traits: ClassVar[Traits] = Traits(
        summary="Remove units that others make up for, and refit what reads them.", relative_cost=0.9, marker="circle"
    )

    angle_degrees: float | None = Field(
        default=None, ge=0, le=90, description="Remove units within this angle of the span of those that stay."
    )
    keep_fraction: float | None = Field(
        default=None, gt=0, le=1, description="Fraction of the units of each space that stays."
    )
    rounds: int = Field(default=1, ge=1, description="Cut in this many steps, with retraining between them.")
    spaces: tuple[str, ...] | None = Field(default=None, description="Cut only these spaces of units, such as hidden0.")
    multiple_of: int = Field(default=1, ge=1, description="Keep widths to multiples of this.")
    depth: bool = Field(
        default=False, description="With a budget: also remove whole residual blocks, where answers stay nearer so."
    )

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if self.angle_degrees is not None and self.keep_fraction is not None:
            raise ValueError("angle_degrees and keep_fraction both decide where to stop: give one")
        return self

    @property
    def round_count(self) -> int:
        """Several rounds cut to a fraction or a budget step by step; by an angle, each round looks again."""
        return self.rounds

    @property
    def has_own_target(self) -> bool:
        """Whether an angle or a fraction is given."""
        return self.angle_degrees is not None or self.keep_fraction is not None

    def propose(self, request: Request) -> Proposal:
        """Decide which units are merged and which are removed."""
        if request.limits and self.depth and self.spaces is None:
            return propose_with_blocks(request, self.model_copy(update={"depth": False}).propose)
        found = request.cuttable(self.spaces)
        if request.limits:
            losses = replace(self._losses(request, found), multiple_of=self.multiple_of)
            limits = request.limits
            reason = f"widths allotted within {worded(limits)}"
            if "latency_ms" in limits:
                return self._choose(request, found, losses.measured_within(limits), reason)
            candidates = losses.candidates_within(parameters=limits.get("parameters"), macs=limits.get("macs"))
            known = request.model, request.job.example_input, request.anatomy
            keep = nearest_widths(*known, candidates, request.batches)
            notes = not_faster(request, keep)
            return self._choose(request, found, keep, reason, *notes)
        if self.keep_fraction is not None:
            keep = {name: self._next_width(request, name, space.size) for name, space in found.spaces.items()}
            return self._choose(request, found, keep, f"keep {self.keep_fraction:.0%} of the units of each space")
        return self._span(request, found)

    @classmethod
    def candidate(cls, job: Job, limits: Limits, training: TrainConfig) -> Resizing:
        """Cut channels in blocks, as far as the limits leave a choice."""
        return Resizing.within(cls(multiple_of=channel_multiple(job, limits)), limits)

    def _losses(self, request: Request, found: Anatomy) -> Losses:
        shares = request.remember(
            f"lost shares {self.spaces}", lambda: lost_shares(request.model, found, request.batches)
        )
        costs = request.costs
        if self.spaces is not None:
            costs = Costs(request.model, found, costs.timing)
        return Losses(costs, shares)

    def _next_width(self, request: Request, name: str, size: int) -> int:
        """Return the width of a space after this round: n^(1 − share) · m^share on its way from n to m."""
        assert self.keep_fraction is not None
        last = max(1.0, self.keep_fraction * request.job.widths.get(name, size))
        return min(max(1, round(math.pow(size, 1 - request.share) * math.pow(last, request.share))), size)

    def _choose(self, request: Request, found: Anatomy, keep: Mapping[str, int], *reasons: str) -> Proposal:
        """Choose the units that make up best for the others, for given widths."""
        job = request.job
        cut = cut_to_widths(
            request.model,
            job.example_input,
            keep=keep,
            calibration=job.calibration,
            multiple_of=self.multiple_of,
            anatomy=request.anatomy,
            settling=0,
        )
        left = {name: space.size - len(cut.units.get(name, ())) for name, space in found.spaces.items()}
        widths = ", ".join(f"'{name}' {space.size} → {left[name]}" for name, space in found.spaces.items())
        return Proposal(removal_of(cut.units, refit=True), (f"{reasons[0]}: {widths}", *reasons[1:]), cut.model)

    def _span(self, request: Request, found: Anatomy) -> Proposal:
        """Keep units that span the others."""
        angle = self.angle_degrees
        edits: list[Edit] = []
        reasons, others = [], {}
        for name in found.spaces:
            activity = activity_of(request.model, found, name, request.batches)
            if activity is None:
                continue
            size = len(activity.means)
            kept = set(different_units(activity) if angle is None else spanning_units(activity, angle))
            gone = put_back(tuple(sorted(set(range(size)) - kept)), size, self.multiple_of)
            staying = sorted(set(range(size)) - set(gone))
            merges = [merge for unit in gone if (merge := same_as_one(activity, staying, unit)) is not None]
            edits += [MergeUnits(space=name, merges=tuple(merges))] if merges else []
            others[name] = renumbered(set(gone) - {merge.unit for merge in merges}, merges)
            reasons.append(
                f"'{name}': of {size} units, {len(merges)} are the same as another, opposite or constant"
                + ("" if angle is None else f", and {len(others[name])} within {angle:g}° of the span of those kept")
            )
        return Proposal((*edits, *removal_of(others, refit=True)), tuple(reasons))


def worded(limits: Limits) -> str:
    """Return limits in words."""
    form = {measure: "{:.3g} ms" if measure == "latency_ms" else f"{{:,}} {measure}" for measure in limits}
    return " and ".join(form[measure].format(limit) for measure, limit in limits.items())


def channel_multiple(job: Job, limits: Limits) -> int:
    """Return what widths should be a multiple of: for convolutions a block of channels, or a half, a quarter … of it.

    A processor computes channels in blocks: 9 of them take as long as 16.
    """
    if not any(isinstance(module, _ConvNd) for module in job.whole.modules()):
        return 1
    multiple, costs = CHANNEL_BLOCKS.get(torch.backends.cpu.get_cpu_capability(), 8), job.request().costs
    while multiple > 1 and any(
        ROOM * Losses(costs, {}, multiple).fewest(measure) > limit for measure, limit in limits.items()
    ):
        multiple //= 2
    return multiple


def renumbered(units: set[int], merges: Sequence[Merge]) -> tuple[int, ...]:
    """Return the numbers that units have once others are merged away."""
    gone = sorted(merge.unit for merge in merges)
    return tuple(unit - sum(other < unit for other in gone) for unit in sorted(units))


def removal_of(units: Mapping[str, Sequence[int]], *, refit: bool) -> tuple[Edit, ...]:
    """Return one removal from all spaces together; none where nothing goes."""
    some = {name: tuple(found) for name, found in units.items() if found}
    return (RemoveUnits(units=some, refit=refit),) if some else ()


def spanning_units(activity: Activity, angle_degrees: float) -> list[int]:
    """Return units such that every other lies within an angle of their span, by pivoted Cholesky decomposition.

    The angle between a unit and the span of those kept has sin² = the share of its variance that they do not explain.
    The first unit is the one that varies most, the next always the one at the widest angle to those so far.
    """
    products, varies = activity.varied, ~activity.constant
    variances = products.diagonal().clip(min=0)
    scale = numpy.where(varies, numpy.sqrt(numpy.where(varies, variances, 1)), numpy.inf)
    correlations = products / numpy.outer(scale, scale)
    left = varies.astype(float)
    factors = numpy.zeros_like(products)
    kept: list[int] = []
    limit = max(math.sin(math.radians(angle_degrees)) ** 2, SMALLEST_SHARE)
    while len(kept) < len(products):
        unit = int(variances.argmax()) if not kept else int(left.argmax())
        if kept and left[unit] <= limit:
            break
        so_far = factors[: len(kept)]
        row = correlations[unit] - so_far[:, unit] @ so_far
        factors[len(kept)] = row / math.sqrt(left[unit]) if left[unit] > 0 else 0.0
        left = (left - factors[len(kept)] ** 2).clip(min=0)
        kept.append(unit)
        left[kept] = 0
    return sorted(kept)


def different_units(activity: Activity) -> list[int]:
    """Return units of which none is constant, or a multiple of another plus a constant; the first of equals stays."""
    kept: list[int] = []
    for unit in numpy.flatnonzero(~activity.constant).tolist():
        if same_as_one(activity, kept, unit) is None:
            kept.append(unit)
    return kept or [0]


def same_as_one(activity: Activity, kept: Sequence[int], unit: int) -> Merge | None:
    """Return what a unit merges into: a unit of which it is a multiple plus a constant, or any if it is constant."""
    if not kept:
        return None
    means = activity.means if activity.shiftable else numpy.zeros_like(activity.means)
    if activity.constant[unit]:
        return Merge(unit=unit, into=kept[0], scale=0.0, shift=float(means[unit]))
    variances = activity.varied.diagonal()
    products, others = activity.varied[unit, kept], numpy.where(activity.constant[kept], numpy.inf, variances[kept])
    explained = products**2 / others
    best = int(explained.argmax())
    if variances[unit] - explained[best] > math.sin(math.radians(SAME_DEGREES)) ** 2 * variances[unit]:
        return None
    scale = products[best] / others[best]
    return Merge(unit=unit, into=kept[best], scale=float(scale), shift=float(means[unit] - scale * means[kept[best]]))
