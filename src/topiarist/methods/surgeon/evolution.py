"""An evolution: branches are edited, trained and evaluated as a strategy decides; the lineage records all of it."""

import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from topiarist.errors import ModelError, TopiaristError, TopiaristWarning
from topiarist.evolution.lineage import Decision, Fate, Lineage
from topiarist.files import JsonObject
from topiarist.measurement.cost import count_macs
from topiarist.methods.job import Job
from topiarist.methods.surgeon.branches import Branch, BranchTraining, TrainingSetup, edited, evaluated, train_branch
from topiarist.methods.surgeon.checkpoint import CheckpointState, SurgeonCheckpoint
from topiarist.models.evaluation import count_parameters
from topiarist.parallel import Pool
from topiarist.randomness import child_seed
from topiarist.surgery import Edit
from topiarist.surgery.applying import copied_with_plan
from topiarist.tracing import Anatomy
from topiarist.tracing.finding import trace_again
from topiarist.training.stretches import steps_per_epoch


@dataclass(frozen=True, kw_only=True)
class EditCandidate:
    """Edits that could be made in the network of a branch, and why.

    `merit` is how promising they are, `parameters` how many there would be, where that is known beforehand.
    """

    branch: Branch
    kind: str
    edits: tuple[Edit, ...]
    reason: str
    merit: float = 0.0
    parameters: int = 0


@dataclass(kw_only=True)
class Evolution:
    """One network's evolution: its training, the pool that trains branches side by side, and the record."""

    job: Job
    setup: TrainingSetup
    pool: Pool
    lineage: Lineage
    on_progress: Callable[[float], None] = lambda share: None
    diverged: str | None = None

    @cached_property
    def per_epoch(self) -> int:
        """The steps of one epoch."""
        return steps_per_epoch(self.job.whole, self.setup.data, self.setup.config)

    @property
    def last_step(self) -> int:
        """The steps of the whole training."""
        return self.setup.config.epochs * self.per_epoch

    @cached_property
    def start_parameters(self) -> int:
        """The size of the network that the evolution began with."""
        return count_parameters(self.job.whole)

    def epoch(self, branch: Branch) -> float:
        """Return how many epochs a branch was trained."""
        return branch.steps / self.per_epoch

    def seed(self, *names: str | int) -> int:
        """Return the seed of a random choice by its name."""
        return child_seed(self.job.seed, "surgeon", *names)

    def anatomy_of(self, branch: Branch) -> Anatomy | None:
        """Trace the network of a branch; None where that is not possible."""
        try:
            return trace_again(branch.model, self.job.example_input, self.job.anatomy)
        except ModelError:
            return None

    def begin(self) -> Branch:
        """Return the branch that everything comes from."""
        branch = evaluated(Branch(model=copied_with_plan(self.job.whole)), self.setup.data)
        self._add_node(branch, parent=None, kind="start", edit="start", decision=0)
        return branch

    def edit(self, candidate: EditCandidate, decision: int) -> Branch | None:
        """Make the edits of a candidate; None where the network does not allow them."""
        parent, job = candidate.branch, self.job
        try:
            branch = edited(parent, candidate.edits, job.example_input, job.calibration) if candidate.edits else parent
        except ModelError:
            return None
        branch = replace(branch, node=len(self.lineage.nodes))
        edit = "; ".join(map(str, candidate.edits)) or "leave as it is"
        self._add_node(branch, parent=parent.node, kind=candidate.kind, edit=edit, decision=decision)
        self.lineage.update(branch.node, reason=candidate.reason)
        return branch

    def _add_node(self, branch: Branch, *, parent: int | None, kind: str, edit: str, decision: int) -> None:
        begins, found = self.epoch(branch), self.anatomy_of(branch)
        self.lineage.add(
            parent=parent,
            kind=kind,
            edit=edit,
            decision=decision,
            begins=begins,
            ends=begins,
            parameters=branch.parameters,
            widths=() if found is None else tuple((name, space.size) for name, space in found.free.items()),
        )

    def train(self, branches: Sequence[Branch], steps: int) -> list[Branch]:
        """Train branches side by side, each by the same batches; without steps, they are only evaluated."""
        if not steps:
            return [evaluated(branch, self.setup.data) for branch in branches]
        return self.train_all([BranchTraining(branch=branch, steps=steps) for branch in branches])

    def train_all(self, tasks: Sequence[BranchTraining]) -> list[Branch]:
        """Train branches side by side, each for its own number of steps."""
        for task in tasks:
            samples = task.steps / self.per_epoch * len(self.setup.data.train)
            macs = samples * count_macs(task.branch.model, self.job.sample)
            self.lineage.add_work(epochs=task.steps / self.per_epoch, sample_macs=macs)
        found: list[Branch | None] = [None] * len(tasks)
        for done in self.pool.run(train_branch, tasks):
            if done.reason is not None:
                raise TopiaristError(done.reason)
            found[done.number] = done.value
        return [branch for branch in found if branch is not None]

    def record(self, branch: Branch, score: float) -> None:
        """Record the score of a branch; one that diverged keeps what it had before."""
        self.on_progress(branch.steps / max(self.last_step, 1))
        if math.isnan(branch.accuracy):
            return
        node = self.lineage.nodes[branch.node]
        self.lineage.nodes[branch.node] = node.grown(epoch=self.epoch(branch), accuracy=branch.accuracy, score=score)

    def mark(self, branches: Sequence[Branch], fate: Fate, reason: str | None = None) -> None:
        """Record what becomes of branches."""
        for branch in branches:
            known = {} if reason is None else {"reason": reason}
            self.lineage.update(branch.node, fate=fate, **known)

    def drop(self, branch: Branch, reason: str) -> None:
        """Record that a branch is dropped, with why it was tried and why it goes."""
        self.mark([branch], "dropped", f"{self.lineage.nodes[branch.node].reason}; {reason}")

    def decide(self, *, number: int, draw: int, tried: Sequence[Branch], kept: Sequence[Branch], reason: str) -> None:
        """Record a decision."""
        self.lineage.decisions.append(
            Decision(
                number=number,
                epoch=self.lineage.nodes[tried[0].node].begins,
                draw=draw,
                candidates=tuple(branch.node for branch in tried),
                kept=tuple(branch.node for branch in kept),
                reason=reason,
            )
        )


class Strategy(Protocol):
    """How an evolution decides: as published, or ours."""

    def first(self) -> list[Branch]:
        """Train the network as it is up to the first decision."""
        ...

    def cycle(self, branches: Sequence[Branch]) -> list[Branch]:
        """Decide, where a decision is due, and train what is left for a while."""
        ...

    def score(self, branch: Branch) -> float:
        """Return what a branch is worth."""
        ...

    def state(self) -> JsonObject:
        """Return what it remembers from decision to decision, as JSON values."""
        ...

    def load(self, state: JsonObject) -> None:
        """Continue from what `state` returned."""
        ...


def evolve(
    strategy: Strategy,
    evolution: Evolution,
    checkpoint: SurgeonCheckpoint | None,
    state: CheckpointState | None,
    *,
    stop_at: float | None = None,
) -> Branch:
    """Train to the end, or to an accuracy on the validation part, and return the best branch.

    A training that diverges ends with what was good before.
    """
    if state is None:
        branches = _alive(strategy.first()) or [_as_it_was(evolution)]
    else:
        branches = list(state.branches)
        with nullcontext() if checkpoint is None else checkpoint.resuming():
            strategy.load(state.strategy)
    goal = math.inf if stop_at is None else stop_at
    while branches[0].steps < evolution.last_step and evolution.diverged is None:
        if max(branch.accuracy for branch in branches) >= goal:
            break
        after = strategy.cycle(branches)
        evolution.mark([branch for branch in after if branch not in _alive(after)], "dropped", "it diverged")
        branches = _alive(after) or _stopped(evolution, branches)
        if checkpoint is not None and evolution.diverged is None:
            checkpoint.write(CheckpointState(branches, evolution.lineage, strategy.state()))
    best = max(branches, key=strategy.score)
    evolution.mark([branch for branch in branches if branch is not best], "dropped")
    evolution.mark([best], "best")
    return best


def _alive(branches: Sequence[Branch]) -> list[Branch]:
    return [branch for branch in branches if not math.isnan(branch.accuracy)]


def _as_it_was(evolution: Evolution) -> Branch:
    """Return the network as it was given, where its training diverged at once."""
    (branch,) = _stopped(evolution, [Branch(model=copied_with_plan(evolution.job.whole))])
    return replace(evaluated(branch, evolution.setup.data), node=0)


def _stopped(evolution: Evolution, branches: Sequence[Branch]) -> list[Branch]:
    """Note that the training diverged, and return what was good before."""
    epoch = evolution.epoch(branches[0])
    evolution.diverged = f"the training diverged after epoch {epoch:g}: the network of that epoch is kept"
    warnings.warn(evolution.diverged, TopiaristWarning, stacklevel=2)
    return list(branches)
