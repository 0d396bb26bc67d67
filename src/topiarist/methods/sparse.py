"""One network pruned while it is trained: to a sparsity, to a budget, or as far as the loss allows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class Pruned:
    """A network, an ensemble or not, after pruning, and how each of its members was trained."""

    model: nn.Module
    sparsity: float
    histories: tuple[History, ...] = ()
    notes: tuple[str, ...] = ()


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
            found = self._train(self._members(), self.pruning.sparsity)
        scores = self.job.whole_score, scored(self.job.score, found.model)
        if self.budget.limits_size:
            self._check_loss(found, *scores)
        return Shaped(found.model, scores, (*self._told(found), *found.notes), found.histories)

    def _check(self) -> None:
        given = [name for name in ("parameters", "macs", "latency_ms") if getattr(self.budget, name) is not None]
        if given and not self.pruning.units:
            raise SettingsError(
                f"weights that are zero are parameters still, and are multiplied: a limit on {given[0]} needs units"
            )

    def _members(self) -> list[nn.Module]:
        """Give the networks that are pruned, the best of an ensemble first."""
        whole = self.job.whole
        if not isinstance(whole, Ensemble):
            return [whole]
        return sorted(whole.members, key=lambda member: -scored(self.job.score, member))

    def _within(self) -> Pruned:
        """Keep the budget with as many members, and then with as little sparsity, as can be."""
        members, budget = self._members(), self.budget
        while True:
            sparsity = self._fitting(members, budget)
            if sparsity is not None:
                found = self._train(members, sparsity)
                excess = self.budget.excess(self._weigh(found.model))
                if excess is None:
                    return found
                budget = closer(budget, excess)
                continue
            if len(members) == 1:
                raise self._refusal(members)
            members = members[:-1]

    def _fitting(self, members: Sequence[nn.Module], budget: Budget) -> float | None:
        """Give the lowest sparsity at which the budget is kept, None where it is above the highest allowed."""
        if budget.excess(self._weigh(self._at_once(members, self.highest))) is not None:
            return None
        low, high = 0.0, self.highest
        if budget.excess(self._weigh(self._at_once(members, low))) is None:
            return low
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            if budget.excess(self._weigh(self._at_once(members, middle))) is None:
                high = middle
            else:
                low = middle
        return high

    def _refusal(self, members: Sequence[nn.Module]) -> BudgetError:
        nearest = self._weigh(self._at_once(members, self.highest))
        excess = self.budget.excess(nearest)
        what = "its best member alone" if isinstance(self.job.whole, Ensemble) else "the network"
        pruned = f"{what}, {self.highest:.0%} of it zero and {self.bits} bits a weight"
        return BudgetError(f"the budget cannot be met: {pruned}, has {excess}")

    def _least(self) -> Pruned:
        """Find the sparsest network that loses no more than is allowed."""
        lowest, members = self.job.whole_score - (self.budget.allowed_loss or 0.0), self._members()
        best = self._train(members, self.highest)
        if scored(self.job.score, best.model) >= lowest:
            return best
        found, low, high = None, 0.0, self.highest
        for _ in range(TRAININGS):
            middle = 1 - math.sqrt((1 - low) * (1 - high))
            tried = self._train(members, middle)
            if scored(self.job.score, tried.model) >= lowest:
                found, low = tried, middle
            else:
                high = middle
        if found is not None:
            return found
        return Pruned(self._finished(members), 0.0, notes=("no weight can go within the loss allowed",))

    def _train(self, members: Sequence[nn.Module], sparsity: float) -> Pruned:
        """Train members again, each by itself, and prune them on the way."""
        own = {} if self.pruning.pattern is not None else {"sparsity": sparsity}
        settings = self.pruning.model_dump(exclude_unset=True) | own
        settings["initial_sparsity"] = min(self.pruning.initial_sparsity, sparsity)
        pruning = Pruning(**{name: value for name, value in settings.items() if value or name != "initial_sparsity"})
        pupils = [
            Pupil(whole=member, cut=member, data=self.job.data, early=self.job.early, seed=self._seed(number))
            for number, member in enumerate(members)
        ]
        trained = retrain(pupils, self.retraining, pruning=pruning)
        model = self._finished([network for network, _ in trained])
        return Pruned(model, sparsity, tuple(history for _, history in trained))

    def _seed(self, number: int) -> int:
        return self.job.seed if number == 0 else child_seed(self.job.seed, "member", number) % 2**32

    def _at_once(self, members: Sequence[nn.Module], sparsity: float) -> nn.Module:
        """Prune members without training them, to see how large they become."""
        copies = [copied_with_edits(member) for member in members]
        pruning = self.pruning.model_copy(
            update={"sparsity": sparsity, "schedule": "one-shot", "begin": 0, "score": "magnitude"}
        )
        for copy in copies:
            Pruner(copy, pruning, epochs=1, example_input=self.job.sample).before_epoch(0)
        return self._finished(copies)

    def _finished(self, members: Sequence[nn.Module]) -> nn.Module:
        """Cut out what does nothing, round the weights, and make one network of the members."""
        done = [rounded(self._compacted(member), self.bits) for member in members]
        whole = self.job.whole
        if isinstance(whole, Ensemble):
            order = {id(member): weight for member, weight in zip(whole.members, whole.weights.tolist(), strict=True)}
            weights = [order.get(id(member), 1.0) for member in self._members()[: len(members)]]
            model: nn.Module = Ensemble(done, weights)
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
        share = f"{100 * found.sparsity:.1f} %" if pattern is None else f"{pattern[0]} of every {pattern[1]}"
        said = [f"pruned while training: {share} of the {what}, by {self.pruning.score}"]
        before, after = (len(members_of(network)) for network in (self.job.whole, found.model))
        if after < before:
            said.append(f"{after} of {before} members fit: the others were left out, the weakest first")
        gone = units_of(self.job.whole, self.job) - units_of(found.model, self.job)
        if gone > 0 and after == before:
            said.append(f"{gone} units that had nothing left to do were cut out")
        total = sum(kernel.numel() for kernel in kernels)
        return [
            *said,
            f"{zeros:,} of the {total:,} kernel weights that are left are zero: saved at {self.bits} bits a weight",
        ]


def closer(budget: Budget, excess: Excess) -> Budget:
    """Give a budget that makes up for what a trained network has too much."""
    names = {"KB on disk": "size_kb", "parameters": "parameters", "multiply-accumulates": "macs"}
    name = names.get(excess.what, "latency_ms")
    limit = getattr(budget, name) * CLOSER * excess.limit / excess.found
    return budget.model_copy(update={name: limit if name in ("size_kb", "latency_ms") else max(1, int(limit))})


def members_of(network: nn.Module) -> list[nn.Module]:
    """Give the members of an ensemble, or the network itself."""
    return list(network.members) if isinstance(network, Ensemble) else [network]


def units_of(network: nn.Module, job: Job) -> int:
    """Count the units that can go."""
    return sum(space.size for space in anatomy(network, job.sample, partial=True).free.values())
