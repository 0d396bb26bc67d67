"""The Surgeon as published (Schiessler, Aydin, Linka and Cyron, Neural network surgery, 2021), Algorithm 1.

Two branches compete. At each decision point every hidden layer of every branch is looked at: the best edit of each
kind and one drawn at random recuperate for some batches; the two of the best composite score are trained on, and stay
if they reach the accuracy of before. Where neither does, others are drawn, twice at most; where none of those does, the
best of all stay. What has a score of 0 is recommended by nothing, and can only be drawn at random.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from topiarist.methods.surgeon.branches import Branch, Practice
from topiarist.methods.surgeon.scoring import composite_score
from topiarist.methods.surgeon.theatre import Candidate, Theatre
from topiarist.randomness import generator
from topiarist.surgery import layers
from topiarist.surgery.costs import Costs
from topiarist.surgery.edits import DeepenNetwork, Edit, FoldLayer, ProjectSpace, WidenSpace
from topiarist.surgery.scores import Scores, paper_scores
from topiarist.tracing import Space

LONG = 10  # times as many batches as other edits recuperate for
RECUPERATION = {"identity": 1, "widen": 1, "deepen": LONG, "project": LONG, "fold": LONG}


@dataclass(kw_only=True)
class Published:
    """The paper's genetic algorithm, with its settings: epochs between decisions, branches, redraws, batches."""

    theatre: Theatre
    initial: int = 10
    interval: int = 10
    branches: int = 2
    redraws: int = 2
    batches: int = 25
    tried: set[tuple[int, tuple[Edit, ...]]] = field(default_factory=set)

    def first(self) -> list[Branch]:
        """Train the network as it is."""
        start = self.theatre.begin()
        (branch,) = self.theatre.train([start], self._steps(0, self.initial))
        self.theatre.note(branch, composite_score(branch.accuracy, 0.0, 1.0))
        return [branch]

    def cycle(self, branches: Sequence[Branch]) -> list[Branch]:
        """Draw edits, let them recuperate, train the best; draw again where they do not reach what there was."""
        number, before = self.theatre.lineage.next_decision, max(branch.accuracy for branch in branches)
        self.tried.clear()
        drawn: list[Branch] = []
        for draw in range(1 + self.redraws):
            kept = self.attempt(branches, number, draw)
            reached = [branch for branch in kept if branch.accuracy >= before]
            drawn += kept
            if reached or not kept:
                break
        best = sorted(reached or drawn, key=self.score, reverse=True)[: self.branches]
        self.theatre.settle([branch for branch in drawn if branch not in best], "dropped")
        self.theatre.settle(branches, "kept")
        return best

    def attempt(self, branches: Sequence[Branch], number: int, draw: int) -> list[Branch]:
        """Try some edits, and train the best of them for an interval; none where all were tried."""
        theatre = self.theatre
        candidates = list(self.choose(branches, number, draw))
        operated = [(each, theatre.operate(each, number)) for each in candidates]
        tasks = [
            Practice(branch=branch, steps=self.batches * RECUPERATION[each.kind], counted=False)
            for each, branch in operated
            if branch is not None
        ]
        if not tasks:
            return []
        tried = theatre.practise(tasks)
        for branch in tried:
            theatre.note(branch, self.score(branch))
        chosen = sorted(tried, key=self.score, reverse=True)[: self.branches]
        theatre.settle([branch for branch in tried if branch not in chosen], "dropped")
        reason = f"the {len(chosen)} best composite scores of {len(tried)}"
        theatre.decide(number=number, draw=draw, tried=tried, kept=chosen, reason=reason)
        trained = theatre.train(chosen, self._steps(chosen[0].steps // theatre.per_epoch, self.interval))
        for branch in trained:
            theatre.note(branch, self.score(branch))
        return trained

    def choose(self, branches: Sequence[Branch], number: int, draw: int) -> Iterator[Candidate]:
        """Give the branches as they are, the best edit of each kind that was not tried yet, and one at random."""
        for branch in branches if draw == 0 else ():
            yield Candidate(branch=branch, kind="identity", edits=(), reason="to compare with")
        known = [each for branch in branches for each in candidates_of(branch, self.theatre, number)]
        left = [each for each in known if (each.branch.node, each.edits) not in self.tried]
        best = [
            min((each for each in left if each.kind == kind and each.merit > 0), key=rank, default=None)
            for kind in ("widen", "deepen", "project", "fold")
        ]
        chosen = [each for each in best if each is not None]
        others = [each for each in left if each not in chosen]
        if others:
            random = generator(self.theatre.seed("draw", number, draw))
            chosen.append(others[int(torch.randint(len(others), (), generator=random))])
        for each in chosen:
            self.tried.add((each.branch.node, each.edits))
            yield each

    def score(self, branch: Branch) -> float:
        """Give the composite score of a branch against its parent."""
        node = self.theatre.lineage.nodes[branch.node]
        parent = None if node.parent is None else self.theatre.lineage.nodes[node.parent]
        if parent is None or parent.accuracy is None:
            return composite_score(branch.accuracy, 0.0, 1.0)
        gain = branch.accuracy - parent.accuracy
        return composite_score(branch.accuracy, gain, branch.parameters / parent.parameters)

    def state(self) -> dict[str, Any]:
        """Nothing is remembered but the branches."""
        return {}

    def load(self, state: dict[str, Any]) -> None:
        """There is nothing to take up."""

    def _steps(self, epoch: int, epochs: int) -> int:
        last = min(epoch + epochs, self.theatre.course.config.epochs)
        return (last - epoch) * self.theatre.per_epoch


def rank(candidate: Candidate) -> tuple[float, int]:
    """Order candidates by merit, then by the parameters that they leave: the paper's second key."""
    return -candidate.merit, candidate.parameters


def candidates_of(branch: Branch, theatre: Theatre, decision: int) -> Iterator[Candidate]:
    """Give all edits that the paper knows, scored by the singular values of each hidden layer."""
    found = theatre.anatomy_of(branch)
    if found is None:
        return
    costs = Costs(branch.model, found)
    hidden = [(name, space) for name, space in found.free.items() if len(space.producers) == len(space.consumers) == 1]
    weights = [layers.weight_of(branch.model.get_submodule(space.producers[0].module)) for _, space in hidden]
    seed = theatre.seed("widen", decision)
    for (name, space), scores in zip(hidden, paper_scores(weights), strict=True):
        reason = f"{scores.negligible} of {space.size} singular values are negligible"
        for kind, edit, merit, size in edits_of(branch.model, name, space, scores, costs, seed):
            said = f"score {merit:.3f}: {reason}"
            yield Candidate(branch=branch, kind=kind, edits=(edit,), reason=said, merit=merit, parameters=size)


def edits_of(
    model: nn.Module, name: str, space: Space, scores: Scores, costs: Costs, seed: int
) -> Iterator[tuple[str, Edit, float, int]]:
    """Give the edits of one hidden layer with their scores, and how many parameters the network would have."""
    layer, reader = space.producers[0].module, space.consumers[0].module
    weight, read = (layers.weight_of(model.get_submodule(path)) for path in (layer, reader))
    units, whole = space.size, costs.parameters({})
    few = max(2, units // 10)
    for by in (few, 10 * few):
        wider = costs.parameters({name: units + by})
        yield "widen", WidenSpace(space=name, by=by, seed=seed, even=True), scores.add_neurons, wider
    deeper = whole + units * (units * weight[0, 0].numel() + 1)
    yield "deepen", DeepenNetwork(after=layer), scores.add_layer, deeper
    left = max(1, units - scores.negligible)
    if left < units:
        yield "project", ProjectSpace(space=name, to=left), scores.remove_neurons, costs.parameters({name: left})
    folded = costs.parameters({name: 0}) + weight[0].numel() * (read.numel() // units)
    yield "fold", FoldLayer(layer=layer, linearise=True), scores.remove_layer, folded
