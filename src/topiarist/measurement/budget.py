"""A budget: how large, how slow and how much worse a network may become."""

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from topiarist.errors import ModelError, SettingsError
from topiarist.settings import Settings

if TYPE_CHECKING:
    from topiarist.measurement.footprint import Footprint

Runtime = Literal["torch", "onnx", "onnx-int8"]
KB_PER_UNIT = {"b": 1 / 1024, "kb": 1.0, "kib": 1.0, "mb": 1024.0, "mib": 1024.0, "gb": 1024.0**2, "gib": 1024.0**2}
MS_PER_UNIT = {"ms": 1.0, "us": 1e-3, "µs": 1e-3, "s": 1e3}
WORDS = {
    "file_kb": "KB on disk",
    "memory_kb": "KB in memory",
    "parameters": "parameters",
    "macs": "multiply-accumulates",
    "latency_ms": "ms per sample",
}


class BudgetError(ModelError):
    """A budget cannot be met; the text names the nearest network that can be made."""


class Budget(Settings):
    """Upper limits for a network; what is not given is not limited.

    The words are those of `Measurement`: a budget of `file_kb=100` limits what is measured as `file_kb`.

    Parameters
    ----------
    file_kb : float, optional
        Size of the model file in KB of 1024 bytes.
    memory_kb : float, optional
        Parameters and buffers in memory, in KB of 1024 bytes.
    parameters : int, optional
    macs : int, optional
        Multiply-accumulates for one sample.
    latency_ms : float, optional
        Milliseconds for one sample, as they are measured on this machine.
    runtime : {"torch", "onnx", "onnx-int8"}
        What the latency is measured in: torch, or ONNX Runtime in float32 or in 8 bits.
    threads : int
        How many threads the latency is measured on.
    max_drop : float, optional
        How much of the score may be lost: 0.01 is one point of accuracy. Of a score of your own it is absolute, in the
        units of that score.

    Raises
    ------
    SettingsError
        If a limit makes no sense, such as a size of 0.

    Examples
    --------
    >>> Budget(file_kb=100, max_drop=0.01).limits_size
    True
    """

    file_kb: float | None = Field(default=None, gt=0, description="Size of the model file: 500kB, 1.5MB.")
    memory_kb: float | None = Field(default=None, gt=0, description="Size of parameters and buffers in memory: 500kB.")
    parameters: int | None = Field(default=None, ge=1, description="Number of parameters.")
    macs: int | None = Field(default=None, ge=1, description="Multiply-accumulates per sample.")
    latency_ms: float | None = Field(default=None, gt=0, description="Time per sample: 2ms, 500us.")
    runtime: Runtime = Field(default="torch", description="What the latency is measured in.")
    threads: int = Field(default=1, ge=1, description="Number of threads that the latency is measured on.")
    max_drop: float | None = Field(
        default=None, ge=0, lt=1, description="Loss that is allowed: 0.01 is a point of accuracy, or 1 % of an RMSE."
    )

    @model_validator(mode="after")
    def _runtime_of_a_latency(self) -> Self:
        if self.latency_ms is None and (self.runtime != "torch" or self.threads != 1):
            raise ValueError("runtime and threads are those of a latency: give latency_ms")
        return self

    @property
    def limits_size(self) -> bool:
        """Whether anything but the loss is limited."""
        return any(getattr(self, name) is not None for name in WORDS)

    @property
    def sizes(self) -> "Budget":
        """The same budget without the limit on the loss."""
        return self.model_copy(update={"max_drop": None})

    def excess(self, measured: "Footprint") -> "Excess | None":
        """Return the limit that a network exceeds most; None where it keeps within all of them."""
        found = {name: (getattr(measured, name), getattr(self, name)) for name in WORDS}
        exceeded = [
            Excess(name, value, limit)
            for name, (value, limit) in found.items()
            if limit is not None and value is not None and value > limit
        ]
        return max(exceeded, key=lambda excess: excess.ratio, default=None)


@dataclass(frozen=True)
class Excess:
    """What a network has too much of: the name of the limit, what was found, and the limit."""

    limit_name: str
    found: float
    limit: float

    @property
    def ratio(self) -> float:
        """How many times the limit was found."""
        return self.found / self.limit

    def __str__(self) -> str:
        return f"{_rounded_up(self.found)} {WORDS[self.limit_name]}, the budget is {_rounded_up(self.limit)}"


def _rounded_up(value: float) -> str:
    """Return a number to four digits; a fraction is rounded up, so that a user can ask for what is printed."""
    if isinstance(value, int) or value <= 0:
        return f"{value:,}"
    unit = 10.0 ** (math.floor(math.log10(value)) - 3)
    return f"{math.ceil(value / unit) * unit:,.4g}" if value < 1000 else f"{math.ceil(value):,}"


def parse_kb(text: str) -> float:
    """Read a size such as 500kB, 1.5 MB or 20000 B as KB of 1024 bytes; a bare number is in KB."""
    return _parse(text, KB_PER_UNIT, "kb", "a size is written like 500kB or 1.5MB")


def parse_ms(text: str) -> float:
    """Read a time such as 2ms, 500us or 0.01 s as milliseconds; a bare number is in milliseconds."""
    return _parse(text, MS_PER_UNIT, "ms", "a time is written like 2ms or 500us")


def _parse(text: str, units: dict[str, float], usual: str, form: str) -> float:
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([a-zA-Zµ]*)\s*", text)
    unit = match[2].lower() or usual if match else ""
    if match is None or unit not in units:
        raise SettingsError(f"{form}; found '{text}'")
    return float(match[1]) * units[unit]
