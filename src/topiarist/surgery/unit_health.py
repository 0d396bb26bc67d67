"""Units that do no work: those that never vary, and those that are nearly always at the end of their range."""

from dataclasses import dataclass

import torch
from torch import Tensor

from topiarist.surgery.readings import Reading, Readings

NEARLY_ALWAYS = 0.95
ROUNDING = 16  # in units of the last bit: torch rounds differently at the end of a row


@dataclass(frozen=True)
class Health:
    """Units that do no work over the calibration data, by number.

    `dead` never vary, whatever the sample and the position, for none of the layers that read them; `silent` are those
    of them that are always 0. `saturated` lie within 1 % of the range of their activation from one of its bounds in at
    least 95 % of the cases (a ReLU6 only at 6); none are named where a reader sees them without known bounds.
    """

    dead: tuple[int, ...]
    silent: tuple[int, ...]
    saturated: tuple[int, ...]


def health_from(readings: Readings) -> Health:
    """Judge the units of a space by what its readers see; none are named where no one reads it."""
    seen = list(readings.values())
    dead, silent, saturated = (
        named([judge(reading) for reading in seen]) for judge in (never_vary, are_zero, are_bounded)
    )
    return Health(dead, silent, saturated)


def never_vary(reading: Reading) -> Tensor:
    """Say of each unit whether it always has the same value, but for rounding."""
    largest = torch.maximum(reading.lowest.abs(), reading.highest.abs())
    return reading.highest - reading.lowest <= ROUNDING * torch.finfo(largest.dtype).eps * largest


def are_zero(reading: Reading) -> Tensor:
    """Say of each unit whether it is always 0."""
    return (reading.lowest == 0) & (reading.highest == 0)


def are_bounded(reading: Reading) -> Tensor:
    """Say of each unit whether it is nearly always next to a bound."""
    if reading.bounds is None:
        return torch.zeros_like(reading.lowest, dtype=torch.bool)
    return torch.as_tensor(reading.bounded) >= NEARLY_ALWAYS * reading.count


def named(judgements: list[Tensor]) -> tuple[int, ...]:
    """Name the units of which all readers say so."""
    if not judgements:
        return ()
    return tuple(torch.stack(judgements).all(0).nonzero().flatten().tolist())
