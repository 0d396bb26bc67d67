"""The confirmation: the baseline and the chosen network on the test part, which no decision saw."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from topiarist.rightsizing.record import ConfirmationRecord, ConfusionRecord, QualityRecord, finite
from topiarist.statistics import compare_answers
from topiarist.training.metrics import accuracy, log_loss, macro_accuracy

Tested = Mapping[Literal["before", "after"], tuple[Tensor, Tensor]]  # logits and class numbers
FEWEST = 2  # samples to compare networks by


def confirm(tested: Tested, *, margin: float, alpha: float) -> ConfirmationRecord | None:
    """Return how the two compare; None where there are too few samples."""
    if len(tested["before"][1]) < FEWEST:
        return None
    right = {side: (logits.argmax(dim=1) == labels).double() for side, (logits, labels) in tested.items()}
    found = compare_answers(right["after"].numpy(), right["before"].numpy(), margin=margin, alpha=alpha)
    assert found.won is not None and found.lost is not None
    return ConfirmationRecord(
        before=_quality(*tested["before"]),
        after=_quality(*tested["after"]),
        difference=found.difference,
        low=found.low,
        high=found.high,
        p=found.p,
        proven=found.proven,
        won=found.won,
        lost=found.lost,
        samples=found.samples,
        power=found.power,
        samples_needed=found.samples_needed,
    )


def _quality(logits: Tensor, labels: Tensor) -> QualityRecord:
    return QualityRecord(
        accuracy=accuracy(logits, labels),
        macro_accuracy=macro_accuracy(logits, labels),
        log_loss=finite(log_loss(logits, labels)),
    )


def confusions(tested: Tested, classes: int) -> ConfusionRecord:
    """Count the samples of each class that each network takes for each class."""
    counts = {
        side: torch.bincount(labels * classes + logits.argmax(dim=1), minlength=classes**2)
        for side, (logits, labels) in tested.items()
    }
    return ConfusionRecord(**{side: found.reshape(classes, classes).tolist() for side, found in counts.items()})
