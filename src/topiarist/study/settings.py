"""The settings of a cell: data, network, training, method and prediction, each checked where it is made."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import Field, PositiveInt, field_validator, model_validator

from topiarist.data import Scaling, SplitRule
from topiarist.data.block_mixing import BlockMixing
from topiarist.data.columns.choices import ColumnChoices
from topiarist.models.settings import ModelSettings
from topiarist.settings import Settings
from topiarist.study.treatment import Treatment, treatment
from topiarist.tasks.losses import TaskKind
from topiarist.training import Phase, TrainConfig

RULE = SplitRule()
Table = Mapping[str, Any]
EMPTY: Table = {}


class DataSettings(Settings):
    """Which data, and how they are split: as in `load_data`.

    `target` may be several columns, with commas; `weight` is the column that says how much samples count, `metric` what
    networks are judged by.
    `drop`, `category`, `number` and `date` name columns of a table that are left out, or read as such whatever their
    cells suggest. `projection` lists blocks of columns, each with the number of its principal components that the
    network reads.
    `classes` leaves the samples of all other classes out; `samples` limits the training part, and the validation part
    in proportion. Without a `validation_fraction`, folds have a validation part only where training watches one.
    `mixing` adds mixtures of training samples to the training part.
    """

    location: str = Field(min_length=1)
    target: str | None = None
    group: str | None = None
    weight: str | None = None
    task: TaskKind | None = None
    metric: str | None = None
    drop: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    number: tuple[str, ...] = ()
    date: tuple[str, ...] = ()
    scaling: Scaling | None = None
    input_shape: tuple[int, ...] | None = None
    projection: tuple[tuple[PositiveInt, PositiveInt], ...] | None = Field(default=None, min_length=1)
    test_fraction: float = Field(default=RULE.test_fraction, ge=0, lt=1)
    validation_fraction: float | None = Field(default=None, ge=0, lt=1)
    classes: tuple[str, ...] | None = None
    samples: int | None = Field(default=None, ge=2)
    mixing: BlockMixing | None = None
    seed: int = Field(default=0, ge=0)

    @property
    def columns(self) -> ColumnChoices:
        """What is decided about columns."""
        return ColumnChoices(drop=self.drop, category=self.category, number=self.number, date=self.date)


class TrainingSettings(TrainConfig):
    """How to train: every field of `TrainConfig`, the seed apart; `phases`, where given, as in `train_phases`."""

    seed: Literal[0] = 0
    phases: tuple[Phase, ...] = ()

    @field_validator("seed", mode="before")
    @classmethod
    def _seeds_belong_to_the_study(cls, value: Any) -> Any:
        raise ValueError("the seed of a training follows from the cell: use the study's seeds")

    @model_validator(mode="after")
    def _phases_do_not_prune(self) -> "TrainingSettings":
        if self.phases and self.pruning is not None:
            raise ValueError("a training in phases does not prune")
        if self.phases and self.steps is not None:
            raise ValueError("each phase has epochs of its own: leave steps out of a training in phases")
        return self

    @property
    def watches(self) -> bool:
        """Whether training looks at a validation part."""
        return self.early_stopping is not None or self.schedule.name == "performance"


class BaseSettings(Settings):
    """A network that is trained first, on other classes of the same data, and whose lower layers are then reused."""

    classes: tuple[str, ...]
    epochs: int = Field(ge=1)
    samples: int | None = Field(default=None, ge=2)
    drop: int = Field(default=0, ge=0)
    add: tuple[int, ...] = ()


class PredictionSettings(Settings):
    """How test samples are predicted: by one pass, or by the mean of `monte_carlo` passes with dropout switched on."""

    monte_carlo: int | None = Field(default=None, ge=2)


class CellSettings(Settings):
    """All that decides a result but fold and seed."""

    data: DataSettings
    model: ModelSettings = ModelSettings()
    training: TrainingSettings = TrainingSettings()
    base: BaseSettings | None = None
    method: Treatment = Treatment()
    prediction: PredictionSettings = PredictionSettings()


SECTIONS: dict[str, Callable[..., Settings]] = {
    "data": DataSettings,
    "model": ModelSettings,
    "training": TrainingSettings,
    "base": BaseSettings,
    "method": treatment,
    "prediction": PredictionSettings,
}
