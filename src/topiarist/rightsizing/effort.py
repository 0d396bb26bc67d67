"""How much work an effort means: levels that state their time beforehand, and a plan that keeps to it.

Where the data are few and the network is small, the plan is that of the level and the clock has no say. Where they are
not, the speed of one epoch, measured beforehand, makes it smaller, and the plan says so.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

EffortName = Literal["quick", "normal", "thorough"]
Design = Literal["refitted", "held out"]
MethodName = Literal["distinctiveness", "genetic", "magnitude", "surgeon", "factorisation"]

METHODS: tuple[MethodName, ...] = ("distinctiveness", "genetic", "factorisation", "magnitude", "surgeon")
BASELINE_SHARE, CANDIDATES_SHARE = 0.35, 0.65
TOO_LONG = 2.0  # times the share of the time, so that the plan of stacks, which are fast, does not hang on the clock
TRAININGS = 3  # of a finalist, where they are one stack
ENOUGH = 0.5  # of the epochs of a level, below which something else is left out first
FIRST = 0.1  # of the epochs of fine-tuning that the networks of all methods get
SMALLER = 0.6  # of the time of the baseline's epoch that an epoch of a smaller network takes
TIMES = {"distinctiveness": 0.9, "genetic": 1.5, "factorisation": 1.0, "magnitude": 3.5, "surgeon": 3.0}
LOOKING: tuple[MethodName, ...] = ("genetic", "surgeon")  # at validation samples; others at training samples alone
FEWEST_EPOCHS = 2
REACHED = 2  # sizes that networks of which each is trained by itself are likely to come to


@dataclass(frozen=True, kw_only=True)
class Effort:
    """A level: its time in seconds, and what is done where that is enough.

    `ratios` say how many times fewer parameters and multiply-accumulates are asked for, from step to step. At each, the
    networks of all methods are fine-tuned for a tenth of the epochs, and the best of them for all.
    """

    seconds: int
    folds: int
    seeds: int
    epochs: int
    finetuning_epochs: int
    ratios: tuple[int, ...]


EFFORTS: dict[EffortName, Effort] = {
    "quick": Effort(seconds=60, folds=4, seeds=4, epochs=40, finetuning_epochs=90, ratios=(3, 9, 27)),
    "normal": Effort(
        seconds=600,
        folds=5,
        seeds=3,
        epochs=100,
        finetuning_epochs=160,
        ratios=(2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64),
    ),
    "thorough": Effort(
        seconds=3600,
        folds=10,
        seeds=5,
        epochs=200,
        finetuning_epochs=300,
        ratios=(2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 128),
    ),
}


@dataclass(frozen=True, kw_only=True)
class WorkPlan:
    """What is done: how samples are judged, how networks are trained, which sizes and methods are tried."""

    seconds: int
    design: Design
    folds: int
    seeds: int
    epochs: int
    finetuning_epochs: int
    trainings: int
    ratios: tuple[int, ...]
    methods: tuple[MethodName, ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Give plain lists and numbers."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @property
    def baselines(self) -> int:
        """How many networks are trained as baselines."""
        return self.seeds * (self.folds + 1 if self.design == "refitted" else 1)

    @property
    def stacked(self) -> bool:
        """Whether networks are trained as one computation."""
        return self.trainings > 1

    @property
    def too_long(self) -> float:
        """How many times the share of the time a plan may seem to take; little is known beforehand of stacks."""
        return TOO_LONG if self.stacked else 1.0

    @property
    def first_epochs(self) -> int:
        """For how many epochs the networks of all methods are fine-tuned."""
        return max(1, round(FIRST * self.finetuning_epochs))

    @property
    def reached(self) -> int:
        """How many sizes there must be time for."""
        return len(self.ratios) if self.stacked else min(len(self.ratios), REACHED)

    def made(self, methods: Iterable[MethodName]) -> int:
        """Give how many networks are made of a size where such methods have a say.

        Where all folds train on the same samples, those that do not look at others make the same one in each.
        """
        return self.folds + 1 if self.design == "refitted" or not set(LOOKING).isdisjoint(methods) else 1

    def seconds_of_cuts(self, cut_seconds: float) -> float:
        """Give the time that cutting takes, a cut taking so long."""
        return cut_seconds * self.reached * sum(self.made([method]) for method in self.methods)

    def seconds_of_candidates(self, epoch_seconds: float) -> float:
        """Give the time that training all candidates takes, an epoch of the baseline taking so long."""
        first = FIRST * sum(TIMES[method] * self.made([method]) for method in self.methods)
        last = self.trainings * self.made(self.methods)
        return (first + last) * self.reached * SMALLER * self.finetuning_epochs * epoch_seconds


def plan_work(
    effort: Effort,
    methods: Sequence[MethodName],
    *,
    epoch_seconds: float,
    cut_seconds: float = 0.0,
    design: Design,
    folds: int,
    trained: bool,
    can_hold_out: bool = True,
    stacked: bool = True,
) -> WorkPlan:
    """Give the largest plan that keeps to the time of an effort, and say what it leaves out.

    `epoch_seconds` is the time of an epoch of the baseline, `cut_seconds` that of a cut where it is no small part of
    the work. `folds` are as many as the samples allow; `trained` says that the baseline is there already,
    `can_hold_out` that the validation part alone could be judged, `stacked` that networks train as one computation.
    """
    full = WorkPlan(
        seconds=effort.seconds,
        design=design,
        folds=min(folds, effort.folds),
        seeds=1 if trained else effort.seeds,
        epochs=0 if trained else effort.epochs,
        finetuning_epochs=effort.finetuning_epochs,
        trainings=TRAININGS if stacked else 1,
        ratios=effort.ratios,
        methods=tuple(methods),
    )
    plan = full if trained else with_baselines(full, epoch_seconds, can_hold_out)
    return noted(full, with_candidates(plan, epoch_seconds, cut_seconds), epoch_seconds)


def with_baselines(full: WorkPlan, epoch_seconds: float, can_hold_out: bool) -> WorkPlan:
    """Leave out seeds, then folds, until the baselines can be trained for enough epochs."""
    if full.baselines * full.epochs * epoch_seconds <= full.too_long * BASELINE_SHARE * full.seconds:
        return full
    for plan in thinner(full, can_hold_out):
        epochs = int(BASELINE_SHARE * full.seconds / (plan.baselines * epoch_seconds))
        if epochs >= ENOUGH * full.epochs:
            break
    return replace(plan, epochs=min(max(epochs, FEWEST_EPOCHS), full.epochs))


def thinner(full: WorkPlan, can_hold_out: bool) -> Iterator[WorkPlan]:
    """Give plans with fewer and fewer baselines; the last has one, judged on samples held out from all, if it can."""
    yield full
    yield replace(full, seeds=1)
    yield replace(full, seeds=1, folds=min(full.folds, 3))
    if can_hold_out:
        yield replace(full, seeds=1, folds=2, design="held out")


def with_candidates(full: WorkPlan, epoch_seconds: float, cut_seconds: float) -> WorkPlan:
    """Shorten fine-tuning, then leave out the slowest methods and the smallest sizes, until all can be made in time."""
    allowed = CANDIDATES_SHARE * full.seconds
    if full.seconds_of_candidates(epoch_seconds) + full.seconds_of_cuts(cut_seconds) <= full.too_long * allowed:
        return full
    for plan in narrower(full):
        training = allowed - plan.seconds_of_cuts(cut_seconds)
        epochs = int(plan.finetuning_epochs * training / plan.seconds_of_candidates(epoch_seconds))
        if epochs >= ENOUGH * full.finetuning_epochs:
            break
    return replace(plan, finetuning_epochs=min(max(epochs, FEWEST_EPOCHS), full.finetuning_epochs))


def narrower(plan: WorkPlan) -> Iterator[WorkPlan]:
    """Give plans with fewer and fewer methods, then sizes; the last has one method and three sizes."""
    yield plan
    while len(plan.methods) > 1:
        slowest = max(plan.methods, key=TIMES.__getitem__)
        plan = replace(plan, methods=tuple(method for method in plan.methods if method != slowest))
        yield plan
    while len(plan.ratios) > 3:
        plan = replace(plan, ratios=plan.ratios[::2] if len(plan.ratios) > 5 else plan.ratios[:-1])
        yield plan


def noted(full: WorkPlan, plan: WorkPlan, epoch_seconds: float) -> WorkPlan:
    """Say what the clock left out."""
    if plan == full:
        return plan
    words = {"design": "samples judged", "folds": "folds", "seeds": "seeds", "epochs": "epochs"}
    words |= {"finetuning_epochs": "epochs of fine-tuning", "ratios": "sizes", "methods": "methods"}
    less = [
        f"{word}: {shown(getattr(plan, name))} in the place of {shown(getattr(full, name))}"
        for name, word in words.items()
        if getattr(plan, name) != getattr(full, name)
    ]
    note = f"an epoch takes {epoch_seconds:.2g} s, so that the time of {full.seconds} s leaves {'; '.join(less)}"
    return replace(plan, notes=(*plan.notes, note))


def shown(value: object) -> str:
    """Write a number, a word or several."""
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
