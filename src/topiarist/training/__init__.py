"""Training by good practice: one loop, every practice by name.

The names are loaded when they are first used: importing the settings does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topiarist.training.config import Augmentation, Distillation, Phase, TrainConfig
    from topiarist.training.fitting import train, train_many
    from topiarist.training.history import Epoch, History
    from topiarist.training.inference import MonteCarlo, monte_carlo
    from topiarist.training.pruning import Pruning
    from topiarist.training.schedules import Schedule
    from topiarist.training.tables.baseline import TabularBaseline, train_tabular
    from topiarist.training.tables.config import TabularConfig
    from topiarist.training.transfer import reuse, train_phases

_NAMES_OF = {
    "config": ("Augmentation", "Distillation", "Phase", "TrainConfig"),
    "fitting": ("train", "train_many"),
    "history": ("Epoch", "History"),
    "inference": ("MonteCarlo", "monte_carlo"),
    "pruning": ("Pruning",),
    "schedules": ("Schedule",),
    "tables.baseline": ("TabularBaseline", "train_tabular"),
    "tables.config": ("TabularConfig",),
    "transfer": ("reuse", "train_phases"),
}

__all__ = [
    "Augmentation",
    "Distillation",
    "Epoch",
    "History",
    "MonteCarlo",
    "Phase",
    "Pruning",
    "Schedule",
    "TabularBaseline",
    "TabularConfig",
    "TrainConfig",
    "monte_carlo",
    "reuse",
    "train",
    "train_many",
    "train_phases",
    "train_tabular",
]


def __getattr__(name: str) -> Any:
    for module, names in _NAMES_OF.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute {name!r}")
