"""The Surgeon as published (Schiessler, Aydin, Linka and Cyron, Neural network surgery, 2021), Algorithm 1.

Two branches compete. At each decision point every hidden layer of every branch is looked at: the best edit of each
kind, or the `top` ranking ones, and one drawn at random recuperate for some batches; the two of the best composite
score are trained on, and stay if they reach the accuracy of before: the one-cycle memory of section 3.3. Where neither
does, others are drawn, twice at most; where none of those does, the best of all stay. What has a score of 0 is
recommended by nothing, and can only be drawn at random. Input and output layers never change: a network whose last
hidden layer was folded has no edit left, and is only trained on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from pydantic import Field, model_validator

from topiarist.files import JsonObject
from topiarist.measurement import Budget
from topiarist.methods.method import Traits
from topiarist.methods.published.surgeon_edits import KINDS, candidates_of, rank
from topiarist.methods.surgeon.branches import Branch, BranchTraining
from topiarist.methods.surgeon.evolution import EditCandidate, Evolution, Strategy
from topiarist.methods.surgeon.scoring import composite_score
from topiarist.methods.surgeon.surgeon import SurgeonMethod
from topiarist.randomness import generator
from topiarist.surgery.advice.spectra import ABSOLUTE_FLOOR, RELATIVE_FLOOR
from topiarist.training import TrainConfig

TRAINING = TrainConfig(epochs=100, batch_size=16, learning_rate=0.005, optimizer="sgd")
INTERVAL = 10  # epochs between decisions
LONG = 10  # times as many batches as other edits recuperate for: the appendix, by kind of edit
RECUPERATION = {"identity": 1, "widen": 1, "factorise": 1, "deepen": LONG, "project": LONG, "fold": LONG}
DEAD_END = "no hidden layer is left that an edit could change, so it is trained on as it is"


class PublishedSurgeon(SurgeonMethod):
    """The paper's genetic algorithm over competing branches; defaults are those of its appendix."""

    name: ClassVar[str] = "published-surgeon"
    traits: ClassVar[Traits] = Traits(
        summary="Train and change the topology with competing branches, as published.",
        in_rightsizing=False,
        looks_at_validation=True,
        own_training=True,
        resumes=True,
        all_samples=True,
    )

    interval: int | None = Field(default=None, ge=1, description=f"Epochs between decisions; by default {INTERVAL}.")
    initial: int | None = Field(
        default=None, ge=1, description="Epochs before the first decision; by default the interval."
    )
    branches: int = Field(default=2, ge=1, description="Branches that are kept side by side.")
    redraws: int = Field(default=2, ge=0, description="How often other edits are drawn where none is good enough.")
    batches: int = Field(default=25, ge=1, description="Batches that an edit recuperates for; some ten times as many.")
    relative_floor: float = Field(
        default=RELATIVE_FLOOR,
        ge=0,
        le=1,
        description="ε₁: a singular value below this share of the largest is negligible.",
    )
    absolute_floor: float = Field(
        default=ABSOLUTE_FLOOR, ge=0, description="ε₂: singular values below this are negligible."
    )
    top: int | None = Field(
        default=None, ge=1, description="Try the best edits of all kinds together, instead of the best of each kind."
    )
    memory: Literal["none", "cycle", "lineage"] = Field(
        default="cycle",
        description="cycle: new branches stay only if they reach the accuracy of before; none: they always stay;"
        " lineage: as cycle, and no edit is tried twice on the way to a branch.",
    )

    @model_validator(mode="after")
    def _redraws_have_an_effect(self) -> "PublishedSurgeon":
        if self.memory == "none" and "redraws" in self.model_fields_set and self.redraws:
            raise ValueError("redraws has no effect with memory 'none', which keeps new branches whatever they reach")
        return self

    @property
    def has_own_target(self) -> bool:
        """The paper's algorithm knows no budget."""
        return True

    @property
    def usual_training(self) -> TrainConfig:
        """The paper's training, unless given."""
        return self.training or TRAINING

    def strategy(self, evolution: Evolution, budget: Budget) -> Strategy:
        """Let branches compete."""
        return PublishedStrategy(evolution=evolution, interval=self.interval or INTERVAL, settings=self)


@dataclass(kw_only=True)
class PublishedStrategy:
    """The paper's genetic algorithm; `tried` holds branches by node with the edits that are not tried again."""

    evolution: Evolution
    interval: int = INTERVAL
    settings: PublishedSurgeon = field(default_factory=PublishedSurgeon)
    tried: set[tuple[int, str]] = field(default_factory=set)

    def first(self) -> list[Branch]:
        """Train the network as it is."""
        start = self.evolution.begin()
        (branch,) = self.evolution.train([start], self._steps(0, self.settings.initial or self.interval))
        self.evolution.record(branch, composite_score(branch.accuracy, 0.0, 1.0))
        return [branch]

    def cycle(self, branches: Sequence[Branch]) -> list[Branch]:
        """Draw edits, let them recuperate, train the best; draw again where they do not reach what there was."""
        number, before = self.evolution.lineage.next_decision, max(branch.accuracy for branch in branches)
        greedy = self.settings.memory == "none"
        self.tried = self.remembered(branches)
        drawn: list[Branch] = []
        for draw in range(1 if greedy else 1 + self.settings.redraws):
            kept = self.attempt(branches, number, draw)
            reached = [branch for branch in kept if greedy or branch.accuracy >= before]
            drawn += kept
            if reached or not kept:
                break
        best = sorted(reached or drawn, key=self.score, reverse=True)[: self.settings.branches]
        self.evolution.mark([branch for branch in drawn if branch not in best], "dropped")
        self.evolution.mark(branches, "kept")
        return best

    def remembered(self, branches: Sequence[Branch]) -> set[tuple[int, str]]:
        """Return what earlier decisions on the way to each branch tried, where that is remembered."""
        if self.settings.memory != "lineage":
            return set()
        nodes, found = self.evolution.lineage.nodes, set()
        for branch in branches:
            line, parent = set(), nodes[branch.node].parent
            while parent is not None:
                line.add(parent)
                parent = nodes[parent].parent
            found |= {(branch.node, node.edit) for node in nodes if node.parent in line}
        return found

    def attempt(self, branches: Sequence[Branch], number: int, draw: int) -> list[Branch]:
        """Try some edits, and train the best of them for an interval; none where all were tried."""
        evolution = self.evolution
        candidates = list(self.choose(branches, number, draw))
        edited = [(each, evolution.edit(each, number)) for each in candidates]
        tasks = [
            BranchTraining(branch=branch, steps=self.settings.batches * RECUPERATION[each.kind], counted=False)
            for each, branch in edited
            if branch is not None
        ]
        if not tasks:
            return []
        tried = evolution.train_all(tasks)
        for branch in tried:
            evolution.record(branch, self.score(branch))
        chosen = sorted(tried, key=self.score, reverse=True)[: self.settings.branches]
        evolution.mark([branch for branch in tried if branch not in chosen], "dropped")
        evolution.decide(number=number, draw=draw, tried=tried, kept=chosen, reason=self.reason_for(tried, chosen))
        trained = evolution.train(chosen, self._steps(chosen[0].steps // evolution.per_epoch, self.interval))
        for branch in trained:
            evolution.record(branch, self.score(branch))
        return trained

    def reason_for(self, tried: Sequence[Branch], chosen: Sequence[Branch]) -> str:
        """Return by what the branches were chosen, and that there was nothing to choose where no edit is left."""
        said = f"the {len(chosen)} best composite scores of {len(tried)}" if len(tried) > 1 else "the only candidate"
        reasons = {self.evolution.lineage.nodes[branch.node].reason for branch in tried}
        return f"{said}: {DEAD_END}" if reasons == {DEAD_END} else said

    def choose(self, branches: Sequence[Branch], number: int, draw: int) -> Iterator[EditCandidate]:
        """Yield the branches as they are, the edits that rank best and were not tried yet, and one at random."""
        settings = self.settings
        floors = {"relative": settings.relative_floor, "absolute": settings.absolute_floor}
        known = [each for branch in branches for each in candidates_of(branch, self.evolution, number, **floors)]
        for branch in branches if draw == 0 else ():
            reason = DEAD_END if self.at_dead_end(branch) else "to compare with"
            yield EditCandidate(branch=branch, kind="identity", edits=(), reason=reason)
        left = [each for each in known if (each.branch.node, named(each)) not in self.tried]
        chosen = self.recommended(left)
        others = [each for each in left if each not in chosen]
        if others:
            random = generator(self.evolution.seed("draw", number, draw))
            chosen.append(others[int(torch.randint(len(others), (), generator=random))])
        for each in chosen:
            self.tried.add((each.branch.node, named(each)))
            yield each

    def recommended(self, left: Sequence[EditCandidate]) -> list[EditCandidate]:
        """Return the best edit of each kind, as in the paper's experiments, or the `top` of all kinds together."""
        worth = [each for each in left if each.merit > 0]
        if self.settings.top is not None:
            return sorted(worth, key=rank)[: self.settings.top]
        best = [min((each for each in worth if each.kind == kind), key=rank, default=None) for kind in KINDS]
        return [each for each in best if each is not None]

    def at_dead_end(self, branch: Branch) -> bool:
        """Return whether a network is followed, and no hidden layer is left in it."""
        found = self.evolution.anatomy_of(branch)
        return found is not None and not found.free

    def score(self, branch: Branch) -> float:
        """Return the composite score of a branch against its parent."""
        node = self.evolution.lineage.nodes[branch.node]
        parent = None if node.parent is None else self.evolution.lineage.nodes[node.parent]
        if parent is None or parent.accuracy is None:
            return composite_score(branch.accuracy, 0.0, 1.0)
        gain = branch.accuracy - parent.accuracy
        return composite_score(branch.accuracy, gain, branch.parameters / parent.parameters)

    def state(self) -> JsonObject:
        """Nothing is remembered but the branches."""
        return {}

    def load(self, state: JsonObject) -> None:
        """There is nothing to take up."""

    def _steps(self, epoch: int, epochs: int) -> int:
        last = min(epoch + epochs, self.evolution.setup.config.epochs)
        return (last - epoch) * self.evolution.per_epoch


def named(candidate: EditCandidate) -> str:
    """Return the edits as the lineage has them; seeds are no part of it."""
    return "; ".join(map(str, candidate.edits))
