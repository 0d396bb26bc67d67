"""How much work an effort means: levels that state their time beforehand, and what is done where that is enough."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

EffortName = Literal["quick", "normal", "thorough"]
Design = Literal["refitted", "held out"]
MethodName = Literal["distinctiveness", "genetic", "magnitude", "surgeon", "factorisation"]

METHODS: tuple[MethodName, ...] = ("distinctiveness", "genetic", "factorisation", "magnitude", "surgeon")
TOO_LONG = 2.0  # times the share of the time, so that the plan of stacks, which are fast, does not hang on the clock
TRAININGS = 3  # of a finalist, where they are one stack
FIRST = 0.1  # of the epochs of fine-tuning that the networks of all methods get
SMALLER = 0.6  # of the time of the baseline's epoch that an epoch of a smaller network takes
TIMES = {"distinctiveness": 0.9, "genetic": 1.5, "factorisation": 1.0, "magnitude": 3.5, "surgeon": 3.0}
LOOKING: tuple[MethodName, ...] = ("genetic", "surgeon")  # at validation samples; others at training samples alone
REACHED, SIZES = 3, 4  # sizes that networks each trained by itself are likely to come to, and that there are at most


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


def full_plan(
    effort: Effort, methods: Sequence[MethodName], *, design: Design, folds: int, trained: bool, stacked: bool = True
) -> WorkPlan:
    """Give all that an effort asks for.

    `folds` are as many as the samples allow; `trained` says that the baseline is there already, `stacked` that networks
    are trained as one computation.
    """
    return WorkPlan(
        seconds=effort.seconds,
        design=design,
        folds=min(folds, effort.folds),
        seeds=1 if trained else effort.seeds,
        epochs=0 if trained else effort.epochs,
        finetuning_epochs=effort.finetuning_epochs,
        trainings=TRAININGS if stacked else 1,
        ratios=effort.ratios if stacked else coarse(effort.ratios),
        methods=tuple(methods),
    )


def coarse(ratios: tuple[int, ...]) -> tuple[int, ...]:
    """Give every second, or fourth … of the sizes, so that they are few."""
    while len(ratios) > SIZES:
        ratios = ratios[::2]
    return ratios
