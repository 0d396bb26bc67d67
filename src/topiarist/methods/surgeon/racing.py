"""The Surgeon, ours: candidates race on the same batches, and the race ends as soon as it is clear.

One network is trained. At each decision point edits of it, and it itself, are trained on by the same batches; what
they give to the true class of held-out samples, less the price of their size, decides. The winner's steps are part of
its training; what the others cost is kept within a share of the whole.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from topiarist.measurement import Budget
from topiarist.methods.surgeon.branches import Branch
from topiarist.methods.surgeon.proposals import REDUCING, Kind, Proposals, fits
from topiarist.methods.surgeon.scoring import clearly_worse, priced_score
from topiarist.methods.surgeon.theatre import Candidate, Theatre
from topiarist.surgery.recommendation import recommend
from topiarist.surgery.trials import Samples

RUNGS: dict["Phase", tuple[float, ...]] = {  # parts of a race, after each of which some leave it
    "growth": (1.0,),  # fresh units need time to show
    "reduction": (1 / 3, 2 / 3),
}
LEAST, MOST = 100, 0.1  # steps of a race where an epoch has fewer, as long as they are this share of the training
FINALISTS = 2  # that go on after the first rung
GROWTH_ENDS, REDUCTION_ENDS = 0.3, 0.6  # of the training

Phase = Literal["growth", "reduction"]
Topology = tuple[tuple[str, int], ...]


@dataclass(kw_only=True)
class Racing:
    """The way of one network: first it may grow, then it may become smaller, and at last it is only trained.

    `allowance` is how many steps those that lose may take in all; a phase ends early after `patience` decisions that
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

    def cycle(self, branches: Sequence[Branch], number: int) -> list[Branch]:
        """Decide once, and train the winner up to the next decision; to the end of a phase with nothing to decide."""
        (branch,) = branches
        phase = self.phase(branch)
        if phase is None:
            return [self._trained_until(branch, self.theatre.last_step)]
        if not self.due(phase):
            self.closed.setdefault(phase, "no kind of change is asked for")
        if phase in self.closed:
            self.quiet = 0
            return [self._trained_until(branch, self.end_of(phase))]
        winner = self.race(branch, number, phase)
        next_decision = branch.steps + max(self.interval * self.theatre.per_epoch, 2 * self.length)
        return [self._trained_until(winner, next_decision)]

    def phase(self, branch: Branch) -> Phase | None:
        """Say what may happen to a branch now."""
        return next((phase for phase in ("growth", "reduction") if branch.steps < self.end_of(phase)), None)

    def end_of(self, phase: Phase) -> int:
        """Give the step at which a phase ends, at the end of an epoch."""
        share = GROWTH_ENDS if phase == "growth" else REDUCTION_ENDS
        return round(share * self.theatre.course.config.epochs) * self.theatre.per_epoch

    def due(self, phase: Phase) -> list[Kind]:
        """Give the kinds of change of a phase that are asked for."""
        return [kind for kind in self.kinds if (kind in REDUCING) == (phase == "reduction")]

    def race(self, branch: Branch, number: int, phase: Phase) -> Branch:
        """Train a branch and edits of it side by side, and give the one that is worth most."""
        theatre = self.theatre
        operated = [theatre.operate(candidate, number) for candidate in self.candidates(branch, number, phase)]
        runners = [each for each in operated if each is not None and fits(each, theatre, self.budget)]
        tried = runners
        for rung, share in enumerate(RUNGS[phase]):
            steps = min(max(1, round(share * self.length)), theatre.last_step - runners[0].steps)
            runners = theatre.train(runners, steps)
            for each in runners:
                theatre.note(each, self.score(each))
            self.spent += (len(runners) - 1) * steps
            runners = self.left(runners, 1 if rung == len(RUNGS[phase]) - 1 else FINALISTS)
            if len(runners) == 1:
                break
        (winner,) = runners
        theatre.settle([branch], "kept")
        node = theatre.lineage.nodes[winner.node]
        theatre.decide(number=number, draw=0, tried=tried, kept=runners, reason=f"{node.edit} ({node.reason})")
        self._remember(winner, phase)
        return winner

    def left(self, runners: Sequence[Branch], most: int) -> list[Branch]:
        """Give those that stay in the race: not clearly worse than the leading one, and at most so many."""
        ranked = sorted(runners, key=self.score, reverse=True)
        leader = ranked[0]
        staying = []
        for place, each in enumerate(ranked):
            handicap = self.score(each) - each.value - (self.score(leader) - leader.value)
            behind = f"{100 * (self.score(leader) - self.score(each)):.2f} points behind"
            if math.isnan(each.value) and each is not leader:
                self._leave(each, "it diverged")
            elif each is not leader and clearly_worse(each.chances, leader.chances, handicap):
                self._leave(each, f"clearly worse: {behind}")
            elif place >= most:
                self._leave(each, behind)
            else:
                staying.append(each)
        return staying

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
        proposals = Proposals(theatre, branch, advice, number, narrow=self.quiet > 0)
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
        if step <= branch.steps:
            return branch
        (trained,) = self.theatre.train([branch], min(step, self.theatre.last_step) - branch.steps)
        self.theatre.note(trained, self.score(trained))
        return trained

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
            self.closed = dict.fromkeys(("growth", "reduction"), "the allowance for trials is used up")
        if changed and phase == "growth":
            self.closed["reduction"] = "the network grew: what was added is not taken away"
        self.seen.append(node.widths)

    def _topology(self, branch: Branch) -> Topology:
        return self.theatre.lineage.nodes[branch.node].widths
