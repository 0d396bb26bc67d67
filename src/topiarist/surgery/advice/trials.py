"""Edits on trial: what the loss on labelled samples would be with an edit, by an anatomy that is known already."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from topiarist.errors import DataError, ModelError
from topiarist.models.copying import copied
from topiarist.models.evaluation import evaluating, numbers_of
from topiarist.randomness import isolated
from topiarist.surgery.applying import change_structure
from topiarist.surgery.calibration import BATCH_SIZE, CalibrationBatches, unreadable
from topiarist.surgery.edits.kinds import Edit, FoldLayer, RemoveUnits
from topiarist.surgery.refit.fitting import refit
from topiarist.tasks import Task
from topiarist.tracing import Anatomy


@dataclass(frozen=True, eq=False)
class LabelledSamples:
    """Calibration samples (n_samples, …) with their labels (n_samples,), or what another task learns of them."""

    calibration: Tensor
    labels: Tensor
    task: Task | None = None

    def __post_init__(self) -> None:
        for name, value in (("calibration", self.calibration), ("labels", self.labels)):
            if not isinstance(value, Tensor):
                raise DataError(f"{name} must be a tensor; found {type(value).__name__}")
        if self.task is not None and self.task.kind != "classes":
            self.task.check_targets(self.labels)
        elif self.labels.ndim != 1 or self.labels.is_floating_point() or self.labels.dtype == torch.bool:
            shape = tuple(self.labels.shape)
            raise DataError(f"labels are one whole number per sample; found shape {shape} of {self.labels.dtype}")
        count = len(self.calibration) if self.calibration.ndim else 0
        if count != len(self.labels):
            raise DataError(f"there must be one label per calibration sample; found {len(self.labels)} for {count}")
        if not count:
            raise DataError("the calibration data are empty")
        if not is_finite(self.calibration):
            raise DataError("the calibration data hold values that are not finite numbers")

    def __len__(self) -> int:
        return len(self.labels)

    def batches(self, model: nn.Module) -> CalibrationBatches:
        """Return the samples as the arguments of calls."""
        return CalibrationBatches(self.calibration, model, 1)

    def losses(self, model: nn.Module) -> Iterator[Tensor]:
        """Yield, batch by batch, the sum of the losses of the task divided by the number of all samples."""
        for (args, kwargs), labels in zip(self.batches(model), torch.split(self.labels, BATCH_SIZE), strict=True):
            try:
                scores = model(*args, **kwargs)
            except (RuntimeError, ValueError, TypeError) as error:
                raise unreadable(error) from error
            if self.task is not None and self.task.kind != "classes":
                yield self._loss_sum(scores, labels, self.task) / len(self)
                continue
            if not isinstance(scores, Tensor) or scores.ndim != 2:
                found = f"shape {tuple(scores.shape)}" if isinstance(scores, Tensor) else type(scores).__name__
                raise ModelError(f"a loss needs class scores (n_samples, n_classes) as output; found {found}")
            for label in (int(labels.min()), int(labels.max())):
                if not 0 <= label < scores.shape[1]:
                    raise DataError(f"the network knows classes 0 to {scores.shape[1] - 1}; found label {label}")
            yield functional.cross_entropy(scores, labels.to(scores.device, torch.int64), reduction="sum") / len(self)

    @staticmethod
    def _loss_sum(outputs: object, targets: Tensor, task: Task) -> Tensor:
        if isinstance(outputs, Tensor) and outputs.shape == targets.shape[:1]:
            outputs = outputs[:, None]
        if not isinstance(outputs, Tensor) or outputs.shape != targets.shape:
            found = f"shape {tuple(outputs.shape)}" if isinstance(outputs, Tensor) else type(outputs).__name__
            raise ModelError(f"a loss needs outputs (n_samples, {task.outputs}); found {found}")
        return task.losses(outputs.T, targets.to(outputs).T).sum()


def is_finite(tensor: Tensor) -> bool:
    """Return whether all values are finite numbers; a sum shows that soonest, unless it is too large for one."""
    return bool(tensor.sum().isfinite()) or bool(tensor.isfinite().all())


def mean_loss(model: nn.Module, samples: LabelledSamples) -> float:
    """Return a network's mean cross-entropy on samples, in evaluation mode."""
    with evaluating(model), isolated(0, numbers_of(model).device):
        return sum(float(loss) for loss in samples.losses(model))


def trial(model: nn.Module, edit: Edit, anatomy: Anatomy, batches: CalibrationBatches) -> nn.Module:
    """Return a copy of a network with one edit, refitted where the edit says so; it carries no plan."""
    with torch.inference_mode(False):
        copy = copied(model)
        changed = change_structure(copy, edit, anatomy, structure_only=False)
        if isinstance(edit, (RemoveUnits, FoldLayer)) and edit.refit:
            refit(model, copy, anatomy, changed.readers, changed.rows, batches, now=lambda: changed.anatomy)
    return copy
