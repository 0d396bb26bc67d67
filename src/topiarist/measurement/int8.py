"""A network in 8 bits beside the same network in float32: size, answers and time, in one call."""

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from torch import nn

from topiarist.data import Data
from topiarist.files import JsonObject
from topiarist.measurement.runtimes import time_together
from topiarist.measurement.tables.timing import Call
from topiarist.storage import Export, export_onnx
from topiarist.storage.onnx_export import Session
from topiarist.storage.trial import RawSamples


@dataclass(frozen=True, kw_only=True)
class Int8Export:
    """A file that computes in 8 bits, and what the same network is as a file of 32 bits, which is not kept.

    Both were timed in turn in ONNX Runtime, for one sample on `threads` threads, and compared on the same samples.
    """

    int8: Export
    float32: Export
    latency_ms: float
    float32_latency_ms: float
    threads: int

    def __str__(self) -> str:
        """Return both, side by side, in one line."""
        parts = [
            f"{self.float32.file_kb:,.1f} → {self.int8.file_kb:,.1f} KB",
            f"{self.float32_latency_ms:.3g} → {self.latency_ms:.3g} ms per sample"
            f" (ONNX Runtime, {self.threads} thread{'' if self.threads == 1 else 's'})",
        ]
        if self.int8.outputs:
            differences = ", ".join(map(str, self.int8.outputs))
            parts.append(
                f"from torch in {self.int8.samples:,} sample{'' if self.int8.samples == 1 else 's'}: {differences}"
            )
        elif self.int8.agreement is None:
            parts.append(
                f"at most {self.int8.largest_difference:.2g} deviations from torch in {self.int8.samples:,} samples"
            )
        else:
            what = "class" if self.int8.metric == "accuracy" else "labels"
            parts.append(f"the same {what} as torch for {self.int8.agreement:.2%} of {self.int8.samples:,} samples")
        if self.int8.quality is not None and self.float32.quality is not None:
            parts.insert(0, f"{self.int8.metric} {self.float32.quality:.4g} → {self.int8.quality:.4g}")
        if self.int8.accuracy is not None and self.float32.accuracy is not None:
            parts.insert(0, f"accuracy {self.float32.accuracy:.2%} → {self.int8.accuracy:.2%}")
        return f"float32 → int8: {', '.join(parts)}"

    def to_json(self) -> JsonObject:
        """Return plain values; the file of 32 bits has no path."""
        kept = {name: value for name, value in self.float32.to_json().items() if name != "path"}
        return {
            **self.int8.to_json(),
            "latency_ms": self.latency_ms,
            "float32": {**kept, "latency_ms": self.float32_latency_ms},
            "threads": self.threads,
        }


def export_int8(
    model: nn.Module,
    path: str | Path,
    *,
    data: Data | None = None,
    samples: RawSamples | None = None,
    threads: int = 1,
) -> Int8Export:
    """Write a network as an ONNX file that computes in 8 bits, and compare it with the same file in float32.

    Parameters
    ----------
    model
        A network that `export_onnx` can write; it is left as it was.
    path
        The file, which ends in `.onnx`.
    data
        Where classes and preprocessing come from. Ranges are those of its training part, and answers are compared on
        its test part.
    samples
        Without data: raw samples (n_samples, …) that show the ranges, and that answers are compared on; of a network
        of several inputs a tuple of tensors, one per argument, or a mapping by name.
    threads
        How many threads both files are timed on.

    Returns
    -------
    Int8Export

    Raises
    ------
    ModelError
        If the network cannot be exported, or has no layer that ONNX Runtime computes in 8 bits.
    DataError
        If there are no samples to learn ranges from.

    Examples
    --------
    >>> import tempfile
    >>> from topiarist import export_int8, load_data, models
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = export_int8(models.mlp([64, 32, 10]), f"{folder}/small.onnx", data=load_data("digits"))
    >>> found.int8.bits
    8
    """
    int8 = export_onnx(model, path, data=data, samples=samples, int8=True)
    with TemporaryDirectory() as folder:
        float32 = export_onnx(model, Path(folder) / "float32.onnx", data=data, samples=samples)
        sessions = [Session(file.path, threads=threads) for file in (float32, int8)]
        times = time_together([_call(session) for session in sessions], threads=threads)
    return Int8Export(
        int8=int8,
        float32=replace(float32, path=Path()),
        latency_ms=times[1],
        float32_latency_ms=times[0],
        threads=threads,
    )


def _call(session: Session) -> Call:
    x = session.sample
    return lambda: session(x)
