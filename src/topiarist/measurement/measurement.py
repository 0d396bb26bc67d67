"""`measure`: one record of what a network is worth and what it costs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torch import nn

from topiarist.data import AnyPart, Data
from topiarist.errors import DataError, ModelError
from topiarist.measurement.budget import Runtime
from topiarist.measurement.footprint import Footprint, footprint
from topiarist.measurement.latency import REPEATS
from topiarist.training.inference import first_sample, part_logits
from topiarist.training.metrics import accuracy, log_loss, macro_accuracy

PartName = Literal["train", "validation", "test"]


@dataclass(frozen=True, kw_only=True)
class Measurement(Footprint):
    """What a network takes, and its quality over `samples` samples."""

    accuracy: float
    macro_accuracy: float
    log_loss: float
    samples: int


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
) -> Measurement:
    """Measure a network; it is left as it was.

    Parameters
    ----------
    model : nn.Module
        A network that returns logits (n_samples, n_classes).
    data : Data or a part of one
        Labelled samples.
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
    task = data if isinstance(data, Data) else None
    samples = data if not isinstance(data, Data) else _chosen_part(data, part)
    file_bytes = None if path is None else _file_size(Path(path))
    logits, labels = part_logits(model, samples, batch_size=batch_size)
    _check_classes(logits.shape[1], labels.max().item(), task)
    taken = footprint(
        model,
        first_sample(samples),
        data=task,
        latency=latency,
        repeats=repeats,
        threads=threads,
        runtime=runtime,
        file_bytes=file_bytes,
    )
    return Measurement(
        **vars(taken),
        accuracy=accuracy(logits, labels),
        macro_accuracy=macro_accuracy(logits, labels),
        log_loss=log_loss(logits, labels),
        samples=len(labels),
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


def _check_classes(outputs: int, highest_label: float, task: Data | None) -> None:
    """Raise ModelError for a network that was built for another number of classes."""
    if task is not None and outputs != len(task.classes):
        raise ModelError(f"the network has {outputs} outputs; the data have {len(task.classes)} classes")
    if highest_label >= outputs:
        raise ModelError(f"the network has {outputs} outputs; a sample is of class {highest_label}")
