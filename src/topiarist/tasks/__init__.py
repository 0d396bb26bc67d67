"""What is predicted: classes, numbers or labels, each with its loss, its head, its metrics and a baseline to beat.

Everything above training asks the task; nothing branches on its name. Names are loaded when they are first used:
importing tasks does not import torch, nor the names of losses numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topiarist.tasks.classification import Classification
    from topiarist.tasks.losses import KINDS, Loss, TaskKind
    from topiarist.tasks.multilabel import MultiLabel
    from topiarist.tasks.records import task_from_record
    from topiarist.tasks.regression import Regression
    from topiarist.tasks.task import OwnLoss, Task

__all__ = [
    "KINDS",
    "Classification",
    "Loss",
    "MultiLabel",
    "OwnLoss",
    "Regression",
    "Task",
    "TaskKind",
    "task_from_record",
]

_HOMES = {
    "classification": ("Classification",),
    "losses": ("KINDS", "Loss", "TaskKind"),
    "multilabel": ("MultiLabel",),
    "records": ("task_from_record",),
    "regression": ("Regression",),
    "task": ("OwnLoss", "Task"),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute {name!r}")
