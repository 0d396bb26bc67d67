"""Training by good practice: one loop, every practice by name."""

from topiarist.training.augmentation import Augmentation
from topiarist.training.config import TrainConfig
from topiarist.training.distillation import Distillation
from topiarist.training.history import Epoch, History
from topiarist.training.monte_carlo import MonteCarlo, monte_carlo
from topiarist.training.pruning import Pruning
from topiarist.training.schedules import Schedule
from topiarist.training.train import train, train_many
from topiarist.training.transfer import Phase, reuse, train_phases

__all__ = [
    "Augmentation",
    "Distillation",
    "Epoch",
    "History",
    "MonteCarlo",
    "Phase",
    "Pruning",
    "Schedule",
    "TrainConfig",
    "monte_carlo",
    "reuse",
    "train",
    "train_many",
    "train_phases",
]
