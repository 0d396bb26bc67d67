"""`measure`: one record of what a network is worth and what it costs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from torch import Tensor, nn

from topiarist.data import AnyPart, Data
from topiarist.errors import DataError, ModelError
from topiarist.files import JsonObject
from topiarist.measurement.budget import Runtime
from topiarist.measurement.footprint import Footprint, footprint
from topiarist.measurement.latency import REPEATS
from topiarist.models import card_of
from topiarist.statistics import Metric
from topiarist.tasks import Classification, Regression, Task, TaskKind
from topiarist.training.inference import first_sample, part_logits, weights_of

PartName = Literal["train", "validation", "test"]


@dataclass(frozen=True, kw_only=True)
class Measurement(Footprint):
    """What a network takes, and its quality over `samples` samples: the metrics of its task by name.

    A classifier has `accuracy`, `macro_accuracy` and `log_loss`; numbers have rmse, mae and r2, in the user's units;
    labels roc_auc, f1, accuracy (per label), exact_match and log_loss. `primary` is the one that decisions are made by.
    """

    quality: Mapping[str, float] = field(hash=False)
    samples: int
    primary: str = "accuracy"
    kind: TaskKind = "classes"

    @property
    def accuracy(self) -> float:
        """The fraction of samples that are right."""
        return self._known("accuracy")

    @property
    def macro_accuracy(self) -> float:
        """The mean over classes of the fraction of their samples that are right."""
        return self._known("macro_accuracy")

    @property
    def log_loss(self) -> float:
        """The mean of −ln p of what is true."""
        return self._known("log_loss")

    def _known(self, name: str) -> float:
        if name not in self.quality:
            raise ModelError(f"there is no {name} of this task: measured are {', '.join(self.quality)}")
        return self.quality[name]

    def to_json(self) -> JsonObject:
        """Return plain numbers, the metrics among them; one that is not finite becomes None."""
        record = super().to_json()
        del record["quality"], record["samples"], record["primary"], record["kind"]
        quality = {name: value if math.isfinite(value) else None for name, value in self.quality.items()}
        own = {} if self.primary == "accuracy" else {"primary": self.primary}
        own |= {} if self.kind == "classes" else {"kind": self.kind}
        return {**record, **quality, "samples": self.samples, **own}


def measure(
    model: nn.Module,
    data: Data | AnyPart,
    *,
    part: PartName = "test",
    batch_size: int | None = None,
    latency: bool = True,
    repeats: int = REPEATS,
    threads: int = 1,
    runtime: Runtime = "torch",
    path: str | Path | None = None,
    metric: str | Metric | None = None,
) -> Measurement:
    """Measure a network; it is left as it was.

    Parameters
    ----------
    model : nn.Module
        A network that returns logits (n_samples, n_classes), or what the task of the data needs.
    data : Data or a part of one
        Labelled samples; what a part alone is about is on the network's card.
    part : {"train", "validation", "test"}
        Which part of a `Data` to measure on.
    batch_size : int, optional
        Samples per forward pass; by default as many as fit the processor's caches.
    latency : bool
        Whether to time the network, with at most `repeats` repeats on `threads` threads.
    runtime : {"torch", "onnx", "onnx-int8"}
        What to time it in.
    path : path, optional
        The model file whose size is reported; by default, the file that `save` would write.

    metric : str or Metric, optional
        What the network is judged by, besides what is always measured: it becomes the primary one.

    Returns
    -------
    Measurement

    Raises
    ------
    DataError
        If the part is empty or unknown.
    ModelError
        If the network does not fit the data, or there is no file at `path`.

    Examples
    --------
    >>> from topiarist import load_data, measure, models
    >>> measure(models.mlp([64, 10]), load_data("digits"), latency=False).parameters
    650
    """
    whole = data if isinstance(data, Data) else None
    samples = data if not isinstance(data, Data) else _chosen_part(data, part)
    file_bytes = None if path is None else _file_size(Path(path))
    outputs, targets = part_logits(model, samples, batch_size=batch_size)
    task = _task_of(model, data, outputs, targets).with_metric(metric)
    taken = footprint(
        model,
        first_sample(samples),
        data=whole,
        latency=latency,
        repeats=repeats,
        threads=threads,
        runtime=runtime,
        file_bytes=file_bytes,
    )
    return Measurement(
        **vars(taken),
        quality=task.metrics(outputs, targets, weights_of(samples)),
        samples=len(targets),
        primary=task.primary,
        kind=task.kind,
    )


def _file_size(path: Path) -> int:
    if not path.is_file():
        raise ModelError(f"cannot measure {path}: there is no such file")
    return path.stat().st_size


def _chosen_part(data: Data, name: PartName) -> AnyPart:
    parts = {"train": data.train, "validation": data.validation, "test": data.test}
    if name not in parts:
        raise DataError(f"no part is called '{name}': choose among {', '.join(parts)}")
    return parts[name]


def _task_of(model: nn.Module, data: Data | AnyPart, outputs: Tensor, targets: Tensor) -> Task:
    """Return what is predicted, as the data, the card or the targets say; raise ModelError for another network."""
    width = outputs.shape[1]
    if isinstance(data, Data):
        if width != data.task.outputs:
            what = {"classes": "classes", "numbers": "targets", "labels": "labels"}[data.task.kind]
            raise ModelError(f"the network has {width} outputs; the data have {data.task.outputs} {what}")
        task = data.task.answering_like(card_of(model).task)
    else:
        task = card_of(model).task or _suggested(width, targets)
    if isinstance(task, Classification) and targets.max().item() >= width:
        raise ModelError(f"the network has {width} outputs; a sample is of class {targets.max().item()}")
    return task


def _suggested(width: int, targets: Tensor) -> Task:
    names = tuple(str(number) for number in range(width))
    return Regression(names) if targets.is_floating_point() else Classification(names)
