"""What is predicted: classes, numbers or labels, each with its loss, its head, its metrics and a baseline to beat.

Everything above training asks the task; nothing branches on its name. Importing tasks does not import torch.
"""

from topiarist.tasks.classification import Classification
from topiarist.tasks.losses import Loss
from topiarist.tasks.multilabel import MultiLabel
from topiarist.tasks.records import task_from_record
from topiarist.tasks.regression import Regression
from topiarist.tasks.task import KINDS, Metric, OwnLoss, Task, TaskKind

__all__ = [
    "KINDS",
    "Classification",
    "Loss",
    "Metric",
    "MultiLabel",
    "OwnLoss",
    "Regression",
    "Task",
    "TaskKind",
    "task_from_record",
]
