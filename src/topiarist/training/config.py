"""How to train: every practice by name. Importing these settings does not import torch."""

import math
from typing import Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, field_validator, model_serializer, model_validator

from topiarist.errors import SettingsError
from topiarist.files import JsonObject
from topiarist.settings import Settings
from topiarist.tasks.losses import KINDS, Loss
from topiarist.training.pruning import Pruning
from topiarist.training.schedules import Schedule

OptimizerName = Literal["sgd", "adam", "adamw", "rmsprop"]


class Distillation(Settings):
    """How a network learns what a larger one answers, besides the labels (Hinton, Vinyals and Dean, 2015)."""

    weight: float = Field(default=0.9, gt=0, le=1, description="Weight of the teacher's answers beside the labels.")
    temperature: float = Field(default=4.0, gt=0, description="Temperature that softens the answers of both networks.")


class Augmentation(Settings):
    """How samples are varied anew in every step: mixup (Zhang et al., 2018), masks (SpecAugment, Park et al., 2019).

    Masks may overlap; each has a width drawn from 0 to the largest.
    """

    mixup: float = Field(default=0.0, ge=0, description="Mix pairs of samples: α of the Beta distribution, 0 for none.")
    time_masks: int = Field(default=0, ge=0, description="Stretches of time to hide in each sample (SpecAugment).")
    time_width: float = Field(default=0.1, gt=0, le=1, description="Largest width of a time mask, as a fraction.")
    band_masks: int = Field(default=0, ge=0, description="Stretches of frequency to hide in each sample.")
    band_width: float = Field(default=0.15, gt=0, le=1, description="Largest width of a band mask, as a fraction.")


class Phase(Settings):
    """Some epochs of `train_phases` in which only the top layers are trained."""

    epochs: int = Field(ge=1, description="Epochs of the phase.")
    train_top: int | None = Field(default=None, ge=1, description="Last layers to train: 1 is the head; default all.")
    learning_rate: float | None = Field(default=None, gt=0, description="Learning rate of the phase.")


class TrainConfig(Settings):
    """A complete description of one training: with the same data, network and seed it gives the same weights.

    `after_epoch` and `until_epoch` run a part of the training, with the order of samples, noise and learning rates of
    the whole (a schedule of pruning is fitted to the part): to get the network of an early epoch, or to continue there.

    Examples
    --------
    >>> config = TrainConfig(epochs=60, optimizer="adamw", schedule="cosine", early_stopping=8)
    >>> config.schedule.name, config.batch_size
    ('cosine', 32)
    """

    epochs: int = Field(default=100, ge=0, description="Passes over the training part.")
    steps: int | None = Field(default=None, ge=1, description="Exact number of optimizer steps, instead of epochs.")
    batch_size: int = Field(default=32, ge=1, description="Samples per step.")
    learning_rate: float = Field(
        default=0.001, gt=0, le=1e30, description="Initial learning rate; the highest with one-cycle."
    )
    optimizer: OptimizerName = Field(default="adam", description="Optimizer that turns gradients into steps.")
    momentum: float = Field(default=0.0, ge=0, lt=1, description="Momentum of sgd and rmsprop.")
    nesterov: bool = Field(default=False, description="Nesterov momentum; needs sgd and a momentum.")
    weight_decay: float = Field(default=0.0, ge=0, description="L2 penalty; with adamw, decoupled weight decay.")
    weight_decay_on: Literal["kernels", "all"] = Field(
        default="kernels", description="Apply weight decay to kernels only, or to all parameters."
    )
    schedule: Schedule = Field(default=Schedule(), description="How the learning rate changes; a name will do.")
    clip_value: float | None = Field(default=None, gt=0, description="Clip each gradient entry to ± this value.")
    clip_norm: float | None = Field(default=None, gt=0, description="Scale gradients down to at most this norm.")
    clip_norm_over: Literal["all", "tensor"] = Field(
        default="all", description="Norm of all gradients together (as in PyTorch), or of each tensor (as in Keras)."
    )
    early_stopping: int | None = Field(
        default=None,
        ge=1,
        description="Stop after this many epochs without improvement on the validation part; keep the best weights.",
    )
    loss: str | None = Field(
        default=None,
        description="Loss: cross-entropy or focal; for numbers squared, absolute, huber or quantile, as quantile:0.9.",
    )
    monitor: str = Field(
        default="loss",
        description="Metric for early stopping and performance scheduling: loss, or one of the task, such as accuracy.",
    )
    class_weights: Literal["balanced"] | tuple[float, ...] | None = Field(
        default=None, description="Weights of the classes in the loss: balanced (inverse frequency), or one per class."
    )
    distillation: Distillation | None = Field(default=None, description="How to learn from the teacher, if given.")
    pruning: Pruning | None = Field(default=None, description="Which weights become zero while training, and when.")
    augmentation: Augmentation | None = Field(default=None, description="How samples are varied in every step.")
    precise_norms: bool = Field(
        default=False, description="Replace the moving averages of batch norm by the whole training part's at the end."
    )
    watch_training: bool = Field(
        default=False, description="Record the accuracy, or the task's own metric, on the training part every epoch."
    )
    after_epoch: int = Field(default=0, ge=0, description="Start after this epoch, as if those before had been run.")
    until_epoch: int | None = Field(default=None, ge=0, description="Stop after this epoch; schedules stay the same.")
    seed: int = Field(default=0, ge=0, description="Seed of the order of samples and of all noise.")
    device: str | None = Field(
        default=None,
        description="Device to compute on, as cpu, cuda, cuda:1, mps or auto; default where the network is.",
    )
    threads: int | None = Field(
        default=None, ge=1, description="Threads for torch; 1 below a million parameters, where more are slower."
    )

    def total_steps(self, steps_per_epoch: int) -> int:
        """Return the number of optimizer steps of the whole training, which schedules are fitted to."""
        return self.epochs * steps_per_epoch if self.steps is None else self.steps

    def total_epochs(self, steps_per_epoch: int) -> int:
        """Return the number of epochs of the whole training; the last may be cut short by `steps`."""
        return self.epochs if self.steps is None else math.ceil(self.steps / steps_per_epoch)

    def last_epoch(self, steps_per_epoch: int) -> int:
        """Return the number of the last epoch to run."""
        return self.total_epochs(steps_per_epoch) if self.until_epoch is None else self.until_epoch

    @property
    def repeatable(self) -> JsonObject:
        """What a network remembers of its training, to repeat it on any machine: all but defaults and the device."""
        return self.model_dump(mode="json", exclude_defaults=True, exclude={"device"})

    @property
    def prunings(self) -> dict[int, float]:
        """The sparsity after each pruning, by the number of epochs done before it."""
        return {} if self.pruning is None else self.pruning.prunings(self.epochs, after=self.after_epoch)

    @property
    def watcher(self) -> str | None:
        """What watches the validation part: early stopping, performance scheduling, or nothing."""
        if self.early_stopping is not None:
            return "early stopping"
        return "performance scheduling" if self.schedule.name == "performance" else None

    @model_serializer(mode="wrap")
    def _only_the_length_that_counts(self, handler: SerializerFunctionWrapHandler) -> JsonObject:
        # A record of a training in steps must not name epochs that never counted, and must be readable again.
        record: JsonObject = handler(self)
        if self.steps is not None:
            record.pop("epochs", None)
        return record

    @field_validator("loss")
    @classmethod
    def _known_loss(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            return str(Loss.parse(value))
        except SettingsError as error:
            raise ValueError(str(error)) from error

    @field_validator("monitor")
    @classmethod
    def _known_metric(cls, value: str) -> str:
        from topiarist.statistics.metrics import metrics_of  # noqa: PLC0415  # settings are known without numpy

        known = dict.fromkeys(["loss", *(metric.name for kind in KINDS for metric in metrics_of(kind))])
        if value not in known:
            raise ValueError(f"must be one of {', '.join(known)}")
        return value

    @field_validator("schedule", mode="before")
    @classmethod
    def _schedule_by_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.nesterov and not (self.optimizer == "sgd" and self.momentum):
            raise ValueError("nesterov needs the optimizer sgd and a momentum above 0")
        if self.momentum and self.optimizer in ("adam", "adamw"):
            raise ValueError(f"momentum belongs to sgd and rmsprop, not to {self.optimizer}")
        weights = self.class_weights
        if isinstance(weights, tuple) and (min(weights, default=0) < 0 or not any(weights)):
            raise ValueError("class weights must be at least 0, and one of them above 0")
        if self.steps is None:
            self._check_epochs()
        else:
            self._check_steps()
        return self

    def _check_epochs(self) -> None:
        if not self.after_epoch <= (self.epochs if self.until_epoch is None else self.until_epoch) <= self.epochs:
            found = f"{self.after_epoch}, {self.until_epoch} and {self.epochs}"
            raise ValueError(f"until_epoch must lie between after_epoch and epochs; found {found}")
        prunings = self.prunings
        if prunings and max(prunings) >= self.epochs:
            raise ValueError(
                f"the last pruning is after epoch {max(prunings)}, and the training has {self.epochs} epochs"
            )
        if prunings and self.after_epoch > min(prunings):
            raise ValueError("pruning begins before the first epoch that is run")

    def _check_steps(self) -> None:
        if "epochs" in self.model_fields_set:
            raise ValueError(
                f"epochs and steps both say how long to train: give one; found {self.epochs}, {self.steps}"
            )
        if self.pruning is not None:
            raise ValueError("pruning is scheduled in epochs: give epochs instead of steps")
        if self.until_epoch is not None and self.until_epoch < self.after_epoch:
            raise ValueError(f"until_epoch must be at least after_epoch, {self.after_epoch}; found {self.until_epoch}")
