"""What follows each cut, in the words of the command line."""

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from topiarist.cli.derived import derive
from topiarist.methods import FineTuning, Rewinding
from topiarist.settings import Settings
from topiarist.training import Distillation


class AfterCut(Settings):
    """Training of the network that was cut: fine-tuning, or a part of its first training again; settling before it."""

    settling: int | None = Field(
        default=None,
        ge=0,
        description="Where a cut is refitted, move the network towards the answers of the uncut one in this many steps,"
        " without labels; 0 for none. By default as many as suit the size of the work.",
    )
    finetune: int | None = Field(default=None, ge=1, description="Fine-tune for this many epochs.")
    finetune_lr: float | None = Field(default=None, gt=0, description="Highest learning rate of the fine-tuning.")
    distil: bool | None = Field(
        default=None,
        description="Also learn from the answers of the uncut network; by default with --finetune, not with --rewind.",
    )
    rewind: int | None = Field(
        default=None, ge=0, description="Repeat the first training from this epoch on, with its learning rates."
    )
    early: Path | None = Field(
        default=None,
        description="With --rewind: start from the weights in this file, those of that epoch (train --until-epoch).",
    )

    @model_validator(mode="after")
    def _what_goes_together(self) -> Self:
        if self.rewind is not None and self.finetune is not None:
            raise ValueError("--finetune and --rewind both train the cut network: give one")
        if self.early is not None and self.rewind is None:
            raise ValueError("--early belongs to --rewind: give the epoch to repeat from")
        if self.finetune_lr is not None and self.finetune is None:
            raise ValueError("--finetune-lr belongs to --finetune: give the number of epochs")
        if self.distil is not None and self.finetune is None and self.rewind is None:
            raise ValueError("--distil and --no-distil belong to --finetune and --rewind: give one of these")
        return self

    @property
    def retraining(self) -> FineTuning | Rewinding | None:
        """What `resize` takes."""
        if self.finetune is not None:
            rate = {} if self.finetune_lr is None else {"learning_rate": self.finetune_lr}
            teacher = None if self.distil is False else Distillation()
            return FineTuning(epochs=self.finetune, **rate, distillation=teacher)
        if self.rewind is not None:
            teacher = Distillation() if self.distil else None
            return Rewinding(epoch=self.rewind, weights=self.early is not None, distillation=teacher)
        return None


AFTER_CUT = derive(
    AfterCut,
    "Training after each cut, or while pruning",
    spelled={"distil": "--distil/--no-distil"},
    read={"settling": ("STEPS", None), "finetune": ("EPOCHS", None), "rewind": ("EPOCH", None)},
    defaults={"finetune_lr": f"{FineTuning(epochs=1).learning_rate:g}"},
)
