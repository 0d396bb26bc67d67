"""What happened in a training, epoch by epoch."""

from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """One epoch, numbered from 1; the validation figures are None where there is no validation part.

    `train_accuracy` is that on the training part after the epoch, where the training watches it.
    `sparsity` is the fraction of weights, or of units, that were zero in it; None where nothing is pruned.
    """

    number: int
    learning_rate: float
    train_loss: float
    train_accuracy: float | None = None
    validation_loss: float | None = None
    validation_accuracy: float | None = None
    monitored: float | None = None
    sparsity: float | None = None


@dataclass(frozen=True, kw_only=True)
class History:
    """All epochs, the one whose weights the network has now, and why training ended."""

    epochs: tuple[Epoch, ...]
    kept_epoch: int
    stopped: str
    diverged_epoch: int | None = None

    def __len__(self) -> int:
        return len(self.epochs)

    def to_json(self) -> dict[str, Any]:
        """Give plain lists and numbers."""
        return {**asdict(self), "epochs": [asdict(epoch) for epoch in self.epochs]}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Self:
        """Read what `to_json` gave."""
        return cls(**{**record, "epochs": tuple(Epoch(**epoch) for epoch in record["epochs"])})
