"""`measure`: one record of what a network is worth and what it costs."""

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from torch import nn

from topiarist.data import AnyPart, Data
from topiarist.errors import DataError, ModelError
from topiarist.measurement.cost import count_macs
from topiarist.measurement.latency import REPEATS, time_sample
from topiarist.measurement.size import BYTES_PER_KB, count_nonzero, memory_kb
from topiarist.models.evaluation import count_parameters
from topiarist.storage import serialise
from topiarist.training.inference import first_sample, part_logits
from topiarist.training.metrics import accuracy, log_loss, macro_accuracy

PartName = Literal["train", "validation", "test"]


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Quality over `samples`; size in KB of 1024 bytes; multiply-accumulates and milliseconds for one sample.

    Tied parameters count once. Latency is the median over repeats on `threads` threads, its spread the interquartile
    range; both are None where it was not timed.
    """

    accuracy: float
    macro_accuracy: float
    log_loss: float
    parameters: int
    nonzero: int
    memory_kb: float
    file_kb: float
    macs: int
    latency_ms: float | None
    latency_spread_ms: float | None
    threads: int
    samples: int

    def to_json(self) -> dict[str, Any]:
        """Give plain numbers; one that is not finite, as the loss of a network that diverged, becomes None."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(self).items()
        }


def measure(
    model: nn.Module,
    data: Data | AnyPart,
    *,
    part: PartName = "test",
    batch_size: int | None = None,
    latency: bool = True,
    repeats: int = REPEATS,
    threads: int = 1,
    path: str | Path | None = None,
) -> Measurement:
    """Measure a network on a part of the data, or on samples given as a part; it is left as it was.

    `file_kb` is the size of the file at `path`, or of the one that `save` would write.
    """
    task = data if isinstance(data, Data) else None
    samples = data if not isinstance(data, Data) else chosen_part(data, part)
    written = len(serialise(model, data=task)) if path is None else file_size(Path(path))
    logits, labels = part_logits(model, samples, batch_size=batch_size)
    check_classes(logits.shape[1], labels.max().item(), task)
    sample = first_sample(samples)
    timed = time_sample(model, sample, repeats=repeats, threads=threads) if latency else None
    return Measurement(
        accuracy=accuracy(logits, labels),
        macro_accuracy=macro_accuracy(logits, labels),
        log_loss=log_loss(logits, labels),
        parameters=count_parameters(model),
        nonzero=count_nonzero(model),
        memory_kb=memory_kb(model),
        file_kb=written / BYTES_PER_KB,
        macs=count_macs(model, sample),
        latency_ms=None if timed is None else timed.median_ms,
        latency_spread_ms=None if timed is None else timed.spread_ms,
        threads=threads,
        samples=len(labels),
    )


def file_size(path: Path) -> int:
    """Give the bytes of a model file."""
    if not path.is_file():
        raise ModelError(f"cannot measure {path}: there is no such file")
    return path.stat().st_size


def chosen_part(data: Data, name: PartName) -> AnyPart:
    """Look a part up by name."""
    parts = {"train": data.train, "validation": data.validation, "test": data.test}
    if name not in parts:
        raise DataError(f"no part is called '{name}': choose among {', '.join(parts)}")
    return parts[name]


def check_classes(outputs: int, highest_label: float, task: Data | None) -> None:
    """Refuse a network that was built for another number of classes."""
    asked = len(task.classes) if task is not None else None
    if asked is not None and outputs != asked:
        raise ModelError(f"the network has {outputs} outputs; the data have {asked} classes")
    if highest_label >= outputs:
        raise ModelError(f"the network has {outputs} outputs; a sample is of class {highest_label}")
