"""The Surgeon, ours: candidates race on the same batches, and the race ends as soon as it is clear.

One network is trained. At each decision point edits of it, and it itself, are trained on by the same batches; what
they give to the true class of held-out samples, less the price of their size, decides. The winner's steps are part of
its training; what the others cost is kept within a share of the whole.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from topiarist.measurement import Budget
from topiarist.methods.surgeon.branches import Branch
from topiarist.methods.surgeon.proposals import GROWING, LATE, Kind, Proposals, fits
from topiarist.methods.surgeon.scoring import clearly_worse, priced_score
from topiarist.methods.surgeon.theatre import Candidate, Theatre
from topiarist.surgery.recommendation import recommend
from topiarist.surgery.trials import Samples

LOOKS: dict["Phase", tuple[float, ...]] = {  # how much of a race is run when those that are clearly worse leave it
    "early": (1 / 3, 1.0),
    "late": (0.0,),  # what no one needs is not missed: nothing has to recover
}
FAR = 0.01  # behind the leading one, and beyond doubt: then a network leaves the race before its end
LEAST, MOST = 100, 0.1  # steps of a race where an epoch has fewer, as long as they are this share of the training
SPANS: dict["Phase", tuple[float, float]] = {"early": (0.0, 0.3), "late": (0.5, 0.7)}  # of the training

STRETCH = 0.1  # of the training: what a crash or a divergence costs at most

Phase = Literal["early", "late"]
PHASES: tuple[Phase, ...] = get_args(Phase)
Topology = tuple[tuple[str, int], ...]


@dataclass(kw_only=True)
class Racing:
    """The way of one network: early it may grow or lose layers, late it may lose what no one needs, then it is trained.

    `allowance` is how many steps those that lose may take in all; a phase is closed after `patience` decisions that
    changed nothing, or where the topology oscillates. A network that grew is not made smaller again.
    """

    theatre: Theatre
    samples: Samples
    price: float
    kinds: Sequence[Kind]
    budget: Budget
    interval: int
    patience: int
    allowance: int
    spent: int = 0
    quiet: int = 0
    closed: dict[Phase, str] = field(default_factory=dict)
    seen: list[Topology] = field(default_factory=list)

    def first(self) -> list[Branch]:
        """Train the network as it is."""
        start = self.theatre.begin()
        self.seen.append(self._topology(start))
        return [self._trained_until(start, self.length)]

    @property
    def length(self) -> int:
        """The steps of a race: an epoch, or more where epochs are short."""
        return max(self.theatre.per_epoch, min(LEAST, round(MOST * self.theatre.last_step)))

    @property
    def stretch(self) -> int:
        """The most steps that are made before what came of them is written down."""
        return max(1, round(STRETCH * self.theatre.course.config.epochs)) * self.theatre.per_epoch

    def cycle(self, branches: Sequence[Branch]) -> list[Branch]:
        """Decide, and train the winner up to the next decision; with nothing to decide, train for a while."""
        (branch,) = branches
        phase = self.phase(branch)
        if phase is None:
            return [self._trained_until(branch, self.theatre.last_step)]
        begin, end = self.span(phase)
        if not self.due(phase):
            self.closed.setdefault(phase, "no kind of change is asked for")
        if branch.steps < begin or phase in self.closed:
            self.quiet = 0
            return [self._trained_until(branch, end if phase in self.closed else begin)]
        winner = self.race(branch, self.theatre.lineage.next_decision, phase)
        next_decision = branch.steps + max(self.interval * self.theatre.per_epoch, 2 * self.length)
        return [self._trained_until(winner, next_decision)]

    def phase(self, branch: Branch) -> Phase | None:
        """Say what may happen to a branch now or next."""
        return next((phase for phase in PHASES if branch.steps < self.span(phase)[1]), None)

    def span(self, phase: Phase) -> tuple[int, int]:
        """Give the steps at which a phase begins and ends, each at the end of an epoch."""
        begin, end = (round(share * self.theatre.course.config.epochs) for share in SPANS[phase])
        return begin * self.theatre.per_epoch, end * self.theatre.per_epoch

    def due(self, phase: Phase) -> list[Kind]:
        """Give the kinds of change of a phase that are asked for."""
        return [kind for kind in self.kinds if (kind in LATE) == (phase == "late")]

    def race(self, branch: Branch, number: int, phase: Phase) -> Branch:
        """Train a branch and edits of it side by side, and give the one that is worth most."""
        theatre = self.theatre
        tried = runners = self.entered(branch, number, phase)
        for look in LOOKS[phase]:
            target = min(branch.steps + round(look * self.length), theatre.last_step)
            self.spent += (len(runners) - 1) * (target - runners[0].steps)
            runners = theatre.train(runners, target - runners[0].steps)
            for each in runners:
                theatre.note(each, self.score(each))
            runners = self.unbeaten(runners, least=0.0 if look == LOOKS[phase][-1] else FAR)
        winner = self.winner(runners)
        theatre.settle([branch], "kept")
        node = theatre.lineage.nodes[winner.node]
        reason = f"{node.edit} ({node.reason})" if node.kind != "identity" else self.unchanged(tried)
        theatre.decide(number=number, draw=0, tried=tried, kept=[winner], reason=reason)
        self._remember(winner, phase)
        return winner

    def entered(self, branch: Branch, number: int, phase: Phase) -> list[Branch]:
        """Give a branch as it is and those that edits make of it, as far as the network and the budget allow them."""
        same, *edited = self.candidates(branch, number, phase)
        operated = [self.theatre.operate(candidate, number) for candidate in (same, *edited)]
        first, *others = [each for each in operated if each is not None]
        return [first, *(each for each in others if fits(each, self.theatre, self.budget))]

    def unbeaten(self, runners: Sequence[Branch], *, least: float) -> list[Branch]:
        """Give those that are not clearly worse than the leading one, by a least distance; that one comes first."""
        leader, *others = sorted(runners, key=self.score, reverse=True)
        left = [leader]
        for each in others:
            handicap = self.score(each) - each.value - (self.score(leader) - leader.value)
            if math.isnan(each.value):
                self._leave(each, "it diverged")
            elif clearly_worse(each.chances, leader.chances, handicap, least):
                self._leave(each, f"clearly worse: {self._behind(each, leader)}")
            else:
                left.append(each)
        return left

    def winner(self, runners: Sequence[Branch]) -> Branch:
        """Give the smallest of those that are not clearly worse: the benefit of the doubt is its."""
        chosen = min(runners, key=lambda each: each.parameters)
        for each in runners:
            if each is not chosen:
                self._leave(each, "not smaller, and not clearly better")
        return chosen

    def unchanged(self, tried: Sequence[Branch]) -> str:
        """Say why a network stays as it is."""
        others = [self.theatre.lineage.nodes[each.node].kind for each in tried[1:]]
        said = f"not better: {', '.join(others)}" if others else "there is nothing to try"
        return f"leave as it is ({said})"

    def candidates(self, branch: Branch, number: int, phase: Phase) -> Iterator[Candidate]:
        """Give the branch as it is, and the best edit of each kind, as far as the allowance goes."""
        yield Candidate(branch=branch, kind="identity", edits=(), reason="to compare with")
        theatre, room = self.theatre, self.allowance - self.spent
        advice = recommend(
            branch.model,
            theatre.sample,
            calibration=self.samples.calibration,
            labels=self.samples.labels,
            seed=theatre.seed("fresh units", number),
            found=theatre.anatomy_of(branch),
        )
        proposals = Proposals(
            theatre, branch, advice, number, self.kinds, tolerance=self.price / 4, narrow=self.quiet > 0
        )
        for kind in self.due(phase):
            for candidate in proposals.of(kind):
                room -= self.length
                if room < 0:
                    return
                yield candidate

    def score(self, branch: Branch) -> float:
        """Give what a branch is worth less the price of its size."""
        start = self.theatre.start_parameters
        return priced_score(branch.value, branch.parameters, start=start, price=self.price)

    def state(self) -> dict[str, Any]:
        """Give what a journal keeps, as what JSON is made of."""
        return {"spent": self.spent, "quiet": self.quiet, "closed": self.closed, "seen": self.seen}

    def load(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave."""
        self.spent, self.quiet, self.closed = state["spent"], state["quiet"], state["closed"]
        self.seen = [tuple((name, width) for name, width in topology) for topology in state["seen"]]

    def _trained_until(self, branch: Branch, step: int) -> Branch:
        step = min(step, branch.steps + self.stretch, self.theatre.last_step)
        if step <= branch.steps:
            return branch
        (trained,) = self.theatre.train([branch], step - branch.steps)
        self.theatre.note(trained, self.score(trained))
        return trained

    def _behind(self, branch: Branch, leader: Branch) -> str:
        return f"{100 * (self.score(leader) - self.score(branch)):.2f} points behind"

    def _leave(self, branch: Branch, reason: str) -> None:
        known = self.theatre.lineage.nodes[branch.node].reason
        self.theatre.settle([branch], "dropped", f"{known}; {reason}")

    def _remember(self, winner: Branch, phase: Phase) -> None:
        """See whether the network changes, or its topology oscillates, and whether that ends a phase."""
        node = self.theatre.lineage.nodes[winner.node]
        changed = node.widths != self.seen[-1]
        self.quiet = self.quiet + 1 if node.kind == "identity" else 0
        if self.quiet >= self.patience:
            self.closed[phase] = f"nothing changed in {self.quiet} decisions"
        elif changed and node.widths in self.seen:
            self.closed[phase] = "the topology oscillates"
        elif self.spent >= self.allowance:
            self.closed = dict.fromkeys(PHASES, "the allowance for trials is used up")
        if node.kind in GROWING:
            self.closed["late"] = "the network grew: what was added is not taken away"
        self.seen.append(node.widths)

    def _topology(self, branch: Branch) -> Topology:
        return self.theatre.lineage.nodes[branch.node].widths
