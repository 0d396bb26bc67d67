"""What happened in a training, epoch by epoch, and where one stands between two epochs."""

import math
from dataclasses import asdict, dataclass, field
from typing import Self

from pydantic import TypeAdapter

from topiarist.files import JsonObject
from topiarist.training.config import TrainConfig


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """One epoch, numbered from 1; the validation figures are None where there is no validation part.

    `train_accuracy` is that on the training part after the epoch, with `watch_training`. Of a network that is no
    classifier, `validation_metric` and `train_metric` are the task's primary metric in their place. `monitored` is what
    early stopping watches; larger is better. `sparsity` is the fraction of weights, or of units, that is pruned.
    """

    number: int
    learning_rate: float
    train_loss: float
    train_accuracy: float | None = None
    validation_loss: float | None = None
    validation_accuracy: float | None = None
    monitored: float | None = None
    sparsity: float | None = None
    train_metric: float | None = None
    validation_metric: float | None = None

    @property
    def validation_score(self) -> float | None:
        """The task's primary metric on the validation part, which is the accuracy of a classifier."""
        return self.validation_metric if self.validation_accuracy is None else self.validation_accuracy

    def to_json(self) -> JsonObject:
        """Return plain numbers; metrics that a classifier does not have are left out."""
        own = ("train_metric", "validation_metric")
        return {name: value for name, value in asdict(self).items() if name not in own or value is not None}


@dataclass(frozen=True, kw_only=True)
class History:
    """All epochs, the one whose weights the network has now, and why training stopped."""

    epochs: tuple[Epoch, ...]
    kept_epoch: int
    stopped: str
    diverged_epoch: int | None = None

    def __len__(self) -> int:
        return len(self.epochs)

    def to_json(self) -> JsonObject:
        """Return plain lists and numbers."""
        return {**asdict(self), "epochs": [epoch.to_json() for epoch in self.epochs]}

    @classmethod
    def from_json(cls, record: JsonObject) -> Self:
        """Read what `to_json` returned."""
        return TypeAdapter(cls).validate_python(dict(record))


@dataclass
class TrainingRun:
    """One network's training between two epochs; everything but `config` goes into a checkpoint."""

    config: TrainConfig
    steps_per_epoch: int
    steps: int = 0
    epochs: list[Epoch] = field(default_factory=list)
    best: float = -math.inf
    best_epoch: int = 0
    stalled: int = 0
    reductions: int = 0
    stopped: str | None = None
    complete: bool = False
    diverged_epoch: int | None = None

    @property
    def coming_steps(self) -> int:
        """The number of steps of the coming epoch: a training in steps cuts its last epoch short."""
        if self.config.steps is None:
            return self.steps_per_epoch
        return min(self.steps_per_epoch, self.config.steps - self.steps)

    @property
    def last_epoch(self) -> int:
        """The number of the last epoch to run."""
        return self.config.last_epoch(self.steps_per_epoch)

    @property
    def ended(self) -> bool:
        """Whether it leaves before the last epoch: it stopped, or has made all its steps."""
        return self.complete or self.stopped is not None

    @property
    def restores_best(self) -> bool:
        """Whether the network ends with the weights of its best epoch."""
        return self.config.early_stopping is not None and self.best_epoch > 0

    def rates(self) -> list[float]:
        """Return the learning rate of each step of the coming epoch."""
        total, count = self.config.total_steps(self.steps_per_epoch), self.coming_steps
        initial, schedule = self.config.learning_rate, self.config.schedule
        if schedule.name in ("constant", "performance") and not schedule.warmup:
            rate = schedule.rate(self.steps, initial=initial, total_steps=total, reductions=self.reductions)
            return [rate] * count
        coming = range(self.steps, self.steps + count)
        return [schedule.rate(t, initial=initial, total_steps=total, reductions=self.reductions) for t in coming]

    def take_steps(self, count: int) -> None:
        """Count steps that were made; a training in steps ends with the last of them."""
        self.steps += count
        if self.config.steps is not None and self.steps >= self.config.steps:
            self.complete = True

    def diverge(self, number: int, loss: float) -> None:
        """Stop because the loss or the weights are no longer numbers."""
        found = f"the loss became {loss}" if not math.isfinite(loss) else "the weights became infinite"
        self.stopped = f"{found} in epoch {number}"
        self.diverged_epoch = number

    def record(self, epoch: Epoch) -> bool:
        """Add an epoch; return whether it is the best so far, which none is before the last pruning."""
        self.epochs.append(epoch)
        if epoch.monitored is None or epoch.number <= max(self.config.prunings, default=0):
            return False
        if epoch.monitored > self.best:
            self.best, self.best_epoch, self.stalled = epoch.monitored, epoch.number, 0
            return True
        self.stalled += 1
        schedule, patience = self.config.schedule, self.config.early_stopping
        if schedule.name == "performance" and self.stalled % schedule.patience == 0:
            self.reductions += 1
        if patience is not None and self.stalled >= patience:
            self.stopped = f"no improvement in {patience} epochs: stopped after epoch {epoch.number}"
        return False

    def history(self) -> History:
        """Return what happened."""
        last = self.epochs[-1].number if self.epochs else self.config.after_epoch
        done = f"{self.steps} steps" if self.complete else f"{len(self.epochs)} epochs"
        return History(
            epochs=tuple(self.epochs),
            kept_epoch=self.best_epoch if self.restores_best else last,
            stopped=self.stopped or f"all {done} done",
            diverged_epoch=self.diverged_epoch,
        )

    def to_json(self) -> JsonObject:
        """Return plain lists and numbers."""
        record = {name: value for name, value in vars(self).items() if name != "config"}
        best = None if self.best == -math.inf else self.best
        return {**record, "best": best, "epochs": [epoch.to_json() for epoch in self.epochs]}

    def resumed(self, record: JsonObject, epoch: int) -> Self:
        """Return the run that `to_json` described after an epoch; ValueError where it cannot be this one."""
        best = -math.inf if record["best"] is None else record["best"]
        found = TypeAdapter(type(self)).validate_python({**record, "best": best, "config": self.config})
        count, begun = len(found.epochs), self.config.after_epoch
        coming = range(begun + 1, begun + 1 + count)
        possible = (
            found.steps_per_epoch == self.steps_per_epoch
            and [each.number for each in found.epochs] == list(coming)
            and (found.ended or begun + count == epoch)
            and 0 <= found.steps - self.steps <= (count + 1) * self.steps_per_epoch
            and 0 <= found.stalled <= count
            and 0 <= found.reductions <= count
            and (not found.best_epoch or found.best_epoch in coming)
        )
        if not possible:
            raise ValueError(f"its run of {count} epochs is not that of this training after epoch {epoch}")
        return found
