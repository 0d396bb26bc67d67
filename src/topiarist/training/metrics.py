"""What a classifier is judged by, from logits (n_samples, n_classes) and class numbers (n_samples,)."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

Metric = Literal["loss", "accuracy", "macro_accuracy"]


def accuracy(logits: Tensor, y: Tensor) -> float:
    """Fraction of samples that are right (micro accuracy)."""
    return (logits.argmax(dim=1) == y).double().mean().item()


def macro_accuracy(logits: Tensor, y: Tensor) -> float:
    """Mean over the classes present of the fraction of their samples that are right."""
    members = torch.bincount(y, minlength=logits.shape[1]).double()
    right = torch.bincount(y[logits.argmax(dim=1) == y], minlength=logits.shape[1]).double()
    present = members > 0
    return (right[present] / members[present]).mean().item()


def log_loss(logits: Tensor, y: Tensor) -> float:
    """Mean of −ln p(right class)."""
    return functional.cross_entropy(logits.double(), y).item()


METRICS: dict[Metric, Callable[[Tensor, Tensor], float]] = {
    "loss": log_loss,
    "accuracy": accuracy,
    "macro_accuracy": macro_accuracy,
}
