"""The work of an effort, and the plan of a rightsizing: all of that work, or as much of it as keeps to its time.

Where the data are few and the network is small, the plan is that of the level and the clock has no say. Where they are
not, the speed of one epoch, measured beforehand, makes it smaller, and the plan says so.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from topiarist.methods.registry import find_method

EffortName = Literal["quick", "normal", "thorough"]
Design = Literal["refitted", "held out"]

TRAININGS = 3  # of a finalist, where they are one stack
FIRST = 0.1  # of the epochs of fine-tuning that the networks of all methods get
SMALLER = 0.6  # of the time of the baseline's epoch that an epoch of a smaller network takes
REACHED, SIZES = 3, 4  # sizes that networks each trained by itself are likely to reach, and that there are at most
TOO_LONG = 2.0  # times the share of the time, so that the plan of stacks, which are fast, does not hang on the clock
BASELINE_SHARE, CANDIDATES_SHARE = 0.35, 0.65  # of the time of an effort
ENOUGH = 0.5  # of the epochs of a level, below which something else is left out first
FEWEST_EPOCHS = 2


@dataclass(frozen=True, kw_only=True)
class Effort:
    """A level: its time in seconds, and what is done where that is enough.

    `ratios` are how many times fewer parameters and multiply-accumulates are asked for, from step to step. At each, the
    networks of all methods are fine-tuned for a tenth of the epochs, and the best of them for all.
    """

    seconds: int
    folds: int
    seeds: int
    epochs: int
    finetuning_epochs: int
    ratios: tuple[int, ...]

    @property
    def duration(self) -> str:
        """The time in words."""
        minutes = self.seconds // 60
        return "1 hour" if minutes == 60 else f"{minutes} minute{'' if minutes == 1 else 's'}"


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
DEFAULT_EFFORT: EffortName = "quick"  # an answer within a minute; the others look closer


@dataclass(frozen=True)
class Speed:
    """How fast a baseline is: seconds of an epoch, of a cut where that counts, and of answering all samples once."""

    epoch: float
    cut: float = 0.0
    answers: float = 0.0

    def at(self, epoch: float) -> "Speed":
        """Return the same where an epoch turned out to take so long."""
        return Speed(epoch, self.cut * epoch / self.epoch, self.answers * epoch / self.epoch)


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
    methods: tuple[str, ...]
    notes: tuple[str, ...] = ()

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

    def made(self, methods: Iterable[str]) -> int:
        """Return how many networks of a size these methods make.

        Where all folds train on the same samples, methods that look at no others make the same network in each.
        """
        looking = any(find_method(name).traits.looks_at_validation for name in methods)
        return self.folds + 1 if self.design == "refitted" or looking else 1

    def seconds_of_cuts(self, cut_seconds: float) -> float:
        """Return the time that cutting takes, where one cut takes so long."""
        return cut_seconds * self.reached * sum(self.made([method]) for method in self.methods)

    def seconds_of_candidates(self, epoch_seconds: float) -> float:
        """Return the time that training all candidates takes, where an epoch of the baseline takes so long."""
        first = FIRST * sum(_cost(method) * self.made([method]) for method in self.methods)
        last = self.trainings * self.made(self.methods)
        return (first + last) * self.reached * SMALLER * self.finetuning_epochs * epoch_seconds


def _cost(method: str) -> float:
    return find_method(method).traits.relative_cost


def full_plan(
    effort: Effort, methods: Sequence[str], *, design: Design, folds: int, trained: bool, stacked: bool = True
) -> WorkPlan:
    """Return all that an effort asks for.

    `folds` are as many as the samples allow; `trained`: the baseline is there already; `stacked`: networks are trained
    as one computation. Networks that train one by one try every second, or fourth … of the sizes.
    """
    ratios = effort.ratios
    while not stacked and len(ratios) > SIZES:
        ratios = ratios[::2]
    return WorkPlan(
        seconds=effort.seconds,
        design=design,
        folds=min(folds, effort.folds),
        seeds=1 if trained else effort.seeds,
        epochs=0 if trained else effort.epochs,
        finetuning_epochs=effort.finetuning_epochs,
        trainings=TRAININGS if stacked else 1,
        ratios=ratios,
        methods=tuple(methods),
    )


def plan_work(full: WorkPlan, speed: Speed, *, can_hold_out: bool = True) -> WorkPlan:
    """Return the largest plan that keeps to the time of an effort, with a note of what it leaves out.

    `can_hold_out`: the validation part alone could be judged.
    """
    plan = _with_baselines(full, speed.epoch, can_hold_out) if full.epochs else full
    return _noted(full, _with_candidates(plan, speed, CANDIDATES_SHARE * full.seconds), speed.epoch)


def plan_again(full: WorkPlan, plan: WorkPlan, speed: Speed, seconds: float) -> WorkPlan:
    """Return what can be made of trained baselines in the time left, their speed being known by now."""
    wanted = replace(full, design=plan.design, folds=plan.folds, seeds=plan.seeds, epochs=plan.epochs)
    return _noted(full, _with_candidates(wanted, speed, seconds), speed.epoch)


def _with_baselines(full: WorkPlan, epoch_seconds: float, can_hold_out: bool) -> WorkPlan:
    """Leave out seeds, then folds, until the baselines can be trained for enough epochs."""
    if full.baselines * full.epochs * epoch_seconds <= full.too_long * BASELINE_SHARE * full.seconds:
        return full
    thinner = [full, replace(full, seeds=1), replace(full, seeds=1, folds=min(full.folds, 3))]
    if can_hold_out:
        thinner.append(replace(full, seeds=1, folds=2, design="held out"))
    for plan in thinner:
        epochs = int(BASELINE_SHARE * full.seconds / (plan.baselines * epoch_seconds))
        if epochs >= ENOUGH * full.epochs:
            break
    return replace(plan, epochs=min(max(epochs, FEWEST_EPOCHS), full.epochs))


def _with_candidates(full: WorkPlan, speed: Speed, allowed: float) -> WorkPlan:
    """Shorten fine-tuning, then leave out the slowest methods and the smallest sizes, until all can be made in time."""
    if full.seconds_of_candidates(speed.epoch) + full.seconds_of_cuts(speed.cut) <= full.too_long * allowed:
        return full
    for plan in _narrower(full):
        training = allowed - plan.seconds_of_cuts(speed.cut)
        epochs = int(plan.finetuning_epochs * training / plan.seconds_of_candidates(speed.epoch))
        if epochs >= ENOUGH * full.finetuning_epochs:
            break
    return replace(plan, finetuning_epochs=min(max(epochs, FEWEST_EPOCHS), full.finetuning_epochs))


def _narrower(plan: WorkPlan) -> Iterator[WorkPlan]:
    """Yield plans with fewer and fewer methods, then sizes; the last has one method and three sizes."""
    yield plan
    while len(plan.methods) > 1:
        slowest = max(plan.methods, key=_cost)
        plan = replace(plan, methods=tuple(method for method in plan.methods if method != slowest))
        yield plan
    while len(plan.ratios) > 3:
        plan = replace(plan, ratios=plan.ratios[::2] if len(plan.ratios) > 5 else plan.ratios[:-1])
        yield plan


def _noted(full: WorkPlan, plan: WorkPlan, epoch_seconds: float) -> WorkPlan:
    """Add a note of what the clock left out."""
    if plan == full:
        return plan
    words = {"design": "samples judged", "folds": "folds", "seeds": "seeds", "epochs": "epochs"}
    words |= {"finetuning_epochs": "epochs of fine-tuning", "ratios": "sizes", "methods": "methods"}
    less = [
        f"{word}: {_listed(getattr(plan, name))} instead of {_listed(getattr(full, name))}"
        for name, word in words.items()
        if getattr(plan, name) != getattr(full, name)
    ]
    note = f"an epoch takes {epoch_seconds:.2g} s, so that the time of {full.seconds} s leaves {'; '.join(less)}"
    return replace(plan, notes=(*plan.notes, note))


def _listed(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
