"""The descent: networks of one size after the other are made and tested, from the largest to the smallest.

In each fold, and at each size, the network nearest to the baselines by the validation part is taken, whichever method
made it, and trained on; then its answers to the samples that no decision saw are compared with the baseline's. The
sizes are tested in a fixed order until one fails, each at the full level: no correction for many tests is due (Maurer,
Hothorn and Lehmacher, 1995).
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from torch import nn

from topiarist.errors import TopiaristError
from topiarist.measurement.footprint import Footprint
from topiarist.methods.job import Limits
from topiarist.methods.outcome import Outcome
from topiarist.methods.registry import find_method
from topiarist.methods.resizing import resize_all
from topiarist.randomness import child_seed
from topiarist.rightsizing.baseline import baseline_training
from topiarist.rightsizing.candidates import Candidate, SizeResult, joint, nearest, promising, still_asked
from topiarist.rightsizing.clock import Clock
from topiarist.rightsizing.finetuning import finetune
from topiarist.rightsizing.folds import Fold
from topiarist.rightsizing.judging import JudgedAnswers, clearly_better, evidence_of
from topiarist.rightsizing.planning import FEWEST_EPOCHS, WorkPlan
from topiarist.statistics import Metric, PairedEvidence

FINETUNING = "fine-tuning"
FASTER = 0.95  # of the time of a size that the next, smaller one takes
SHORTER = 0.25  # of it, where each network is trained by itself, for fewer epochs if need be
HALF_OF_THE_TIME = 0.5  # that is left, for training one size where each network is trained by itself


@dataclass
class Descent:
    """The way down the sizes: what was tried, and what was learned on the way."""

    folds: Sequence[Fold]
    plan: WorkPlan
    clock: Clock
    whole: Footprint
    ratios: Sequence[float]
    fits: Callable[[nn.Module], bool]
    margin: float
    alpha: float
    sizes: list[SizeResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    spent: dict[str, float] = field(default_factory=dict)
    epoch_seconds: float = 0.0

    def go(self) -> None:
        """Make and test networks of one size after the other, until one is not good enough or the time is over.

        After the first size that is not proven none is, in a fixed order of tests: it ends there, unless nothing was
        proven before and nothing speaks against going on, or nothing fits the budget yet.
        """
        with self.clock.stage("baseline"):
            answers = [fold.baseline_answers for fold in self.folds[:-1]]
        methods: list[Sequence[str]] = [self.plan.methods for _ in self.folds]
        for number, ratio in enumerate(self.ratios):
            if self.sizes:
                methods = self._asked(self.sizes[-1], ratio)
            size = self._size(ratio, methods, number, answers) if all(methods) else None
            if size is None:
                break
            self.sizes.append(size)
            if not promising(self.sizes, self.margin) and any(map(self.keeps_budget, self.sizes)):
                break

    @property
    def metric(self) -> Metric:
        """What networks are compared by."""
        return self.folds[-1].task.primary_metric

    def limits(self, ratio: float) -> Limits:
        """Return what a network so many times smaller may have."""
        return {"parameters": int(self.whole.parameters / ratio), "macs": int(self.whole.macs / ratio)}

    def keeps_budget(self, size: SizeResult) -> bool:
        """Return whether the finalist to keep fits the budget."""
        return self.fits(size.kept.model)

    def against_guess(self, answers: Sequence[JudgedAnswers]) -> PairedEvidence:
        """Compare answers, fold by fold, with the best constant ones."""
        guesses = [fold.guess_answers for fold in self.folds[:-1]]
        return evidence_of(answers, guesses, margin=self.margin, alpha=self.alpha)

    def make(self, method: str, fold: Fold, ratio: float) -> Outcome:
        """Let a method make a network of one fold and size."""
        training = baseline_training(fold.data, self.plan.finetuning_epochs, fold.seed, fold.whole)
        resizing = find_method(method).candidate(fold.job, self.limits(ratio), training)
        return resize_all([fold.job], resizing)[0]

    def _asked(self, size: SizeResult, ratio: float) -> list[Sequence[str]]:
        """Return the methods to ask in each fold after a size: those that have not fallen behind, as time allows.

        Those that won most come first, then the fastest; none where the time is over.
        """
        training = FASTER if self.plan.stacked else SHORTER
        left = self.clock.left - training * self.spent[FINETUNING]
        known = [method for method in self.plan.methods if any(method in fold for fold in size.folds)]
        chosen: list[str] = []
        for method in sorted(known, key=lambda name: (-size.winners.count(name), self.spent[name])):
            if FASTER * self.spent[method] <= left:
                chosen.append(method)
                left -= FASTER * self.spent[method]
        if len(chosen) < len(known):
            self._note(f"{ratio:.3g} × smaller: the time left is enough for {', '.join(chosen) or 'no method'}")
        return [[name for name in still_asked(fold) if name in chosen] or chosen for fold in size.folds]

    def _size(
        self, ratio: float, methods: Sequence[Sequence[str]], number: int, baseline: Sequence[JudgedAnswers]
    ) -> SizeResult | None:
        """Make and test the networks of one size; None where a fold has none."""
        found: list[dict[str, Candidate]] = [{} for _ in self.folds]
        with self.clock.stage("candidates"):
            for place, method in enumerate(self.plan.methods):
                share = (number + 0.8 * place / len(self.plan.methods)) / len(self.ratios)
                self.clock.tell(0.2 + 0.7 * share, f"{ratio:.3g} × smaller: {method}")
                asked = [fold for fold, known in enumerate(methods) if method in known]
                if all(found) and not self._has_time_for(method, ratio):
                    continue
                with self._spending(method):
                    for fold, outcome in self._made(method, ratio, asked):
                        found[fold][method] = self._candidate(fold, outcome)
            if not all(found):
                return None
            self.clock.tell(0.2 + 0.7 * (number + 0.8) / len(self.ratios), f"{ratio:.3g} × smaller: fine-tuning")
            with self._spending(FINETUNING):
                winners, finalists = self._finalists(found, self._epochs(ratio))
        answers = [finalist.answers for finalist in finalists if finalist.answers is not None]
        guess = self.against_guess(answers)
        return SizeResult(
            ratio=ratio,
            folds=found,
            winners=winners,
            finalists=finalists,
            evidence=evidence_of(answers, baseline, margin=self.margin, alpha=self.alpha),
            guess=guess,
            beats_guess=clearly_better(guess, self.alpha),
            tested=not self.sizes or self.sizes[-1].proven,
        )

    def _has_time_for(self, method: str, ratio: float) -> bool:
        """Return whether one more method can be asked at the first size, where its time is not known yet."""
        if self.plan.stacked or self.sizes or not self.spent:
            return True
        enough = max(self.spent.values()) <= (1 - HALF_OF_THE_TIME) * self.clock.left
        if not enough:
            self._note(f"{ratio:.3g} × smaller: the time left is not enough for {method}")
        return enough

    def _epochs(self, ratio: float) -> int:
        """Return the epochs of finalists: as planned, or fewer where each trains by itself, slowly."""
        planned = self.plan.finetuning_epochs
        if self.plan.stacked or not self.epoch_seconds:
            return planned
        share = 1.0 if ratio == self.ratios[-1] else HALF_OF_THE_TIME
        each = self.epoch_seconds * self.plan.made(self.plan.methods)
        epochs = min(max(int(share * self.clock.left / each), FEWEST_EPOCHS), planned)
        if epochs < planned:
            self._note(f"{ratio:.3g} × smaller: the time left is enough for {epochs} epochs of fine-tuning")
        return epochs

    def _finalists(self, found: Sequence[Mapping[str, Candidate]], epochs: int) -> tuple[list[str], list[Candidate]]:
        """Train the best network of each fold on, perhaps several times: all of them answer, and the best stays."""
        times = self.plan.trainings
        fitting = {name: each for name, each in found[-1].items() if self.fits(each.outcome.model)} or found[-1]
        winners = [nearest(fold) for fold in (*found[:-1], fitting)]
        places = [place for place in range(len(found)) for _ in range(times)]
        outcomes = [found[place][winners[place]].outcome for place in places]
        folds = [self.folds[place] for place in places]
        seeds = [child_seed(fold.seed, "finalist", number % times) % 2**32 for number, fold in enumerate(folds)]
        tuned = finetune(outcomes, folds, epochs, seeds)
        trained = [self._candidate(place, outcome) for place, outcome in zip(places, tuned, strict=True)]
        return winners, [joint(trained[first : first + times]) for first in range(0, len(trained), times)]

    def _made(self, method: str, ratio: float, asked: Sequence[int]) -> list[tuple[int, Outcome]]:
        """Let a method make its networks of some folds, each once, and fine-tune them together."""
        made: dict[int, Outcome] = {}
        same: dict[Hashable, Outcome] = {}
        for fold in asked:
            looks = find_method(method).traits.looks_at_validation
            key = fold if looks else self.folds[fold].training_key
            try:
                made[fold] = same[key] = same.get(key) or self.make(method, self.folds[fold], ratio)
            except TopiaristError as error:
                self._note(f"{method}, {ratio:.3g} × smaller: {error}")
        if not made:
            return []
        folds, begun = [self.folds[fold] for fold in made], self.clock.elapsed
        tuned = finetune(list(made.values()), folds, self.plan.first_epochs, [fold.seed for fold in folds])
        self.epoch_seconds = (self.clock.elapsed - begun) / (self.plan.first_epochs * len(same))
        return list(zip(made, tuned, strict=True))

    @contextmanager
    def _spending(self, what: str) -> Iterator[None]:
        """Remember how long something took at the last size."""
        begun = self.clock.elapsed
        yield
        self.spent[what] = self.clock.elapsed - begun

    def _candidate(self, fold: int, outcome: Outcome) -> Candidate:
        """Evaluate a network; that to keep is judged by none of the samples of the test part."""
        last = fold == len(self.folds) - 1
        place = self.folds[fold]
        if last:
            place.calibrate(outcome.model)
        answers = None if last else place.judged(outcome.model)
        return Candidate(outcome, answers, place.distance(outcome.model))

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)
