"""Factorisation: layers whose weights have few directions become the product of two thinner ones.

The nearest matrix of a rank is the truncated singular value decomposition (Eckart and Young, 1936). All layers keep
the same share of their squared singular values, so that each loses as much as any other.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
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
        found = request.remember(f"factorable layers {self.layers}", lambda: factorable_layers(request, self.layers))
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

    def saved(self, measure: Measure, rank: int) -> int:
        """Return what a rank saves."""
        each = 1 if measure == "parameters" else self.positions
        return (self.rows * self.columns - rank * (self.rows + self.columns)) * each


@dataclass(frozen=True)
class FactorableLayers:
    """The layers of a network that could become two, and what the whole of it costs."""

    known: Mapping[str, FactorableLayer]
    totals: Mapping[Measure, int]

    def ranks(self, keep: float) -> dict[str, int]:
        """Return the ranks that keep a share, of the layers that become smaller by it."""
        found = {name: smallest_rank(layer.values, keep) for name, layer in self.known.items()}
        return {name: rank for name, rank in found.items() if self.known[name].saved("parameters", rank) > 0}

    def cost(self, measure: Measure, ranks: Mapping[str, int]) -> int:
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
    found, costs = request.anatomy, request.costs
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
        known[name] = FactorableLayer(rows, columns, costs.positions[name], values)
    if not known:
        raise ModelError("the network has no layer that could become two thinner ones")
    return FactorableLayers(known, {"parameters": costs.parameters({}), "macs": costs.macs({})})
