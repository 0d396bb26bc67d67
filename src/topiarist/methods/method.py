"""What a method is: settings that decide what a network should become, with a name and traits that others read."""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from torch import nn

from topiarist.data import Data
from topiarist.errors import SettingsError, TopiaristWarning
from topiarist.measurement import Budget
from topiarist.methods.job import Job, Limits, Request
from topiarist.methods.outcome import Outcome
from topiarist.methods.retraining import FineTuning, Rewinding
from topiarist.settings import Settings
from topiarist.surgery import Edit
from topiarist.training import TrainConfig

NO_BUDGET = Budget()
Finetune = Callable[[nn.Module], Any]
OnProgress = Callable[[float], None]
Marker = Literal["circle", "square", "triangle", "inverted", "diamond", "pentagon", "cross", "plus"]


@dataclass(frozen=True, kw_only=True)
class Traits:
    """What command line, studies, rightsizing and report need to know of a method.

    Attributes
    ----------
    summary : str
        One line for tables and `--help`.
    in_rightsizing : bool
        Whether `rightsize` asks it unless methods are named.
    looks_at_validation : bool
        Whether it decides by validation samples, and so makes another network in each fold.
    adds_layers : bool
        Whether one layer may become two, which costs a call; `rightsize` asks for a clear gain.
    own_training : bool
        Whether it trains by its own settings, so that no retraining can be given.
    resumes : bool
        Whether it writes a checkpoint and continues from it.
    all_samples : bool
        Whether it looks at all training samples, as its paper does, and not at some thousands.
    relative_cost : float
        Its time beside that of the fine-tuning that follows it: what `rightsize` plans with.
    marker : str
        Shape of its points in figures, one of `Marker`.
    """

    summary: str
    in_rightsizing: bool = True
    looks_at_validation: bool = False
    adds_layers: bool = False
    own_training: bool = False
    resumes: bool = False
    all_samples: bool = False
    relative_cost: float = 1.0
    marker: Marker = "circle"


@dataclass(frozen=True)
class Proposal:
    """Edits to make, in order, and reasons of one line each.

    `model` is the network with the edits made, where the method has it already.
    """

    edits: tuple[Edit, ...]
    reasons: tuple[str, ...] = ()
    model: nn.Module | None = None


class Method(Settings):
    """A method that decides and never cuts: it proposes edits, and `resize` makes them.

    A subclass has a `name`, `traits`, its settings as fields, and `propose`; `methods.register` makes it known.
    """

    name: ClassVar[str]
    traits: ClassVar[Traits]

    @property
    def round_count(self) -> int:
        """How often it is asked, with retraining between."""
        return 1

    @property
    def has_own_target(self) -> bool:
        """Whether its own settings, rather than a budget, decide where to stop."""
        return False

    @abstractmethod
    def propose(self, request: Request) -> Proposal:
        """Decide what a network should become."""
        raise NotImplementedError

    def propose_many(self, requests: Sequence[Request]) -> list[Proposal]:
        """Decide about several networks with the same spaces, such as those of folds."""
        return [self.propose(request) for request in requests]

    @classmethod
    def in_study(cls, values: Mapping[str, Any]) -> Self:
        """Return the method as a study declares it."""
        return cls(**values)

    def check_data(self, data: Data) -> None:
        """Raise DataError for data that the method cannot work with."""

    @classmethod
    def candidate(cls, job: Job, limits: Limits, training: TrainConfig) -> "Resizing":
        """Return how `rightsize` asks for a network within limits; `training` is that of the fine-tuning to follow."""
        return Resizing.within(cls(), limits)


class TrainingMethod(Method):
    """A method that cuts while it trains, and so does all of the work itself."""

    @abstractmethod
    def run(self, job: Job, resizing: "Resizing") -> Outcome:
        """Train a network and resize it on the way."""
        raise NotImplementedError

    @property
    def usual_training(self) -> TrainConfig:
        """How it trains, where its traits say that it trains by its own settings."""
        return TrainConfig()

    def propose(self, request: Request) -> Proposal:
        """Raise TypeError: it trains by itself."""
        raise TypeError(f"{self.name} trains while it cuts: call run")


@dataclass(frozen=True, kw_only=True)
class Resizing:
    """What is done to a network: a method, where it stops, and what follows each cut.

    `settling` is the number of steps by which a cut that is refitted is settled, None for as many as suit the work.
    `checkpoint` is a file for methods that can resume; `on_progress` is called with the share of the work done.
    """

    method: Method
    budget: Budget = NO_BUDGET
    retraining: FineTuning | Rewinding | None = None
    finetune: Finetune | None = None
    settling: int | None = None
    checkpoint: Path | None = None
    on_progress: OnProgress = lambda share: None

    @classmethod
    def within(cls, method: Method, limits: Limits, retraining: FineTuning | Rewinding | None = None) -> "Resizing":
        """Return a resizing to limits on parameters and multiply-accumulates; training with labels is to follow it."""
        budget = Budget(parameters=limits.get("parameters"), macs=limits.get("macs"))
        return cls(method=method, budget=budget, retraining=retraining, settling=0)

    @property
    def searches(self) -> bool:
        """Whether sizes are searched that keep a budget."""
        return self.budget != NO_BUDGET and not self.method.has_own_target

    @property
    def settles_last(self) -> bool:
        """Whether only the network that a search ends with is settled: its size alone decides, and nothing follows."""
        by_size = self.searches and self.budget.limits_size
        return by_size and self.retraining is None and self.finetune is None

    def check(self, job: Job) -> None:
        """Raise SettingsError for what does not go together."""
        if self.budget != NO_BUDGET and self.method.has_own_target:
            raise SettingsError("the method's own settings and the budget both decide where to stop: give one")
        if self.method.traits.own_training and (self.retraining is not None or self.finetune is not None):
            name = type(self.method).__name__
            raise SettingsError(f"the {self.method.name} trains by its own settings: give them as {name}(training=…)")
        if self.retraining is not None and self.finetune is not None:
            raise SettingsError("retraining and finetune both train the cut network: give one")
        if self.method.round_count > 1 and self.retraining is None and self.finetune is None:
            raise SettingsError("rounds above 1 need training between the cuts: give retraining or finetune")
        if job.ignored != () and isinstance(self.method, TrainingMethod):
            raise SettingsError(f"{self.method.name} changes the network as a whole: leave ignored out")
        if self.settling is not None and self.settling < 0:
            raise SettingsError(f"settling is a number of steps, 0 for none; found {self.settling}")
        if self.checkpoint is not None and not self.method.traits.resumes:
            raise SettingsError(f"{self.method.name} writes no checkpoint: leave checkpoint out")
        if self.retraining is not None:
            job.labelled("retraining")
        rewinds = isinstance(self.retraining, Rewinding) and self.retraining.weights
        if (job.early is not None) != rewinds:
            raise SettingsError("an early network, and rewinding with weights=True, need each other: give both")
        if self.budget.max_drop is not None and job.score is None:
            raise SettingsError("max_drop needs a score to judge by: give resize a Data or a score")
        if self.budget.max_drop is not None and job.judged_on_training:
            note = "there is no validation part: the drop is judged on the training part, which flatters"
            warnings.warn(note, TopiaristWarning, stacklevel=3)
