"""One network pruned while it is trained: to a sparsity, to a budget, or as far as the loss allows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from torch import nn

from topiarist.errors import ModelError, SettingsError
from topiarist.measurement import Budget, BudgetError
from topiarist.measurement.budget import Excess, Footprint, footprint
from topiarist.methods.jobs import Job, scored
from topiarist.methods.retraining import FineTuning, Pupil, Rewinding, copied_with_edits, retrain
from topiarist.methods.shaping import Shaped
from topiarist.models import Ensemble, attach, card_for, card_of
from topiarist.randomness import child_seed
from topiarist.storage.quantising import rounded
from topiarist.surgery import compact
from topiarist.tracing import anatomy
from topiarist.training import History
from topiarist.training.pruner import Pruner, prunable
from topiarist.training.pruning import Pruning

HALVINGS = 10
TRAININGS = 4  # in search of the sparsest network, beside that of the highest sparsity
CLOSER = 0.98
NEED_UNITS = {"parameters": "parameters", "macs": "multiply-accumulates", "latency_ms": "latency"}
SPARSEST = 0.98
Members = tuple[nn.Module, ...]


@dataclass(frozen=True)
class Pruned:
    """A network, an ensemble or not, after pruning, and how each of its members was trained."""

    model: nn.Module
    histories: tuple[History, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def reached(self) -> float:
        """The sparsity that training came to, less than asked for where it ended early."""
        last = [history.epochs[-1].sparsity for history in self.histories if history.epochs]
        known = [sparsity for sparsity in last if sparsity is not None]
        return sum(known) / len(known) if known else 0.0


@dataclass(frozen=True, kw_only=True)
class Sparsifying:
    """What is done to one network."""

    job: Job
    pruning: Pruning
    budget: Budget
    retraining: FineTuning | Rewinding
    bits: Literal[32, 16, 8]
    highest: float
    compacts: bool

    def run(self) -> Shaped:
        """Prune as far as settings or budget say."""
        self._check()
        if self.budget.limits_size:
            found = self._within()
        elif self.budget.allowed_loss is not None:
            found = self._least()
        else:
            found = self._train(self._members, self.pruning.sparsity)
        scores = self.job.whole_score, scored(self.job.score, found.model)
        if self.budget.limits_size:
            self._check_loss(found, *scores)
        return Shaped(found.model, scores, (*self._told(found), *found.notes), found.histories)

    def _check(self) -> None:
        given = [words for name, words in NEED_UNITS.items() if getattr(self.budget, name) is not None]
        if given and not self.pruning.units:
            raise SettingsError(
                f"weights that are zero are parameters still, and are multiplied: a limit on {given[0]} needs units"
            )

    @cached_property
    def _members(self) -> tuple[nn.Module, ...]:
        """The networks that are pruned: the members of an ensemble, or the network itself."""
        whole = self.job.whole
        return tuple(whole.members) if isinstance(whole, Ensemble) else (whole,)

    def _without_weakest(self, members: Members) -> Members:
        """Leave the member out that scores least alone; the others stay in order."""
        weakest = min(members, key=lambda member: scored(self.job.score, member))
        return tuple(member for member in members if member is not weakest)

    def _within(self) -> Pruned:
        """Keep the budget with as many members, and then with as little sparsity, as can be."""
        members = self._members
        while True:
            sparsity = self._fitting(members)
            while sparsity is not None:
                found = self._train(members, sparsity)
                excess = self.budget.excess(self._weigh(found.model))
                if excess is None:
                    return found
                sparsity = self._sparser(members, sparsity, excess)
            if len(members) == 1:
                raise self._refusal(members)
            members = self._without_weakest(members)

    def _sparser(self, members: Members, sparsity: float, excess: Excess) -> float | None:
        """Give a sparsity that makes up for what a trained network has too much; None where there is none."""
        highest = self._highest(members)
        wanted = 1 - (1 - sparsity) * CLOSER * excess.limit / excess.found
        return None if sparsity >= highest else min(highest, wanted)

    def _fitting(self, members: Members) -> float | None:
        """Give the lowest sparsity at which the budget is kept, None where it is above the highest allowed."""
        low, high = 0.0, self._highest(members)
        if self.budget.excess(self._weigh(self._at_once(members, high))) is not None:
            return None
        if self.budget.excess(self._weigh(self._at_once(members, low))) is None:
            return low
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            if self.budget.excess(self._weigh(self._at_once(members, middle))) is None:
                high = middle
            else:
                low = middle
        return high

    def _highest(self, members: Members) -> float:
        """Give the sparsity beyond which an ensemble does better with fewer members; a last one may go further."""
        return self.highest if len(members) > 1 else max(self.highest, SPARSEST)

    def _refusal(self, members: Members) -> BudgetError:
        highest, at_once = self._highest(members), True
        excess = self.budget.excess(self._weigh(self._at_once(members, highest)))
        if excess is None:  # it was training that made it too large
            excess, at_once = self.budget.excess(self._weigh(self._train(members, highest).model)), False
        what = "its best member alone" if isinstance(self.job.whole, Ensemble) else "the network"
        pruned = f"{what}, {highest:.0%} of it zero and {self.bits} bits a weight"
        return BudgetError(f"the budget cannot be met: {pruned}, has {excess}{'' if at_once else ' after training'}")

    def _least(self) -> Pruned:
        """Find the sparsest network that loses no more than is allowed."""
        lowest, members = self.job.whole_score - (self.budget.allowed_loss or 0.0), self._members
        found, low, high = None, 0.0, self._highest(members)
        sparsest = self._train(members, high)
        if scored(self.job.score, sparsest.model) >= lowest:
            return sparsest
        for _ in range(TRAININGS):
            middle = 1 - math.sqrt((1 - low) * (1 - high))
            tried = self._train(members, middle)
            if scored(self.job.score, tried.model) >= lowest:
                found, low = tried, middle
            else:
                high = middle
        if found is not None:
            return found
        return Pruned(self._finished(members, members), notes=("no weight can go within the loss allowed",))

    def _train(self, members: Members, sparsity: float) -> Pruned:
        """Train members again, each by itself, and prune them on the way."""
        pruning = self._pruned_to(sparsity)
        pupils = [
            Pupil(whole=member, cut=member, data=self.job.data, early=self.job.early, seed=self._seed(number))
            for number, member in enumerate(members)
        ]
        trained = retrain(pupils, self.retraining, pruning=pruning)
        model = self._finished(members, [network for network, _ in trained])
        return Pruned(model, tuple(history for _, history in trained))

    def _seed(self, number: int) -> int:
        return self.job.seed if number == 0 else child_seed(self.job.seed, "member", number) % 2**32

    def _pruned_to(self, sparsity: float) -> Pruning:
        """Give the pruning that ends at a sparsity."""
        if self.pruning.pattern is not None:
            return self.pruning
        initial = min(self.pruning.initial_sparsity, sparsity)
        return self.pruning.model_copy(update={"sparsity": sparsity, "initial_sparsity": initial})

    def _at_once(self, members: Members, sparsity: float) -> nn.Module:
        """Prune members by magnitude without training them, to see how large they become."""
        copies = [copied_with_edits(member) for member in members]
        pruning = self._pruned_to(sparsity).model_copy(update={"score": "magnitude"})
        for copy in copies:
            Pruner(copy, pruning, {0: sparsity}, example_input=self.job.sample).before_epoch(0)
        return self._finished(members, copies)

    def _finished(self, members: Members, pruned: Sequence[nn.Module]) -> nn.Module:
        """Cut out what does nothing, round the weights, and make one network of those that members became."""
        done = [rounded(self._compacted(network), self.bits) for network in pruned]
        whole = self.job.whole
        if isinstance(whole, Ensemble):
            weights = {id(member): weight for member, weight in zip(whole.members, whole.weights.tolist(), strict=True)}
            model: nn.Module = Ensemble(done, [weights[id(member)] for member in members])
        else:
            (model,) = done
        attach(model, replace(card_for(model, self.job.data), bits=self.bits, training=card_of(whole).training))
        return model

    def _compacted(self, member: nn.Module) -> nn.Module:
        if not self.compacts:
            return member
        try:
            return compact(member, self.job.sample)
        except ModelError:  # what the network does cannot be followed: nothing is cut out, and nothing is wrong
            return member

    def _weigh(self, network: nn.Module) -> Footprint:
        clock = self.budget.latency_ms is not None
        return footprint(network, self.job.sample, data=self.job.data, latency=clock)

    def _check_loss(self, found: Pruned, before: float, after: float) -> None:
        allowed = self.budget.allowed_loss
        if allowed is None or after >= before - allowed:
            return
        nearest = replace(self, budget=Budget(allowed_loss=allowed))._least()
        raise BudgetError(
            f"within the budget's size, {100 * (before - after):.1f} points are lost and {100 * allowed:g} are allowed:"
            f" the sparsest network found that loses no more has {self._weigh(nearest.model).file_kb:.1f} KB"
        )

    def _told(self, found: Pruned) -> list[str]:
        """Say what was done."""
        what = "units" if self.pruning.units else "weights of its kernels"
        kernels = list(prunable(found.model).values())
        zeros = sum(int((kernel == 0).sum()) for kernel in kernels)
        pattern = self.pruning.pattern
        share = f"{100 * found.reached:.1f} %" if pattern is None else f"{pattern[0]} of every {pattern[1]}"
        said = [f"pruned while training: {share} of the {what}, by {self.pruning.score}"]
        before, after = len(self._members), len(members_of(found.model))
        if after < before:
            said.append(f"{after} of {before} members fit: the others were left out, the weakest first")
        elif gone := self._cut_out(found.model):
            said.append(f"{gone} units that had nothing left to do were cut out")
        total = sum(kernel.numel() for kernel in kernels)
        return [
            *said,
            f"{zeros:,} of the {total:,} kernel weights that are left are zero: saved at {self.bits} bits a weight",
        ]

    def _cut_out(self, network: nn.Module) -> int:
        """Count the units that compaction removed."""
        try:
            before, after = (anatomy(each, self.job.sample, partial=True) for each in (self.job.whole, network))
        except ModelError:  # then there was no compaction either
            return 0
        return sum(space.size for space in before.free.values()) - sum(space.size for space in after.free.values())


def members_of(network: nn.Module) -> list[nn.Module]:
    """Give the members of an ensemble, or the network itself."""
    return list(network.members) if isinstance(network, Ensemble) else [network]
