"""Edits on trial: what the loss on labelled samples would be with an edit, by an anatomy that is known already."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from topiarist.errors import DataError, ModelError
from topiarist.models.copying import copied
from topiarist.models.evaluation import evaluating
from topiarist.randomness import isolated
from topiarist.surgery.applying import change_structure
from topiarist.surgery.calibration import BATCH_SIZE, Batches
from topiarist.surgery.edits import Edit, FoldLayer, RemoveUnits
from topiarist.surgery.refit import refit
from topiarist.tracing import Anatomy


@dataclass(frozen=True, eq=False)
class Samples:
    """Calibration samples (n_samples, …) with their labels (n_samples,)."""

    calibration: Tensor
    labels: Tensor

    def __post_init__(self) -> None:
        for name, value in (("calibration", self.calibration), ("labels", self.labels)):
            if not isinstance(value, Tensor):
                raise DataError(f"{name} must be a tensor; found {type(value).__name__}")
        if self.labels.ndim != 1 or self.labels.is_floating_point() or self.labels.dtype == torch.bool:
            shape = tuple(self.labels.shape)
            raise DataError(f"labels are one whole number a sample; found shape {shape} of {self.labels.dtype}")
        count = len(self.calibration) if self.calibration.ndim else 0
        if count != len(self.labels):
            raise DataError(f"there must be one label a calibration sample; found {len(self.labels)} for {count}")
        if not count:
            raise DataError("the calibration data are empty")
        if not is_finite(self.calibration):
            raise DataError("the calibration data hold values that are no finite numbers")

    def __len__(self) -> int:
        return len(self.labels)

    def batches(self, model: nn.Module) -> Batches:
        """Give the samples as the arguments of calls."""
        return Batches(self.calibration, model, 1)

    def losses(self, model: nn.Module) -> Iterator[Tensor]:
        """Give, batch by batch, the sum of the cross-entropies divided by the number of all samples."""
        labels = torch.split(self.labels, BATCH_SIZE)
        for (args, kwargs), wanted in zip(self.batches(model), labels, strict=True):
            yield cross_entropy(called(model, args, kwargs), wanted) / len(self)


def is_finite(tensor: Tensor) -> bool:
    """Say whether all values are finite numbers; a sum shows that soonest, unless it is too large for one."""
    return bool(tensor.sum().isfinite()) or bool(tensor.isfinite().all())


def called(model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tensor:
    """Give the class scores (n_samples, n_classes) that a network gives."""
    try:
        given = model(*args, **kwargs)
    except (RuntimeError, ValueError, TypeError) as error:
        reason = str(error).split("\n")[0]
        raise ModelError(f"the network cannot read the calibration data: {reason}") from error
    if not isinstance(given, Tensor) or given.ndim != 2:
        found = f"shape {tuple(given.shape)}" if isinstance(given, Tensor) else type(given).__name__
        raise ModelError(f"a loss needs class scores (n_samples, n_classes) as the network's output; found {found}")
    return given


def cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    """Give the sum of the cross-entropies of a batch."""
    lowest, highest, classes = int(labels.min()), int(labels.max()), scores.shape[1]
    if lowest < 0 or highest >= classes:
        strange = lowest if lowest < 0 else highest
        raise DataError(f"the network knows classes 0 to {classes - 1}; found label {strange}")
    return functional.cross_entropy(scores, labels.to(scores.device, torch.int64), reduction="sum")


def mean_loss(model: nn.Module, samples: Samples) -> float:
    """Give a network's mean cross-entropy on samples, in evaluation mode."""
    with evaluating(model), isolated(0):
        return sum(float(loss) for loss in samples.losses(model))


def trial(model: nn.Module, edit: Edit, found: Anatomy, batches: Batches) -> nn.Module:
    """Give a copy of a network with one edit, refitted where the edit says so; it carries no plan."""
    with torch.inference_mode(False):
        changed = copied(model)
        readers, rows = change_structure(changed, edit, found, structure_only=False)
        if isinstance(edit, (RemoveUnits, FoldLayer)) and edit.refit:
            refit(model, changed, found, readers, rows, batches)
    return changed


def loss_with(model: nn.Module, edit: Edit, found: Anatomy, samples: Samples) -> float:
    """Give the mean cross-entropy that a network would have with one edit."""
    return mean_loss(trial(model, edit, found, samples.batches(model)), samples)
