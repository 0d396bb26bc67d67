"""One member's way through a training: its rates, its best epoch, when and why it stops."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from topiarist.training.config import TrainConfig
from topiarist.training.history import Epoch, History


@dataclass
class Run:
    """The state of one training between epochs; everything but `config` goes into a checkpoint."""

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

    def rates(self) -> list[float]:
        """Return the learning rate of each step of the coming epoch."""
        total, count = self.config.total_steps(self.steps_per_epoch), self.coming_steps
        initial, schedule = self.config.learning_rate, self.config.schedule
        if schedule.name in ("constant", "performance") and not schedule.warmup:
            rate = schedule.rate(self.steps, initial=initial, total_steps=total, reductions=self.reductions)
            return [rate] * count
        coming = range(self.steps, self.steps + count)
        return [schedule.rate(t, initial=initial, total_steps=total, reductions=self.reductions) for t in coming]

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

    def diverge(self, number: int, loss: float) -> None:
        """Stop because the loss or the weights are no longer numbers."""
        said = f"the loss became {loss}" if not math.isfinite(loss) else "the weights became infinite"
        self.stopped = f"{said} in epoch {number}"
        self.diverged_epoch = number

    def take_steps(self, count: int) -> None:
        """Count steps that were made; a training in steps ends with the last of them."""
        self.steps += count
        if self.config.steps is not None and self.steps >= self.config.steps:
            self.complete = True

    def record(self, epoch: Epoch) -> bool:
        """Take an epoch in; say whether it is the best so far."""
        self.epochs.append(epoch)
        if epoch.monitored is None or epoch.number <= self._last_pruning:
            return False
        improved = epoch.monitored > self.best
        if improved:
            self.best, self.best_epoch, self.stalled = epoch.monitored, epoch.number, 0
        else:
            self.stalled += 1
            self._react(epoch.number)
        return improved

    @property
    def _last_pruning(self) -> int:
        """Up to this epoch the network is not yet as sparse as it will be, and no epoch is the best."""
        return max(self.config.prunings, default=0)

    def _react(self, number: int) -> None:
        schedule, patience = self.config.schedule, self.config.early_stopping
        if schedule.name == "performance" and self.stalled % schedule.patience == 0:
            self.reductions += 1
        if patience is not None and self.stalled >= patience:
            self.stopped = f"no improvement in {patience} epochs: stopped after epoch {number}"

    @property
    def ended(self) -> bool:
        """Whether it leaves before the last epoch: it stopped, or has made all its steps."""
        return self.complete or self.stopped is not None

    @property
    def restores_best(self) -> bool:
        """Whether the network ends with the weights of its best epoch."""
        return self.config.early_stopping is not None and self.best_epoch > 0

    def history(self) -> History:
        """Say what happened."""
        last = self.epochs[-1].number if self.epochs else self.config.after_epoch
        done = f"{self.steps} steps" if self.complete else f"{len(self.epochs)} epochs"
        return History(
            epochs=tuple(self.epochs),
            kept_epoch=self.best_epoch if self.restores_best else last,
            stopped=self.stopped or f"all {done} done",
            diverged_epoch=self.diverged_epoch,
        )

    def to_json(self) -> dict[str, Any]:
        """Give plain lists and numbers."""
        record = {name: value for name, value in vars(self).items() if name not in ("config", "epochs")}
        best = None if self.best == -math.inf else self.best
        return {**record, "best": best, "epochs": [asdict(epoch) for epoch in self.epochs]}

    @classmethod
    def from_json(cls, record: dict[str, Any], config: TrainConfig) -> Self:
        """Read what `to_json` gave."""
        best = -math.inf if record["best"] is None else record["best"]
        epochs = [Epoch(**epoch) for epoch in record["epochs"]]
        return cls(config, **{**record, "best": best, "epochs": epochs})
