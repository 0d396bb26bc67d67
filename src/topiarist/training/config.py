"""How to train: every practice by name."""

import math
from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, field_validator, model_serializer, model_validator

from topiarist.settings import Settings
from topiarist.training.augmentation import Augmentation
from topiarist.training.distillation import Distillation
from topiarist.training.metrics import Metric
from topiarist.training.pruning import Pruning
from topiarist.training.schedules import Schedule

OptimizerName = Literal["sgd", "adam", "adamw", "rmsprop"]


class TrainConfig(Settings):
    """A complete description of one training: with the same data, network and seed it gives the same weights.

    The length is given in `epochs`, or as an exact number of optimizer `steps`: the last epoch is then cut short.
    `schedule` may be given by name. `weight_decay` touches kernels only, unless `weight_decay_on="all"`.
    `clip_norm_over` is "all" gradients together (PyTorch's way) or each "tensor" by itself (Keras's).
    `early_stopping` counts the epochs without improvement of `monitor` on the validation part; the best weights are
    restored. `class_weights` are "balanced" (inverse frequency) or one number a class. `distillation` says how to learn
    from the teacher that `train` is given, `pruning` which weights become zero on the way: no epoch before the last
    pruning counts as the best. `augmentation` says how samples are varied in every step. With `precise_norms`, batch
    norm ends with the statistics of the whole training part in the place of moving averages. With `watch_training`, the
    history has the accuracy on the training part after every epoch. `after_epoch` and
    `until_epoch` run a stretch of the training, with order, noise and learning rates as in the whole (a schedule of
    pruning is fitted to the stretch): to get the network of an early epoch, or to go on as from there. Unless set,
    `threads` is 1 for networks below a million parameters, where more are slower.
    """

    epochs: int = Field(default=100, ge=0)
    steps: int | None = Field(default=None, ge=1)
    batch_size: int = Field(default=32, ge=1)
    learning_rate: float = Field(default=0.001, gt=0, le=1e30)
    optimizer: OptimizerName = "adam"
    momentum: float = Field(default=0.0, ge=0, lt=1)
    nesterov: bool = False
    weight_decay: float = Field(default=0.0, ge=0)
    weight_decay_on: Literal["kernels", "all"] = "kernels"
    schedule: Schedule = Schedule()
    clip_value: float | None = Field(default=None, gt=0)
    clip_norm: float | None = Field(default=None, gt=0)
    clip_norm_over: Literal["all", "tensor"] = "all"
    early_stopping: int | None = Field(default=None, ge=1)
    monitor: Metric = "loss"
    class_weights: Literal["balanced"] | tuple[float, ...] | None = None
    distillation: Distillation | None = None
    pruning: Pruning | None = None
    augmentation: Augmentation | None = None
    precise_norms: bool = False
    watch_training: bool = False
    after_epoch: int = Field(default=0, ge=0)
    until_epoch: int | None = Field(default=None, ge=0)
    seed: int = Field(default=0, ge=0)
    device: str = "cpu"
    threads: int | None = Field(default=None, ge=1)

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
    def prunings(self) -> dict[int, float]:
        """Give the sparsity after each pruning, by the number of epochs done before it."""
        return {} if self.pruning is None else self.pruning.prunings(self.epochs, after=self.after_epoch)

    @model_serializer(mode="wrap")
    def _only_the_length_that_counts(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # A record of a training in steps must not name epochs that never counted, and must be readable again.
        record: dict[str, Any] = handler(self)
        if self.steps is not None:
            record.pop("epochs", None)
        return record

    @field_validator("schedule", mode="before")
    @classmethod
    def _schedule_by_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _what_goes_together(self) -> "TrainConfig":
        if self.nesterov and not (self.optimizer == "sgd" and self.momentum):
            raise ValueError("nesterov needs the optimizer sgd and a momentum above 0")
        if self.momentum and self.optimizer in ("adam", "adamw"):
            raise ValueError(f"momentum belongs to sgd and rmsprop, not to {self.optimizer}")
        if self.steps is not None:
            self._check_steps()
        elif not self.after_epoch <= (self.epochs if self.until_epoch is None else self.until_epoch) <= self.epochs:
            found = f"{self.after_epoch}, {self.until_epoch} and {self.epochs}"
            raise ValueError(f"until_epoch must lie between after_epoch and epochs; found {found}")
        prunings = {} if self.steps is not None else self.prunings
        if prunings and max(prunings) >= self.epochs:
            raise ValueError(
                f"the last pruning is after epoch {max(prunings)}, and the training has {self.epochs} epochs"
            )
        if prunings and self.after_epoch > min(prunings):
            raise ValueError("pruning begins before the first epoch that is run")
        weights = self.class_weights
        if isinstance(weights, tuple) and (min(weights, default=0) < 0 or not any(weights)):
            raise ValueError("class weights must be at least 0, and one of them above 0")
        return self

    def _check_steps(self) -> None:
        if "epochs" in self.model_fields_set:
            raise ValueError(
                f"epochs and steps both say how long to train: give one; found {self.epochs}, {self.steps}"
            )
        if self.pruning is not None:
            raise ValueError("pruning is scheduled in epochs: give epochs in the place of steps")
        if self.until_epoch is not None and self.until_epoch < self.after_epoch:
            raise ValueError(
                f"until_epoch must be {self.after_epoch} or more, as after_epoch; found {self.until_epoch}"
            )
