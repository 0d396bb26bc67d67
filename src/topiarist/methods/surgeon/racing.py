"""The Surgeon, ours: candidates race on the same batches, and the race ends as soon as it is clear.

One network is trained. At each decision point edits of it, and it itself, are trained on by the same batches; what
they give to the true class of held-out samples, less the price of their size, decides. The winner's steps are part of
its training; what the others cost is kept within a share of the whole.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import torch
from pydantic import Field
from torch import nn

from topiarist.errors import ModelError
from topiarist.evolution.lineage import Node
from topiarist.files import JsonObject
from topiarist.methods.surgeon.branches import Branch
from topiarist.methods.surgeon.evolution import EditCandidate, Evolution
from topiarist.methods.surgeon.proposals import FLATTENING, GROWING, LATE, Kind, Proposals
from topiarist.methods.surgeon.scoring import clearly_worse, priced_score
from topiarist.methods.surgeon.widths import PRICE as WIDTH_PRICE
from topiarist.methods.surgeon.widths import WidthRace
from topiarist.settings import Record
from topiarist.surgery import recommend
from topiarist.surgery.advice.trials import LabelledSamples
from topiarist.tracing.finding import trace_again

Phase = Literal["early", "late"]
PHASES: tuple[Phase, ...] = get_args(Phase)
Topology = tuple[tuple[str, int], ...]

LOOKS: dict[Phase, tuple[float, ...]] = {  # how much of a race is run when those that are clearly worse leave it
    "early": (0.25, 0.5, 0.75, 1.0),
    "late": (0.0,),  # what no one needs is not missed: nothing has to recover
}
FAR = 0.01  # behind the leading one, and beyond doubt: then a network leaves while there is training to make up for it
# CIFAR-10, 4,000 samples, 300-100-100, two seeds, plain 39.6 %: a hundredth halves the network and ends at 39.4 %,
# three hundredths leave a third of it and end at 38.4 %.
TOLERATED = 10.0  # times the price of size: what removals may lose of what readers need, which training makes up for
LEAST, MOST = 100, 0.1  # steps of a race where an epoch has fewer, as long as that is this share of the training
SPANS: dict[Phase, tuple[float, float]] = {"early": (0.0, 0.3), "late": (0.4, 0.6)}  # of the training
STRETCH = 0.1  # of the training: what a crash or a divergence costs at most


class RacingState(Record):
    """What a race remembers from decision to decision; see `RacingStrategy`."""

    spent: int = Field(ge=0)
    quiet: dict[Phase, int]
    next_decision: int = Field(ge=0)
    grown: tuple[str, ...]
    closed: tuple[Phase, ...]
    seen: tuple[Topology, ...] = Field(min_length=1)


@dataclass(kw_only=True)
class RacingStrategy:
    """One network is trained: early it may grow or lose layers, late it may lose what no one needs.

    `allowance` is how many steps those that lose may take in all, and `spent` what they took; a phase is closed after
    `patience` decisions that changed nothing (`quiet` counts them), or where a topology that was `seen` comes back.
    Before all that, a race of widths may multiply them, by `most` at most; spaces that `grown` names lose no units.
    """

    evolution: Evolution
    samples: LabelledSamples
    price: float
    kinds: Sequence[Kind]
    fits: Callable[[nn.Module], bool]
    interval: int
    patience: int
    allowance: int
    most: int = 8
    grown: list[str] = field(default_factory=list)
    spent: int = 0
    quiet: dict[Phase, int] = field(default_factory=dict)
    next_decision: int = 0
    closed: set[Phase] = field(default_factory=set)
    seen: list[Topology] = field(default_factory=list)

    def first(self) -> list[Branch]:
        """Let the widths race, and train the winner up to the first decision."""
        start = self.evolution.begin()
        self.seen.append(self.evolution.lineage.nodes[start.node].widths)
        found = self.evolution.anatomy_of(start)
        growing = [kind for kind in self.kinds if kind in GROWING]
        if growing and found is not None and found.free and self.most > 1 and self.allowance:
            self.evolution.record(start, self.score(start))
            race = WidthRace(
                evolution=self.evolution,
                price=WIDTH_PRICE * self.price,
                most=self.most,
                fits=self.fits,
                copies="grow" not in growing,
            )
            start = race.run(start, found)
            widths = self.evolution.lineage.nodes[start.node].widths
            self.grown = [name for name, width in widths if width > dict(self.seen[-1])[name]]
            self.seen += [widths] if self.grown else []
        return [self._trained_until(start, max(self.length, start.steps))]

    @property
    def length(self) -> int:
        """The steps of a race: an epoch, or more of them where they are short."""
        per_epoch = self.evolution.per_epoch
        return max(1, min(math.ceil(LEAST / per_epoch), round(MOST * self.evolution.setup.config.epochs))) * per_epoch

    @property
    def stretch(self) -> int:
        """The most steps that are made between two checkpoints."""
        return max(1, round(STRETCH * self.evolution.setup.config.epochs)) * self.evolution.per_epoch

    def cycle(self, branches: Sequence[Branch]) -> list[Branch]:
        """Decide, and train the winner up to the next decision; with nothing to decide, train for a while."""
        (branch,) = branches
        phase = self.phase(branch)
        if phase is None:
            return [self._trained_until(branch, self.evolution.last_step)]
        begin, end = self.span(phase)
        if phase in self.closed or not self.due(phase):
            return [self._trained_until(branch, end)]
        if branch.steps < max(begin, self.next_decision):
            return [self._trained_until(branch, max(begin, self.next_decision))]
        winner = self.race(branch, self.evolution.lineage.next_decision, phase)
        self.next_decision = branch.steps + max(self.interval * self.evolution.per_epoch, 2 * self.length)
        return [self._trained_until(winner, self.next_decision)]

    def phase(self, branch: Branch) -> Phase | None:
        """Return the phase that a branch is in or comes to next; None after the last."""
        return next((phase for phase in PHASES if branch.steps < self.span(phase)[1]), None)

    def span(self, phase: Phase) -> tuple[int, int]:
        """Return the steps at which a phase begins and ends, each at the end of an epoch."""
        begin, end = (round(share * self.evolution.setup.config.epochs) for share in SPANS[phase])
        return begin * self.evolution.per_epoch, end * self.evolution.per_epoch

    def due(self, phase: Phase) -> list[Kind]:
        """Return the kinds of change of a phase that are asked for; a network that grew keeps its layers."""
        fitting = [kind for kind in self.kinds if kind not in GROWING and (kind in LATE) == (phase == "late")]
        return [kind for kind in fitting if not (self.grown and kind in FLATTENING)]

    def race(self, branch: Branch, number: int, phase: Phase) -> Branch:
        """Train a branch and edits of it side by side, and return the one that is worth most."""
        evolution = self.evolution
        tried = runners = self.entered(branch, number, phase)
        for look in LOOKS[phase]:
            if len(runners) == 1:
                break
            target = min(branch.steps + round(look * self.length), evolution.last_step)
            self.spent += (len(runners) - 1) * (target - runners[0].steps)
            runners = self.with_all_looks(runners, evolution.train(runners, target - runners[0].steps))
            last = look == LOOKS[phase][-1]
            if last or len(runners[0].probabilities) > 1:
                runners = self.unbeaten(runners, least=0.0 if last and phase == "early" else FAR)
        winner = self.winner(runners)
        evolution.mark([branch], "kept")
        node = evolution.lineage.nodes[winner.node]
        reason = f"{node.edit} ({node.reason})" if node.kind != "identity" else self.unchanged(tried)
        reason += "".join(f"; {ending}" for ending in self.endings(node, phase))
        evolution.decide(number=number, draw=0, tried=tried, kept=[winner], reason=reason)
        return winner

    def with_all_looks(self, before: Sequence[Branch], after: Sequence[Branch]) -> list[Branch]:
        """Return branches after some steps of a race, with the probabilities of all its evaluations."""
        found = [
            replace(new, probabilities=torch.cat([old.probabilities, new.probabilities]))
            for old, new in zip(before, after, strict=True)
        ]
        for each in found:
            self.evolution.record(each, self.score(each))
        return found

    def entered(self, branch: Branch, number: int, phase: Phase) -> list[Branch]:
        """Return a branch as it is and those that edits make of it, as far as the network and the budget allow them."""
        made = [self.evolution.edit(candidate, number) for candidate in self.candidates(branch, number, phase)]
        first, *others = [each for each in made if each is not None]
        entered = [first]
        for each in others:
            if self.fits(each.model):
                entered.append(each)
            else:
                self.evolution.drop(each, "above the budget")
        return [replace(each, probabilities=each.probabilities[:0]) for each in entered]

    def unbeaten(self, runners: Sequence[Branch], *, least: float) -> list[Branch]:
        """Return the leading branch and those that are not clearly worse, by a least distance."""
        leader, *others = sorted(runners, key=self.score, reverse=True)
        left = [leader]
        for each in others:
            handicap = self.score(each) - each.value - (self.score(leader) - leader.value)
            if math.isnan(each.value):
                self.evolution.drop(each, "it diverged")
            elif clearly_worse(each.probabilities, leader.probabilities, handicap, least):
                self.evolution.drop(each, f"clearly worse: {self._behind(each, leader)}")
            else:
                left.append(each)
        return left

    def endings(self, winner: Node, phase: Phase) -> Iterator[str]:
        """Yield what ends with a decision: a phase, where it changed nothing again or the topology oscillates."""
        quiet = self.quiet[phase] = self.quiet.get(phase, 0) + 1 if winner.kind == "identity" else 0
        if quiet >= self.patience:
            yield self._close(phase, f"{quiet} in a row changed nothing: this was the last {phase} decision")
        elif winner.widths != self.seen[-1] and winner.widths in self.seen:
            yield self._close(phase, f"this topology was there before: this was the last {phase} decision")
        if winner.kind == "deepen":
            self.grown = [name for name, _ in winner.widths]
            yield "what was added will not be taken away"
        self.seen.append(winner.widths)

    def winner(self, runners: Sequence[Branch]) -> Branch:
        """Return the best changed branch: measurements spoke for the change, so it has the benefit of the doubt."""
        nodes = self.evolution.lineage.nodes
        chosen = next((each for each in runners if nodes[each.node].kind != "identity"), runners[0])
        for each in runners:
            if each is not chosen:
                self.evolution.drop(each, "not clearly better than what is changed")
        return chosen

    def unchanged(self, tried: Sequence[Branch]) -> str:
        """Return why a network stays as it is."""
        same, *others = self.evolution.lineage.nodes[tried[0].node :]
        said = ", ".join(f"{node.kind}: {node.reason}" for node in others) or same.reason
        return f"leave as it is ({said})"

    def candidates(self, branch: Branch, number: int, phase: Phase) -> list[EditCandidate]:
        """Return the branch as it is, and the best edit of each kind, as far as the allowance goes."""
        try:
            found, obstacle = self.proposed(branch, number, phase), "nothing is worth a try"
        except ModelError as error:
            found, obstacle = [], str(error)
        cost = round(LOOKS[phase][-1] * self.length)
        room = max(0, self.allowance - self.spent) // cost if cost else len(found)
        if found and not room:
            obstacle = "the allowance for trials is used up"
        reason = "to compare with" if found and room else obstacle
        return [EditCandidate(branch=branch, kind="identity", edits=(), reason=reason), *found[:room]]

    def proposed(self, branch: Branch, number: int, phase: Phase) -> list[EditCandidate]:
        """Return what is worth trying; raise ModelError for a network that cannot be traced."""
        evolution = self.evolution
        example = evolution.job.example_input
        found = trace_again(branch.model, example, evolution.job.anatomy)
        some, model = self.samples, branch.model
        advice = recommend(
            model, example, calibration=some.calibration, labels=some.labels, task=some.task, anatomy=found
        )
        tolerance, stuck = TOLERATED * self.price, self.quiet.get(phase, 0) > 0
        proposals = Proposals(evolution, branch, advice, number, tolerance, stuck, self.grown)
        return [candidate for kind in self.due(phase) for candidate in proposals.of(kind)]

    def score(self, branch: Branch) -> float:
        """Return what a branch is worth less the price of its size."""
        start = self.evolution.start_parameters
        return priced_score(branch.value, branch.parameters, start=start, price=self.price)

    def state(self) -> JsonObject:
        """Return what a checkpoint keeps, as JSON values."""
        known = {name: getattr(self, name) for name in RacingState.model_fields}
        return RacingState(**{**known, "closed": sorted(self.closed)}).to_json()

    def load(self, state: JsonObject) -> None:
        """Continue from what `state` returned."""
        known = RacingState.model_validate(state)
        self.spent, self.next_decision = known.spent, known.next_decision
        self.quiet, self.grown = dict(known.quiet), list(known.grown)
        self.closed, self.seen = set(known.closed), list(known.seen)

    def _trained_until(self, branch: Branch, step: int) -> Branch:
        step = min(step, branch.steps + self.stretch, self.evolution.last_step)
        if step <= branch.steps or math.isnan(branch.accuracy):
            return branch
        (trained,) = self.evolution.train([branch], step - branch.steps)
        self.evolution.record(trained, self.score(trained))
        return trained

    def _close(self, phase: Phase, reason: str) -> str:
        self.closed.add(phase)
        return reason

    def _behind(self, branch: Branch, leader: Branch) -> str:
        return f"{100 * (self.score(leader) - self.score(branch)):.2f} points behind"
