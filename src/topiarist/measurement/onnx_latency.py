"""How long ONNX Runtime takes for one sample, timed as a network in torch is."""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from topiarist.measurement.latency import REPEATS, Latency, time_calls
from topiarist.storage.onnx_export import Session


def time_onnx(
    path: str | Path, sample: NDArray[Any] | None = None, *, repeats: int = REPEATS, threads: int = 1
) -> Latency:
    """Time an ONNX file on the CPU for one sample (1, *shape) as the file reads it; zeros where none is given."""
    session = Session(Path(path), threads=threads)
    x = session.sample if sample is None else sample
    return time_calls(lambda: session(x), repeats=repeats)
