"""How sparse a network becomes: as its settings say, as its budget asks, or as far as the loss allows."""

import math
from dataclasses import dataclass, replace

from torch import nn

from topiarist.errors import SettingsError
from topiarist.measurement import Budget, BudgetError
from topiarist.measurement.budget import Excess
from topiarist.methods.budget_search import check_drop, halve, weigh
from topiarist.methods.magnitude.sparse import Members, PrunedNetwork, Sparsifying
from topiarist.methods.outcome import Outcome
from topiarist.models import Ensemble

HALVINGS = 10  # of the sparsity that just keeps a budget: to within a thousandth
TRAININGS = 4  # in search of the sparsest network, beside that of the highest sparsity
CLOSER = 0.98  # of what a budget leaves: another training costs more than a few weights
SPARSEST = 0.98  # for a network that cannot lose members
NEED_UNITS = {"parameters": "parameters", "macs": "multiply-accumulates", "latency_ms": "latency"}


@dataclass(frozen=True)
class SparsitySearch:
    """The way from a network to a sparse one that keeps a budget."""

    sparse: Sparsifying
    budget: Budget

    def run(self) -> Outcome:
        """Prune as far as settings or budget say."""
        sparse, job = self.sparse, self.sparse.job
        notes: tuple[str, ...] = ()
        given = [words for name, words in NEED_UNITS.items() if getattr(self.budget, name) is not None]
        if given and not sparse.pruning.units:
            raise SettingsError(
                f"weights that are zero are still parameters, and are multiplied: a limit on {given[0]} needs units"
            )
        if self.budget.limits_size:
            found = self._within()
        elif self.budget.max_drop is not None:
            sparsest = self._sparsest()
            notes = () if sparsest is not None else ("no weight can go within the loss allowed",)
            found = sparsest or PrunedNetwork(sparse.finished(sparse.members, sparse.members))
        else:
            found = sparse.train(sparse.members, sparse.pruning.sparsity)
        reasons = (*sparse.reasons(found), *notes)
        outcome = Outcome(job=job, model=found.model, reasons=reasons, histories=found.histories)
        if self.budget.limits_size:
            check_drop(outcome, self.budget, self._nearest)
        return outcome

    def _within(self) -> PrunedNetwork:
        """Keep the budget with as many members, and then with as little sparsity, as can be."""
        members = self.sparse.members
        while True:
            sparsity = self._fitting(members)
            excess = None
            while sparsity is not None:
                found = self.sparse.train(members, sparsity)
                excess = self._excess(found.model)
                if excess is None:
                    return found
                sparsity = self._sparser(members, sparsity, excess)
            if len(members) == 1:
                raise self._refusal(members, excess)
            members = self._without_weakest(members)

    def _fitting(self, members: Members) -> float | None:
        """Return the lowest sparsity at which the budget is kept, None where it is above the highest allowed."""
        highest = self._highest(members)
        if not self._fits(members, highest):
            return None
        if self._fits(members, 0.0):
            return 0.0
        return halve(highest, 0.0, lambda s: s if self._fits(members, s) else None, steps=HALVINGS) or highest

    def _fits(self, members: Members, sparsity: float) -> bool:
        """Return whether members pruned to a sparsity keep the budget; of units, widths alone may say so."""
        sizes, job = self.budget.sizes, self.sparse.job
        limits = {"parameters": sizes.parameters, "macs": sizes.macs}
        if members == (job.whole,) and sizes == Budget(**limits):
            widths, costs = self.sparse.widths_at(sparsity), job.request().costs
            if widths is not None:
                return all(limit is None or getattr(costs, name)(widths) <= limit for name, limit in limits.items())
        return self._excess(self.sparse.at_once(members, sparsity)) is None

    def _sparser(self, members: Members, sparsity: float, excess: Excess) -> float | None:
        """Return a sparsity that makes up for what a trained network has too much; None where there is none."""
        highest = self._highest(members)
        wanted = 1 - (1 - sparsity) * CLOSER / excess.ratio
        return None if sparsity >= highest else min(highest, wanted)

    def _highest(self, members: Members) -> float:
        """Return the sparsity beyond which an ensemble does better with fewer members; a last one may go further."""
        return self.sparse.highest if len(members) > 1 else max(self.sparse.highest, SPARSEST)

    def _without_weakest(self, members: Members) -> Members:
        """Leave the member out that scores least alone; the others stay in order."""
        weakest = min(members, key=self.sparse.job.scored)
        return tuple(member for member in members if member is not weakest)

    def _refusal(self, members: Members, excess: Excess | None) -> BudgetError:
        highest = self._highest(members)
        excess = excess or self._excess(self.sparse.at_once(members, highest))
        what = "its best member alone" if isinstance(self.sparse.job.whole, Ensemble) else "the network"
        pruned = f"{what}, {highest:.0%} of it zero and {self.sparse.bits} bits per weight"
        return BudgetError(f"the budget cannot be met: {pruned}, has {excess}")

    def _sparsest(self) -> PrunedNetwork | None:
        """Find the sparsest network that loses no more than is allowed; None where every one loses more."""
        job, members = self.sparse.job, self.sparse.members
        lowest = job.whole_score - (self.budget.max_drop or 0.0)

        def attempt(log_density: float) -> PrunedNetwork | None:
            found = self.sparse.train(members, 1 - math.exp(log_density))
            return found if job.scored(found.model) >= lowest else None

        least = math.log(1 - self._highest(members))
        return attempt(least) or halve(0.0, least, attempt, steps=TRAININGS)

    def _excess(self, network: nn.Module) -> Excess | None:
        return self.budget.excess(weigh(self.sparse.job, self.budget, network))

    def _nearest(self) -> nn.Module:
        found = replace(self, budget=Budget(max_drop=self.budget.max_drop))._sparsest()
        return self.sparse.job.whole if found is None else found.model
