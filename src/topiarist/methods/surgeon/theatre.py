"""Where branches are operated on, trained and judged; all of it is written down in the lineage."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from topiarist.errors import ModelError, TopiaristError
from topiarist.measurement.cost import count_macs
from topiarist.methods.jobs import Job
from topiarist.methods.surgeon.branches import Branch, Course, Practice, judged, operated, practise
from topiarist.methods.surgeon.lineage import Decision, Fate, Lineage
from topiarist.models.evaluation import count_parameters
from topiarist.parallel import Pool
from topiarist.randomness import child_seed
from topiarist.surgery import Edit
from topiarist.surgery.applying import copied_with_plan
from topiarist.tracing import Anatomy, anatomy
from topiarist.training.stretches import steps_per_epoch


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Edits that could be made in the network of a branch, and why.

    `merit` says how promising they are, `parameters` how many there would be, where that is known beforehand.
    """

    branch: Branch
    kind: str
    edits: tuple[Edit, ...]
    reason: str
    merit: float = 0.0
    parameters: int = 0


@dataclass(kw_only=True)
class Theatre:
    """One network's evolution: what it is about, who works on it, and the record."""

    job: Job
    course: Course
    pool: Pool
    lineage: Lineage
    on_progress: Callable[[float], None] = lambda share: None
    diverged: str | None = None

    @cached_property
    def per_epoch(self) -> int:
        """The steps of one epoch."""
        return steps_per_epoch(self.job.whole, self.course.data, self.course.config)

    @cached_property
    def sample(self) -> Tensor:
        """Two samples as the network reads them."""
        return torch.cat([self.job.sample] * 2)

    @property
    def last_step(self) -> int:
        """The steps of the whole training."""
        return self.course.config.epochs * self.per_epoch

    @cached_property
    def start_parameters(self) -> int:
        """The size of the network that the evolution began with."""
        return count_parameters(self.job.whole)

    def epoch(self, branch: Branch) -> float:
        """Say how far a branch is."""
        return branch.steps / self.per_epoch

    def seed(self, *names: str | int) -> int:
        """Give the seed of a random choice by its name."""
        return child_seed(self.job.seed, "surgeon", *names)

    def anatomy_of(self, branch: Branch) -> Anatomy | None:
        """Look into the network of a branch; None where its code cannot be followed."""
        try:
            return anatomy(branch.model, self.sample, partial=True)
        except ModelError:
            return None

    def begin(self) -> Branch:
        """Give the branch that everything comes from."""
        branch = judged(Branch(model=copied_with_plan(self.job.whole)), self.course.data)
        self._enter(branch, parent=None, kind="start", edit="start", decision=0)
        return branch

    def operate(self, candidate: Candidate, decision: int) -> Branch | None:
        """Make the edits of a candidate; None where the network does not allow them."""
        parent = candidate.branch
        try:
            branch = operated(parent, candidate.edits, self.sample, self.job.calibration) if candidate.edits else parent
        except ModelError:
            return None
        branch = replace(branch, node=len(self.lineage.nodes))
        edit = "; ".join(map(str, candidate.edits)) or "leave as it is"
        self._enter(branch, parent=parent.node, kind=candidate.kind, edit=edit, decision=decision)
        self.lineage.update(branch.node, reason=candidate.reason)
        return branch

    def _enter(self, branch: Branch, *, parent: int | None, kind: str, edit: str, decision: int) -> None:
        begins = self.epoch(branch)
        found = self.anatomy_of(branch)
        widths = () if found is None else tuple((name, space.size) for name, space in found.free.items())
        self.lineage.add(
            parent=parent,
            kind=kind,
            edit=edit,
            decision=decision,
            begins=begins,
            ends=begins,
            parameters=branch.parameters,
            widths=widths,
        )

    def train(self, branches: Sequence[Branch], steps: int, *, counted: bool = True) -> list[Branch]:
        """Train branches side by side, each by the same batches; without steps, they are only judged."""
        if not steps:
            return [judged(branch, self.course.data) for branch in branches]
        return self.practise([Practice(branch=branch, steps=steps, counted=counted) for branch in branches])

    def practise(self, tasks: Sequence[Practice]) -> list[Branch]:
        """Train branches side by side, each as long as is said."""
        for task in tasks:
            samples = task.steps / self.per_epoch * len(self.course.data.train)
            macs = samples * count_macs(task.branch.model, self.job.sample)
            self.lineage.add_work(epochs=task.steps / self.per_epoch, sample_macs=macs)
        found: list[Branch | None] = [None] * len(tasks)
        for done in self.pool.run(practise, tasks):
            if done.reason is not None:
                raise TopiaristError(done.reason)
            found[done.number] = done.value
        return [branch for branch in found if branch is not None]

    def note(self, branch: Branch, score: float) -> None:
        """Record what a branch is worth now; one that diverged is worth what it was before."""
        self.on_progress(branch.steps / max(self.last_step, 1))
        if math.isnan(branch.accuracy):
            return
        node = self.lineage.nodes[branch.node]
        self.lineage.nodes[branch.node] = node.grown(epoch=self.epoch(branch), accuracy=branch.accuracy, score=score)

    def settle(self, branches: Sequence[Branch], fate: Fate, reason: str | None = None) -> None:
        """Record what becomes of branches."""
        for branch in branches:
            known = {} if reason is None else {"reason": reason}
            self.lineage.update(branch.node, fate=fate, **known)

    def decide(self, *, number: int, draw: int, tried: Sequence[Branch], kept: Sequence[Branch], reason: str) -> None:
        """Record a decision."""
        epoch = self.lineage.nodes[tried[0].node].begins
        numbers = tuple(branch.node for branch in tried)
        self.lineage.decisions.append(
            Decision(
                number=number,
                epoch=epoch,
                draw=draw,
                candidates=numbers,
                kept=tuple(branch.node for branch in kept),
                reason=reason,
            )
        )
