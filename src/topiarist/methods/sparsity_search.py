"""How sparse a network becomes: as its settings say, as its budget asks, or as far as the loss allows."""

import math
from dataclasses import dataclass, replace

from torch import nn

from topiarist.errors import SettingsError
from topiarist.measurement import Budget, BudgetError
from topiarist.measurement.budget import Excess
from topiarist.methods.jobs import scored
from topiarist.methods.shaping import Shaped, lost_too_much, weigh
from topiarist.methods.sparse import Members, Pruned, Sparsifying
from topiarist.models import Ensemble

HALVINGS = 10
TRAININGS = 4  # in search of the sparsest network, beside that of the highest sparsity
CLOSER = 0.98
SPARSEST = 0.98
NEED_UNITS = {"parameters": "parameters", "macs": "multiply-accumulates", "latency_ms": "latency"}


@dataclass(frozen=True)
class SparsitySearch:
    """The way from a network to a sparse one that keeps a budget."""

    sparse: Sparsifying
    budget: Budget

    def run(self) -> Shaped:
        """Prune as far as settings or budget say."""
        sparse, job = self.sparse, self.sparse.job
        notes: tuple[str, ...] = ()
        self._check()
        if self.budget.limits_size:
            found = self._within()
        elif self.budget.max_drop is not None:
            least = self._least()
            notes = () if least is not None else ("no weight can go within the loss allowed",)
            found = least or Pruned(sparse.finished(sparse.members, sparse.members))
        else:
            found = sparse.train(sparse.members, sparse.pruning.sparsity)
        scores = job.whole_score, scored(job.score, found.model)
        self._check_loss(*scores)
        return Shaped(found.model, scores, (*sparse.reasons(found), *notes), found.histories)

    def _check(self) -> None:
        given = [words for name, words in NEED_UNITS.items() if getattr(self.budget, name) is not None]
        if given and not self.sparse.pruning.units:
            raise SettingsError(
                f"weights that are zero are parameters still, and are multiplied: a limit on {given[0]} needs units"
            )

    def _within(self) -> Pruned:
        """Keep the budget with as many members, and then with as little sparsity, as can be."""
        members = self.sparse.members
        while True:
            sparsity = self._fitting(members)
            excess = self._excess(self.sparse.at_once(members, self._highest(members)))
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
        """Give the lowest sparsity at which the budget is kept, None where it is above the highest allowed."""
        low, high = 0.0, self._highest(members)
        if self._excess(self.sparse.at_once(members, high)) is not None:
            return None
        if self._excess(self.sparse.at_once(members, low)) is None:
            return low
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            if self._excess(self.sparse.at_once(members, middle)) is None:
                high = middle
            else:
                low = middle
        return high

    def _sparser(self, members: Members, sparsity: float, excess: Excess) -> float | None:
        """Give a sparsity that makes up for what a trained network has too much; None where there is none."""
        highest = self._highest(members)
        wanted = 1 - (1 - sparsity) * CLOSER * excess.limit / excess.found
        return None if sparsity >= highest else min(highest, wanted)

    def _highest(self, members: Members) -> float:
        """Give the sparsity beyond which an ensemble does better with fewer members; a last one may go further."""
        return self.sparse.highest if len(members) > 1 else max(self.sparse.highest, SPARSEST)

    def _without_weakest(self, members: Members) -> Members:
        """Leave the member out that scores least alone; the others stay in order."""
        weakest = min(members, key=lambda member: scored(self.sparse.job.score, member))
        return tuple(member for member in members if member is not weakest)

    def _refusal(self, members: Members, excess: Excess | None) -> BudgetError:
        what = "its best member alone" if isinstance(self.sparse.job.whole, Ensemble) else "the network"
        pruned = f"{what}, {self._highest(members):.0%} of it zero and {self.sparse.bits} bits a weight"
        return BudgetError(f"the budget cannot be met: {pruned}, has {excess}")

    def _least(self) -> Pruned | None:
        """Find the sparsest network that loses no more than is allowed; None where every one loses more."""
        job, members = self.sparse.job, self.sparse.members
        lowest = job.whole_score - (self.budget.max_drop or 0.0)
        found, low, high = None, 0.0, self._highest(members)
        sparsest = self.sparse.train(members, high)
        if scored(job.score, sparsest.model) >= lowest:
            return sparsest
        for _ in range(TRAININGS):
            middle = 1 - math.sqrt((1 - low) * (1 - high))
            tried = self.sparse.train(members, middle)
            if scored(job.score, tried.model) >= lowest:
                found, low = tried, middle
            else:
                high = middle
        return found

    def _excess(self, network: nn.Module) -> Excess | None:
        return self.budget.excess(weigh(self.sparse.job, self.budget, network))

    def _check_loss(self, before: float, after: float) -> None:
        """Refuse a network that fits the budget's size and not its loss."""
        allowed = self.budget.max_drop
        if not self.budget.limits_size or allowed is None or after >= before - allowed:
            return
        free = Budget(max_drop=allowed)
        nearest = replace(self, budget=free)._least()
        network = self.sparse.job.whole if nearest is None else nearest.model
        raise lost_too_much(before - after, allowed, weigh(self.sparse.job, free, network))
