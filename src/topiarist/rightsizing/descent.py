"""The descent: networks of one size after the other are made and tested, from the largest to the smallest.

In each fold, and at each size, the network nearest to the baselines by the validation part is taken, whichever method
made it, and trained on; then its answers to the samples that no decision saw are compared with the baseline's. The
order of tests, and their level, is that of `Ladder`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from torch import nn

from topiarist.measurement.footprint import Footprint
from topiarist.methods.outcome import Outcome
from topiarist.methods.registry import find_method
from topiarist.rightsizing.candidates import Candidate, SizeResult, joint, nearest, promising, still_asked
from topiarist.rightsizing.clock import Clock, OutOfTimeError
from topiarist.rightsizing.folds import Fold
from topiarist.rightsizing.judging import JudgedAnswers, clearly_better, evidence_of
from topiarist.rightsizing.keeping import times_as_far, with_distance, with_own
from topiarist.rightsizing.ladder import Ladder
from topiarist.rightsizing.making import (
    MadeNetwork,
    Workshop,
    candidate_tasks,
    finalist_tasks,
    make_candidates,
    train_taught,
)
from topiarist.rightsizing.planning import WorkPlan
from topiarist.rightsizing.running import Runner
from topiarist.statistics import Metric, PairedEvidence

BEGUN, ENDED = 0.2, 0.9  # share of the job that is done before and after
FIRST_PART = 0.6  # of the work of a size, about, before the finalists
HOPELESS = 0.2  # power below which finer sizes are not worth their work: the samples are too few for any proof


@dataclass
class Descent:
    """The way down the sizes: what was tried, and what was learned on the way.

    `sizes` are in the order of their ratios. `from_whole` is whether sizes above the first are of use.
    """

    shop: Workshop
    runner: Runner
    clock: Clock
    ratios: Sequence[float]
    fits: Callable[[nn.Module], bool]
    margin: float
    alpha: float
    from_whole: bool = True
    sizes: list[SizeResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    cut_short: str | None = None
    baseline: list[JudgedAnswers] = field(default_factory=list)

    @property
    def folds(self) -> Sequence[Fold]:
        """The folds; the last is that of the networks to keep."""
        return self.shop.folds

    @property
    def plan(self) -> WorkPlan:
        """What is done."""
        return self.shop.plan

    @property
    def whole(self) -> Footprint:
        """The size of the baseline."""
        return self.shop.whole

    @property
    def metric(self) -> Metric:
        """What networks are compared by."""
        return self.folds[-1].task.primary_metric

    @property
    def ladder(self) -> Ladder:
        """The order of tests."""
        return Ladder(self.ratios, self.plan.finer, self.alpha, from_whole=self.from_whole)

    def keeps_budget(self, size: SizeResult) -> bool:
        """Return whether the finalist to keep fits the budget."""
        return self.fits(size.kept.model)

    @property
    def baseline_guess(self) -> PairedEvidence:
        """How the baselines compare with the best constant answer."""
        return self.against_guess([fold.baseline_answers for fold in self.folds[:-1]])

    def against_guess(self, answers: Sequence[JudgedAnswers]) -> PairedEvidence:
        """Compare answers, fold by fold, with the best constant ones."""
        guesses = [fold.guess_answers for fold in self.folds[:-1]]
        return evidence_of(answers, guesses, margin=self.margin, alpha=self.alpha)

    def make(self, method: str, fold: Fold, ratio: float) -> Outcome:
        """Let a method make a network of one fold and size."""
        return self.shop.make(method, fold, ratio)

    def go(self) -> None:
        """Make and test networks of one size after the other: coarse sizes, then finer ones where they failed."""
        with self.clock.stage("baseline"):
            self.baseline = [fold.baseline_answers for fold in self.folds[:-1]]
        try:
            self._go_coarsely()
            self._go_finer()
        except OutOfTimeError:
            done = f"{len(self.sizes)} of at most {self.plan.sizes} sizes"
            self.cut_short = f"the time limit of {self.clock.limit:g} s ended the work after {done}"

    def _go_coarsely(self) -> None:
        """Try coarse sizes until one is not good enough.

        After the first that is not proven none is: it ends there, unless nothing was proven before and nothing speaks
        against going on, or nothing fits the budget yet.
        """
        ladder, number = self.ladder, len(self.sizes)
        for ratio in ladder.coarse():
            proven = all(size.proven for size in self.sizes)
            if ratio > self.ratios[-1] and not proven:
                return
            size = self._size(ratio, number)
            if size is None:
                return
            self._keep(self._judged(size, ladder.coarse_level, tested=proven))
            number += 1
            if not promising(self.sizes, self.margin) and any(map(self.keeps_budget, self.sizes)):
                return

    def _go_finer(self) -> None:
        """Try sizes between the last that was proven and the first that was not, in which it ends."""
        failed = next((size for size in self.sizes if size.tested and not size.proven), None)
        if failed is None or not self.plan.finer or failed.evidence.power < HOPELESS:
            return
        ladder, known = self.ladder, {size.ratio: size for size in self.sizes}
        last = max((size.ratio for size in self.sizes if size.proven), default=None)
        for ratio in ladder.between(last, failed.ratio, most=self.plan.sizes - len(self.sizes)):
            size = known.get(ratio) or self._size(ratio, len(self.sizes))
            if size is None:
                return
            tested = self._judged(size, ladder.fine_level, tested=True)
            self._keep(tested)
            if not tested.proven:
                return

    def _keep(self, size: SizeResult) -> None:
        """Add a size in the order of ratios, in the place of the same size where it is there."""
        others = [known for known in self.sizes if known.ratio != size.ratio]
        self.sizes[:] = sorted((*others, size), key=lambda known: known.ratio)

    def _asked(self, ratio: float) -> list[Sequence[str]]:
        """Return the methods to ask in each fold: those that did not fall behind at the size nearest to this one."""
        if not self.sizes:
            return [self.plan.methods for _ in self.folds]
        near = min(self.sizes, key=lambda size: abs(math.log(size.ratio / ratio)))
        return [still_asked(fold) for fold in near.folds]

    def _size(self, ratio: float, number: int) -> SizeResult | None:
        """Make the networks of one size, which are still to be judged; None where a fold has none."""
        with self.clock.stage("candidates"):
            found = self._candidates(ratio, number)
            if not all(found):
                return None
            winners, finalists = self._finalists(ratio, number, found)
        answers = [finalist.answers for finalist in finalists if finalist.answers is not None]
        guess = self.against_guess(answers)
        return SizeResult(
            ratio=ratio,
            folds=found,
            winners=winners,
            finalists=finalists,
            evidence=evidence_of(answers, self.baseline, margin=self.margin, alpha=self.alpha),
            guess=guess,
            beats_guess=clearly_better(guess, self.alpha),
            times_as_far=times_as_far(finalists),
            tested=False,
            level=self.alpha,
        )

    def _judged(self, size: SizeResult, level: float, *, tested: bool) -> SizeResult:
        """Return a size with the test at a level."""
        answers = [finalist.answers for finalist in size.finalists if finalist.answers is not None]

        def test(margin: float) -> PairedEvidence:
            return evidence_of(answers, self.baseline, margin=margin, alpha=level)

        times = times_as_far(size.finalists)
        evidence = with_own(with_distance(test(self.margin), times, test), self.folds, size.finalists)
        better = clearly_better(size.guess, level)
        return replace(size, evidence=evidence, times_as_far=times, beats_guess=better, tested=tested, level=level)

    def _candidates(self, ratio: float, number: int) -> list[dict[str, Candidate]]:
        """Let the methods make their networks, by fold and in it by method."""
        asked = self._asked(ratio)
        tasks = [
            task
            for method in self.plan.methods
            for task in candidate_tasks(
                method, ratio, [fold for fold, known in enumerate(asked) if method in known], self.shop
            )
        ]

        longest_first = sorted(tasks, key=lambda task: -find_method(task.method).traits.relative_cost)

        def tell(done: int) -> None:
            what = longest_first[min(done, len(tasks) - 1)].method
            self._tell(number + FIRST_PART * done / len(tasks), f"{ratio:.3g} × smaller: {what}")

        tell(0)
        # So that no worker is left waiting for a long task that another began last.
        made_by = dict(zip(longest_first, self.runner.run(make_candidates, longest_first, tell), strict=True))
        found: list[dict[str, Candidate]] = [{} for _ in self.folds]
        for task in tasks:
            self.notes.extend(note for note in made_by[task].notes if note not in self.notes)
            for fold, network in made_by[task].networks.items():
                found[fold][task.method] = self._candidate(fold, network)
        return found

    def _finalists(
        self, ratio: float, number: int, found: Sequence[Mapping[str, Candidate]]
    ) -> tuple[list[str], list[Candidate]]:
        """Train the best network of each fold on, perhaps several times: all of them answer, and the best stays."""
        fitting = {name: each for name, each in found[-1].items() if self.fits(each.outcome.model)} or found[-1]
        winners = [nearest(fold) for fold in (*found[:-1], fitting)]
        best = [MadeNetwork.of(fold[winner].outcome) for fold, winner in zip(found, winners, strict=True)]
        tasks = finalist_tasks(ratio, best, self.shop)

        def tell(done: int) -> None:
            share = FIRST_PART + (1 - FIRST_PART) * done / len(tasks)
            self._tell(number + share, f"{ratio:.3g} × smaller: fine-tuning")

        tell(0)
        trained: list[list[Candidate]] = [[] for _ in found]
        for task, made in zip(tasks, self.runner.run(train_taught, tasks, tell), strict=True):
            for place, fold in enumerate(task.folds):
                trained[fold].append(self._candidate(fold, made.networks[place]))
        return winners, [joint(candidates) for candidates in trained]

    def _candidate(self, fold: int, made: MadeNetwork) -> Candidate:
        """Evaluate a network; that to keep is judged by none of the samples of the test part."""
        last = fold == len(self.folds) - 1
        place = self.folds[fold]
        if last:
            place.calibrate(made.model)
        answers = None if last else place.judged(made.model)
        return Candidate(made.outcome(place), answers, place.distance(made.model))

    def _tell(self, sizes: float, what: str) -> None:
        """Report how far the job is, and the smallest size that is proven so far."""
        proven = [size.ratio for size in self.sizes if size.proven]
        best = f"; {proven[-1]:.3g} × is proven" if proven else ""
        self.clock.tell(BEGUN + (ENDED - BEGUN) * sizes / self.plan.sizes, f"{what}{best}")
