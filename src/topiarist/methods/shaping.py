"""Cuts networks as a method decides, in rounds, to a budget, with training after each cut; several networks at once.

Networks of one shape, such as those of folds, are searched and trained again as one computation.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from torch import nn

from topiarist.errors import SettingsError, TopiaristWarning
from topiarist.measurement import Budget, BudgetError
from topiarist.measurement.budget import Footprint, footprint
from topiarist.methods.candidates import Candidate, first_limits, reachable, smallest, within
from topiarist.methods.jobs import Job, scored
from topiarist.methods.retraining import FineTuning, Pupil, Rewinding, copied_with_edits, retrain
from topiarist.methods.task import Limits, Method, Proposal, Task
from topiarist.models import attach, card_for
from topiarist.models.evaluation import numbers_of
from topiarist.surgery import Plan, apply
from topiarist.surgery.choice.costs import Costs
from topiarist.tracing import anatomy
from topiarist.training import History

NO_BUDGET = Budget()
Finetune = Callable[[nn.Module], Any]
OnProgress = Callable[[float], None]


@dataclass(frozen=True)
class Shaped:
    """A network that was cut, its score before and after, why it is as it is, and how it was trained again.

    `lineage` is the record of an evolution, where there was one.
    """

    model: nn.Module
    score: tuple[float, float]
    reasons: tuple[str, ...]
    histories: tuple[History, ...]
    lineage: Mapping[str, Any] | None = None


@runtime_checkable
class TrainingMethod(Protocol):
    """A method that cuts while it trains, and so does all of the work itself."""

    @property
    def rounds(self) -> int:
        """Give 1: what it does step by step is its own."""
        ...

    @property
    def stops_itself(self) -> bool:
        """Say whether its own settings, rather than a budget, say where to stop."""
        ...

    def shape_together(self, jobs: Sequence[Job], shaping: "Shaping") -> list[Shaped]:
        """Give what becomes of networks."""
        ...


AnyMethod = Method | TrainingMethod


@dataclass(frozen=True, kw_only=True)
class Shaping:
    """What is done to networks: a method, where it stops, and what follows each cut.

    `checkpoint` is a file for methods that can go on after an interruption; `on_progress` is told how far they are.
    """

    method: AnyMethod
    budget: Budget = NO_BUDGET
    retraining: FineTuning | Rewinding | None = None
    finetune: Finetune | None = None
    checkpoint: Path | None = None
    on_progress: OnProgress = lambda share: None

    def check(self, jobs: Sequence[Job]) -> None:
        """Refuse what does not go together."""
        if self.budget != NO_BUDGET and self.method.stops_itself:
            raise SettingsError("the method's own settings and the budget both say where to stop: give one")
        if self.retraining is not None and self.finetune is not None:
            raise SettingsError("retraining and finetune both train the cut network: give one")
        if self.method.rounds > 1 and self.retraining is None and self.finetune is None:
            raise SettingsError("rounds above 1 need training between the cuts: give retraining or finetune")
        rewinds = isinstance(self.retraining, Rewinding) and self.retraining.weights
        if any((job.early is not None) != rewinds for job in jobs):
            raise SettingsError("an early network, and rewinding with weights=True, need each other: give both")
        if self.budget.max_drop is not None and any(not job.own_score and not len(job.data.validation) for job in jobs):
            note = "there is no validation part: what is lost is judged on the training part, which flatters"
            warnings.warn(note, TopiaristWarning, stacklevel=3)

    @property
    def searches(self) -> bool:
        """Say whether sizes are searched that keep a budget."""
        return self.budget != NO_BUDGET and not self.method.stops_itself

    def make(self, jobs: Sequence[Job], tasks: Sequence[Task]) -> list[Candidate]:
        """Make what the method proposes for each task, and train it again."""
        assert not isinstance(self.method, TrainingMethod)
        proposals = propose_all(self.method, tasks)
        networks = [
            apply(Plan(proposal.edits), task.model, task.example_input, calibration=task.calibration)
            for proposal, task in zip(proposals, tasks, strict=True)
        ]
        histories: list[History | None] = [None] * len(jobs)
        if self.retraining is not None:
            pairs = list(zip(jobs, networks, strict=True))
            pupils = [
                Pupil(whole=job.whole, cut=cut, data=job.data, early=job.early, seed=job.seed) for job, cut in pairs
            ]
            trained = retrain(pupils, self.retraining)
            networks, histories = [network for network, _ in trained], [history for _, history in trained]
        elif self.finetune is not None:
            for network in networks:
                self.finetune(network)
        return [
            Candidate(network, proposal.reasons, history)
            for network, proposal, history in zip(networks, proposals, histories, strict=True)
        ]


def propose_all(method: Method, tasks: Sequence[Task]) -> list[Proposal]:
    """Ask a method about several networks: as one where it can and their spaces are alike."""
    together = getattr(method, "propose_many", None)
    alike = len({tuple(task.widths.items()) for task in tasks}) == 1
    if together is not None and alike:
        proposals: list[Proposal] = together(tasks)
        return proposals
    return [method.propose(task) for task in tasks]


def cut_together(jobs: Sequence[Job], shaping: Shaping) -> list[Shaped]:
    """Cut networks, and train them again, in as many rounds as the method has; or leave all to a method that trains."""
    if isinstance(shaping.method, TrainingMethod):
        return shaping.method.shape_together(jobs, shaping)
    networks = [job.whole for job in jobs]
    reasons: list[list[str]] = [[] for _ in jobs]
    histories: list[list[History]] = [[] for _ in jobs]
    for left in range(shaping.method.rounds, 0, -1):
        tasks = [job.task(network, 1 / left) for job, network in zip(jobs, networks, strict=True)]
        if shaping.searches:
            found = [Searching(job, shaping, task).run() for job, task in zip(jobs, tasks, strict=True)]
        else:
            found = shaping.make(jobs, tasks)
        networks = [candidate.model for candidate in found]
        for candidate, said, trained in zip(found, reasons, histories, strict=True):
            said += candidate.reasons
            trained += [] if candidate.history is None else [candidate.history]
    shaped = []
    for job, network, said, trained in zip(jobs, networks, reasons, histories, strict=True):
        attach(network, card_for(network, job.data))
        scores = job.whole_score, scored(job.score, network)
        check_loss(job, shaping, *scores)
        shaped.append(Shaped(network, scores, tuple(said), tuple(trained)))
    return shaped


@dataclass(frozen=True)
class Searching:
    """The search for a network that keeps a budget, in one round."""

    job: Job
    shaping: Shaping
    task: Task

    def run(self) -> Candidate:
        """Keep within the budget's sizes; without any, find the smallest network that loses no more than is allowed."""
        budget, task, share = self.shaping.budget, self.task, self.task.share
        if budget.limits_size:
            now = self.weigh(task.model)
            limits = first_limits(budget, now, numbers_of(task.model).element_size())
            limits = {name: round(getattr(now, name) ** (1 - share) * limit**share) for name, limit in limits.items()}
            make = reachable(self.make)
            return within(budget, make, self.weigh, limits) if share == 1 else make(limits)
        return self.least() or unchanged(task.model)

    def make(self, limits: Limits) -> Candidate:
        """Make a network within limits."""
        (found,) = self.shaping.make([self.job], [replace(self.task, limits=limits)])
        return found

    def weigh(self, network: nn.Module) -> Footprint:
        """Weigh a network."""
        return weigh(self.job, self.shaping.budget, network)

    def least(self) -> Candidate | None:
        """Find the smallest network that loses no more than is allowed."""
        job, share = self.job, self.task.share
        costs = Costs(self.task.model, anatomy(self.task.model, self.task.example_input, partial=True))
        lowest = job.whole_score - (self.shaping.budget.max_drop or 0.0)
        full, fewest = costs.parameters({}), costs.parameters(dict.fromkeys(costs.widths, 1))
        return smallest(
            reachable(self.make),
            lambda found: scored(job.score, found.model) >= lowest,
            fewest=int(full ** (1 - share) * fewest**share),
            most=full,
        )


def check_loss(job: Job, shaping: Shaping, before: float, after: float) -> None:
    """Refuse a network that fits the budget's size and not its loss."""
    allowed = shaping.budget.max_drop
    if allowed is None or not shaping.budget.limits_size or after >= before - allowed:
        return
    freer = replace(shaping, budget=Budget(max_drop=allowed))
    search = Searching(job, freer, job.task(job.whole, 1.0))
    raise lost_too_much(before - after, allowed, search.weigh(search.run().model))


def weigh(job: Job, budget: Budget, network: nn.Module) -> Footprint:
    """Weigh a network, with a clock only where the budget asks for one."""
    return footprint(network, job.sample, data=job.data, latency=budget.latency_ms is not None)


def lost_too_much(lost: float, allowed: float, nearest: Footprint) -> BudgetError:
    """Say that a network fits and is too bad, and how large the smallest is that is good enough."""
    return BudgetError(
        f"within the budget's size, {100 * lost:.1f} points are lost and {100 * allowed:g} are allowed:"
        f" the smallest network found that loses no more has {nearest.parameters:,} parameters and"
        f" {nearest.file_kb:.1f} KB"
    )


def unchanged(network: nn.Module) -> Candidate:
    """Give the network as it is, where nothing can go."""
    return Candidate(copied_with_edits(network), ("nothing can go within the loss allowed",))
