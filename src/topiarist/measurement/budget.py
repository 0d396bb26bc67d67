"""A budget: how large, how slow and how much worse a network may become."""

import math
import re
from dataclasses import dataclass

from pydantic import Field
from torch import Tensor, nn

from topiarist.data import Data
from topiarist.errors import ModelError, SettingsError
from topiarist.measurement.cost import count_macs
from topiarist.measurement.latency import time_sample
from topiarist.measurement.measurement import Measurement
from topiarist.measurement.size import BYTES_PER_KB
from topiarist.models.evaluation import count_parameters
from topiarist.settings import Settings
from topiarist.storage import serialise

KB_PER_UNIT = {"b": 1 / 1024, "kb": 1.0, "kib": 1.0, "mb": 1024.0, "mib": 1024.0, "gb": 1024.0**2, "gib": 1024.0**2}


class BudgetError(ModelError):
    """A budget cannot be met; the text names the nearest thing that can."""


class Budget(Settings):
    """Upper limits; what is not given is not limited.

    `file_kb` is that of the model file in KB of 1024 bytes, `latency_ms` that of one sample on one thread,
    `max_drop` the accuracy that may be lost on the validation part: 0.01 is one point.
    """

    file_kb: float | None = Field(default=None, gt=0)
    parameters: int | None = Field(default=None, ge=1)
    macs: int | None = Field(default=None, ge=1)
    latency_ms: float | None = Field(default=None, gt=0)
    max_drop: float | None = Field(default=None, ge=0, lt=1)

    @property
    def limits_size(self) -> bool:
        """Say whether anything but the loss is limited."""
        return any(value is not None for name, value in self if name != "max_drop")

    def excess(self, measured: "Measurement | Footprint") -> "Excess | None":
        """Give the limit that a network exceeds most; None where it keeps within all of them."""
        found = {
            "KB on disk": (measured.file_kb, self.file_kb),
            "parameters": (measured.parameters, self.parameters),
            "multiply-accumulates": (measured.macs, self.macs),
            "ms a sample": (measured.latency_ms, self.latency_ms),
        }
        exceeded = [
            Excess(what, value, limit)
            for what, (value, limit) in found.items()
            if limit is not None and value is not None and value > limit
        ]
        return max(exceeded, key=lambda excess: excess.found / excess.limit, default=None)


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """What a network takes, whatever it is worth."""

    parameters: int
    file_kb: float
    macs: int
    latency_ms: float | None


def footprint(model: nn.Module, sample: Tensor, *, data: Data | None = None, latency: bool = False) -> Footprint:
    """Weigh a network; the sample (1, *input_shape) need not be of any class."""
    return Footprint(
        parameters=count_parameters(model),
        file_kb=len(serialise(model, data=data)) / BYTES_PER_KB,
        macs=count_macs(model, sample),
        latency_ms=time_sample(model, sample).median_ms if latency else None,
    )


@dataclass(frozen=True)
class Excess:
    """What a network has too much of."""

    what: str
    found: float
    limit: float

    def __str__(self) -> str:
        return f"{shown(self.found)} {self.what}, the budget is {shown(self.limit)}"


def shown(value: float) -> str:
    """Write a number as people do; one with a fraction is rounded up, so that it can be met."""
    if isinstance(value, int) or value <= 0:
        return f"{value:,}"
    unit = 10.0 ** (math.floor(math.log10(value)) - 3)
    return f"{math.ceil(value / unit) * unit:,.4g}" if value < 1000 else f"{math.ceil(value):,}"


def parse_kb(text: str) -> float:
    """Read a size such as 500kB, 1.5 MB or 20000 B as KB of 1024 bytes; a bare number is in KB."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([a-zA-Z]*)\s*", text)
    unit = match[2].lower() or "kb" if match else ""
    if match is None or unit not in KB_PER_UNIT:
        raise SettingsError(f"a size is written like 500kB or 1.5MB; found '{text}'")
    return float(match[1]) * KB_PER_UNIT[unit]
