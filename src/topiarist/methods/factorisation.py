"""Factorisation: layers whose weights have few directions become the product of two thinner ones.

The nearest matrix of a rank is the truncated singular value decomposition (Eckart and Young, 1936). All layers keep
the same share of their squared singular values, so that each loses as much as any other.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import ClassVar

import numpy
from pydantic import Field

from topiarist.errors import ModelError
from topiarist.methods.distinctiveness import Distinctiveness, channel_multiple
from topiarist.methods.job import Job, Limits, Request
from topiarist.methods.method import Method, Proposal, Resizing, Traits
from topiarist.surgery import FactoriseLayer, Plan, apply
from topiarist.surgery.advice.spectra import smallest_rank, weight_spectrum
from topiarist.surgery.choice.allotment import LimitError
from topiarist.surgery.choice.costs import Measure
from topiarist.surgery.depth.factorising import can_factorise
from topiarist.surgery.layers import weight_of
from topiarist.training import TrainConfig

DEFAULT_KEEP = 0.95  # as is usual for principal components; a convention, not tuned
BLOCK = 16  # ranks above one that may take as long: the numbers of a vector of AVX-512
JUST_BELOW = 1 - 1e-15  # so that no rounding asks for one rank more


class Factorisation(Method):
    """Where to stop: at a share of the squared singular values of each layer, or where a budget decides.

    With a budget, the highest share that its limits allow is kept. A layer is replaced only where that saves something.
    """

    name: ClassVar[str] = "factorisation"
    traits: ClassVar[Traits] = Traits(
        summary="Replace layers of low rank by two thinner ones.", adds_layers=True, marker="inverted"
    )

    keep: float | None = Field(
        default=None, gt=0, le=1, description="Share of the squared singular values that stays; 0.95 without a budget."
    )
    layers: tuple[str, ...] | None = Field(default=None, description="Look only at these layers.")
    remove_first: bool = Field(
        default=False, description="With a budget: first remove units, down to twice its limits."
    )

    @property
    def has_own_target(self) -> bool:
        """Whether a share is given."""
        return self.keep is not None

    def propose(self, request: Request) -> Proposal:
        """Decide which layers become two, and of which rank."""
        if self.remove_first and request.limits:
            return self._after_removal(request)
        if "latency_ms" in request.limits:
            request.timed(request.job.runtime, request.job.threads)
        key = f"factorable layers {self.layers} {request.timing is None}"
        found = request.remember(key, lambda: factorable_layers(request, self.layers))
        own = DEFAULT_KEEP if self.keep is None else self.keep
        keep = found.highest_share(request.limits) if request.limits else own
        ranks = found.ranks(keep)
        kept = ", ".join(f"'{name}' {len(found.known[name].values)} → {rank}" for name, rank in ranks.items())
        reason = f"ranks that keep {keep:.1%} of the squared singular values: {kept or 'no layer becomes smaller'}"
        return Proposal(tuple(FactoriseLayer(layer=name, rank=rank) for name, rank in ranks.items()), (reason,))

    @classmethod
    def candidate(cls, job: Job, limits: Limits, training: TrainConfig) -> Resizing:
        """Remove units down to half of the way first: thin layers of a wide network are still many calls."""
        return Resizing.within(cls(remove_first=True), limits)

    def _after_removal(self, request: Request) -> Proposal:
        job = request.job
        halfway = replace(request, limits={measure: 2 * limit for measure, limit in request.limits.items()})
        units = Distinctiveness(multiple_of=channel_multiple(job, halfway.limits)).propose(halfway)
        narrow = units.model or request.model
        ranks = self.model_copy(update={"remove_first": False}).propose(replace(request, model=narrow, memory={}))
        thin = apply(Plan(ranks.edits), narrow, job.example_input)
        return Proposal((*units.edits, *ranks.edits), (*units.reasons, *ranks.reasons), thin)


@dataclass(frozen=True)
class FactorableLayer:
    """A layer as a matrix (rows, columns) that is applied at some positions, with its singular values."""

    rows: int
    columns: int
    positions: int
    values: Sequence[float]
    saved_ms: Callable[[int], float] | None = None

    def saved(self, measure: Measure, rank: int) -> float:
        """Return what a rank saves."""
        if measure == "latency_ms":
            return 0.0 if self.saved_ms is None else self.saved_ms(rank)
        each = 1 if measure == "parameters" else self.positions
        return (self.rows * self.columns - rank * (self.rows + self.columns)) * each

    def paying_rank(self, rank: int) -> int:
        """Return the highest rank of the next block that saves as much time: a processor computes ranks in blocks."""
        if self.saved_ms is None:
            return rank
        last = min(rank + BLOCK, len(self.values), self.rows * self.columns // (self.rows + self.columns))
        least = self.saved_ms(rank)
        return max([rank, *(higher for higher in range(rank + 1, last + 1) if self.saved_ms(higher) >= least)])


@dataclass(frozen=True)
class FactorableLayers:
    """The layers of a network that could become two, and what the whole of it costs."""

    known: Mapping[str, FactorableLayer]
    totals: Mapping[Measure, float]

    def ranks(self, keep: float) -> dict[str, int]:
        """Return the ranks that keep a share, of the layers that become smaller by it and, where known, faster."""
        found = {name: layer.paying_rank(smallest_rank(layer.values, keep)) for name, layer in self.known.items()}
        measures: list[Measure] = [measure for measure in self.totals if measure != "macs"]
        return {
            name: rank
            for name, rank in found.items()
            if all(self.known[name].saved(measure, rank) > 0 for measure in measures)
        }

    def cost(self, measure: Measure, ranks: Mapping[str, int]) -> float:
        """Return what the network costs with some ranks."""
        return self.totals[measure] - sum(self.known[name].saved(measure, rank) for name, rank in ranks.items())

    def highest_share(self, limits: Limits) -> float:
        """Return the highest share that keeps all limits."""
        for measure, limit in limits.items():
            fewest = self.cost(measure, self.ranks(self.shares[0]))
            if fewest > limit:
                raise LimitError(measure, limit, fewest)

        def exceeds(share: float) -> bool:
            return any(self.cost(measure, self.ranks(share)) > limit for measure, limit in limits.items())

        return self.shares[bisect_left(self.shares, True, lo=1, key=exceeds) - 1]

    @cached_property
    def shares(self) -> list[float]:
        """The shares at which the rank of a layer changes, ascending; at the first, all ranks are 1."""
        found = {1.0}
        for layer in self.known.values():
            kept = numpy.cumsum(numpy.square(layer.values))
            found |= set((JUST_BELOW * kept / kept[-1]).tolist()) if kept[-1] > 0 else set()
        return sorted({min(found) / 2, *found})


def factorable_layers(request: Request, names: Sequence[str] | None) -> FactorableLayers:
    """Return the layers that could become two thinner ones; `names` are those that may, all unless given."""
    found, costs, timing = request.anatomy, request.costs, request.timing
    known = {}
    for name in found.calls if names is None else names:
        possible = name in found.calls and name in costs.positions and can_factorise(request.model, name)
        if not possible or name in found.ignored:
            if names is not None:
                raise ModelError(f"'{name}' is not a layer that could become two thinner ones")
            continue
        weight = weight_of(request.model.get_submodule(name))
        rows, columns = weight.flatten(1).shape
        values = weight_spectrum(weight).singular_values
        saved = None if timing is None else cache(partial(timing.saved_by_rank, name))
        known[name] = FactorableLayer(rows, columns, costs.positions[name], values, saved)
    if not known:
        raise ModelError("the network has no layer that could become two thinner ones")
    totals: dict[Measure, float] = {"parameters": costs.parameters({}), "macs": costs.macs({})}
    return FactorableLayers(known, totals if timing is None else {**totals, "latency_ms": timing.whole_ms})
