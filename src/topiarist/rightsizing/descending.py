"""Goes down the sizes, from the largest to the smallest, as long as they are proven and the time allows."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from torch import nn

from topiarist.errors import TopiaristError
from topiarist.measurement.budget import Footprint
from topiarist.randomness import child_seed
from topiarist.rightsizing.clock import Clock
from topiarist.rightsizing.deciding import Candidate, Judgement, Rung, baseline_answers, joint, judge, nearest
from topiarist.rightsizing.effort import LOOKING, MethodName, WorkPlan
from topiarist.rightsizing.folds import Fold
from topiarist.rightsizing.making import MAKERS, Made, Target, finetune
from topiarist.rightsizing.planning import FEWEST_EPOCHS

FINETUNING = "fine-tuning"
FASTER = 0.95  # of the time of a size that the next, smaller one takes
SHORTER = 0.25  # of it, where each network is trained by itself, for fewer epochs if need be
LITTLE = 0.5  # of the loss that is allowed
FALLEN_BEHIND = 2.5  # times the distance of the best, after which a method is asked no more in a fold
ALIKE = 0.003  # a distance from the teacher that is next to none
HALF_OF_THE_TIME = 0.5  # that is left, for training one size where each network is trained by itself


@dataclass
class Descent:
    """What was tried, size after size, and what was learned on the way."""

    folds: Sequence[Fold]
    plan: WorkPlan
    clock: Clock
    whole: Footprint
    ratios: Sequence[float]
    fits: Callable[[nn.Module], bool]
    rungs: list[Rung] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    spent: dict[str, float] = field(default_factory=dict)
    epoch_seconds: float = 0.0

    def go(self, *, margin: float, alpha: float) -> list[Judgement]:
        """Make and judge networks of one size after the other, until one is not good enough or the time is over.

        After the first size that is not proven none is, in a fixed order of tests: it ends there, unless nothing was
        proven before and nothing speaks against going on, or nothing fits the budget yet.
        """
        with self.clock.stage("baseline"):
            answers = baseline_answers(self.folds)
        judged: list[Judgement] = []
        methods: list[Sequence[MethodName]] = [self.plan.methods for _ in self.folds]
        for number, ratio in enumerate(self.ratios):
            if self.rungs:
                methods = self._asked(self.rungs[-1], ratio)
            rung = self._rung(ratio, methods, number) if all(methods) else None
            if rung is None:
                break
            self.rungs.append(rung)
            judged = judge(self.rungs, answers, margin=margin, alpha=alpha)
            if not promising(judged, margin) and any(map(self.keeps_budget, self.rungs)):
                break
        return judged

    def _asked(self, rung: Rung, ratio: float) -> list[Sequence[MethodName]]:
        """Give the methods to ask in each fold after a rung: those that have not fallen behind, as time allows.

        Those that won most come first, then the fastest; none where the time is over.
        """
        training = FASTER if self.plan.stacked else SHORTER
        left = self.clock.left - training * self.spent[FINETUNING]
        known = [method for method in self.plan.methods if any(method in fold for fold in rung.folds)]
        chosen: list[MethodName] = []
        for method in sorted(known, key=lambda name: (-rung.winners.count(name), self.spent[name])):
            if FASTER * self.spent[method] <= left:
                chosen.append(method)
                left -= FASTER * self.spent[method]
        if len(chosen) < len(known):
            self._note(f"{ratio:.3g} × smaller: the time left is enough for {', '.join(chosen) or 'no method'}")
        return [[name for name in still_asked(fold) if name in chosen] or chosen for fold in rung.folds]

    def target(self, ratio: float) -> Target:
        """Give what a network so many times smaller may have."""
        return Target(ratio, {"parameters": int(self.whole.parameters / ratio), "macs": int(self.whole.macs / ratio)})

    def keeps_budget(self, rung: Rung) -> bool:
        """Say whether the finalist to keep fits the budget."""
        return self.fits(rung.finalists[-1].made.model)

    def _rung(self, ratio: float, methods: Sequence[Sequence[MethodName]], number: int) -> Rung | None:
        """Make the networks of one size; None where a fold has none."""
        target = self.target(ratio)
        found: list[dict[MethodName, Candidate]] = [{} for _ in self.folds]
        with self.clock.stage("candidates"):
            for place, method in enumerate(self.plan.methods):
                share = (number + 0.8 * place / len(self.plan.methods)) / len(self.ratios)
                self.clock.tell(0.2 + 0.7 * share, f"{ratio:.3g} × smaller: {method}")
                asked = [fold for fold, known in enumerate(methods) if method in known]
                if all(found) and not self._has_time_for(method, ratio):
                    continue
                with self._spending(method):
                    for fold, network in self._made(method, target, asked):
                        found[fold][method] = self._candidate(fold, network)
            if not all(found):
                return None
            self.clock.tell(0.2 + 0.7 * (number + 0.8) / len(self.ratios), f"{ratio:.3g} × smaller: fine-tuning")
            with self._spending(FINETUNING):
                winners, finalists = self._finalists(found, self._epochs(ratio))
        return Rung(target, found, winners, finalists)

    def _has_time_for(self, method: MethodName, ratio: float) -> bool:
        """Say whether one more method can be asked at the first size, where how long it takes is not known yet."""
        if self.plan.stacked or self.rungs or not self.spent:
            return True
        enough = max(self.spent.values()) <= (1 - HALF_OF_THE_TIME) * self.clock.left
        if not enough:
            self._note(f"{ratio:.3g} × smaller: the time left is not enough for {method}")
        return enough

    def _epochs(self, ratio: float) -> int:
        """Give for how many epochs finalists are trained: as planned, or fewer where each trains by itself, slowly."""
        planned = self.plan.finetuning_epochs
        if self.plan.stacked or not self.epoch_seconds:
            return planned
        share = 1.0 if ratio == self.ratios[-1] else HALF_OF_THE_TIME
        each = self.epoch_seconds * self.plan.made(self.plan.methods)
        epochs = min(max(int(share * self.clock.left / each), FEWEST_EPOCHS), planned)
        if epochs < planned:
            self._note(f"{ratio:.3g} × smaller: the time left is enough for {epochs} epochs of fine-tuning")
        return epochs

    def _finalists(
        self, found: Sequence[Mapping[MethodName, Candidate]], epochs: int
    ) -> tuple[list[MethodName], list[Candidate]]:
        """Train the best network of each fold on, perhaps several times: all of them answer, and the best stays."""
        times = self.plan.trainings
        fitting = {name: each for name, each in found[-1].items() if self.fits(each.made.model)} or found[-1]
        winners = [nearest(fold) for fold in (*found[:-1], fitting)]
        places = [place for place in range(len(found)) for _ in range(times)]
        made = [found[place][winners[place]].made for place in places]
        folds = [self.folds[place] for place in places]
        seeds = [child_seed(fold.seed, "finalist", number % times) % 2**32 for number, fold in enumerate(folds)]
        tuned = finetune(made, folds, epochs, seeds)
        trained = [self._candidate(place, network) for place, network in zip(places, tuned, strict=True)]
        return winners, [joint(trained[first : first + times]) for first in range(0, len(trained), times)]

    def _made(self, method: MethodName, target: Target, asked: Sequence[int]) -> list[tuple[int, Made]]:
        """Let a method make its networks of some folds, each once, and fine-tune them together."""
        made: dict[int, Made] = {}
        same: dict[Hashable, Made] = {}
        for fold in asked:
            key = fold if method in LOOKING else self.folds[fold].lesson
            try:
                made[fold] = same[key] = same.get(key) or self._make(method, fold, target)
            except TopiaristError as error:
                self._note(f"{method}, {target.ratio:.3g} × smaller: {error}")
        if not made:
            return []
        folds, begun = [self.folds[fold] for fold in made], self.clock.elapsed
        tuned = finetune(list(made.values()), folds, self.plan.first_epochs, [fold.seed for fold in folds])
        self.epoch_seconds = (self.clock.elapsed - begun) / (self.plan.first_epochs * len(same))
        return list(zip(made, tuned, strict=True))

    def _make(self, method: MethodName, fold: int, target: Target) -> Made:
        return MAKERS[method](self.folds[fold], target, self.plan.finetuning_epochs)

    @contextmanager
    def _spending(self, what: str) -> Iterator[None]:
        """Remember how long something took at the last size."""
        begun = self.clock.elapsed
        yield
        self.spent[what] = self.clock.elapsed - begun

    def _candidate(self, fold: int, made: Made) -> Candidate:
        """Look at a network; that to keep is judged by none of the samples of the test part."""
        last = fold == len(self.folds) - 1
        place = self.folds[fold]
        answers = baseline_answers([]) if last else place.judged(made.model)
        return Candidate(made, answers, place.distance(made.model))

    def _note(self, said: str) -> None:
        if said not in self.notes:
            self.notes.append(said)


def promising(judged: Sequence[Judgement], margin: float) -> bool:
    """Say whether smaller sizes are worth a try: the last is proven, or none is and it lost little as far as seen."""
    if any(each.proven for each in judged):
        return judged[-1].proven
    return judged[-1].evidence.difference >= -LITTLE * margin


def still_asked(fold: Mapping[MethodName, Candidate]) -> list[MethodName]:
    """Give the methods of a fold that have not fallen behind the best."""
    best = min(candidate.distance for candidate in fold.values())
    return [name for name, candidate in fold.items() if candidate.distance <= FALLEN_BEHIND * best + ALIKE]
