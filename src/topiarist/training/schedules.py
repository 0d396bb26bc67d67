"""Learning rates over time; t counts iterations (steps of the optimizer), not epochs.

Power, exponential and performance scheduling are those of Huang, Training Deep Neural Networks, equations 1 to 4;
cosine, one-cycle (Smith and Topin) and linear warm-up are what people expect today.
"""

import math
from typing import Literal

from pydantic import Field

from topiarist.settings import Settings

ScheduleName = Literal["constant", "power", "exponential", "performance", "cosine", "one-cycle"]


class Schedule(Settings):
    """A learning-rate schedule by name.

    `step_size` is s of the formulas; without it, power and exponential scheduling end at a tenth of the initial rate.
    `patience` counts validations without improvement before performance scheduling divides the rate by `factor`.
    `warmup` is the number of steps over which the rate first rises linearly, whatever the schedule.
    """

    name: ScheduleName = "constant"
    step_size: float | None = Field(default=None, gt=0)
    power: float = Field(default=1.0, gt=0)
    factor: float = Field(default=2.0, gt=1)
    patience: int = Field(default=5, ge=1)
    warmup: int = Field(default=0, ge=0)

    def rate(self, step: int, *, initial: float, total_steps: int, reductions: int = 0) -> float:
        """Give the learning rate of step t = 0, 1, …; `reductions` is how often the metric has stalled so far."""
        warm = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        return warm * self._unwarmed(step, initial, max(total_steps, 1), reductions)

    def _unwarmed(self, step: int, initial: float, total: int, reductions: int) -> float:
        match self.name:
            case "power":
                return power(
                    step,
                    initial=initial,
                    step_size=self.step_size or total / (10 ** (1 / self.power) - 1),
                    exponent=self.power,
                )
            case "exponential":
                return exponential(step, initial=initial, step_size=self.step_size or total)
            case "performance":
                return float(initial / self.factor**reductions)
            case "cosine":
                return cosine(step, initial=initial, total=total)
            case "one-cycle":
                return one_cycle(step, highest=initial, total=total)
            case _:
                return initial


def power(step: int, *, initial: float, step_size: float, exponent: float = 1.0) -> float:
    """η(t) = η₀ / (1 + t/s)^c."""
    return float(initial / (1 + step / step_size) ** exponent)


def exponential(step: int, *, initial: float, step_size: float) -> float:
    """η(t) = η₀ · 0.1^(t/s)."""
    return float(initial * 0.1 ** (step / step_size))


def cosine(step: int, *, initial: float, total: int) -> float:
    """η(t) = η₀ · (1 + cos(π t/T)) / 2."""
    return initial * (1 + math.cos(math.pi * min(step / total, 1.0))) / 2


def one_cycle(step: int, *, highest: float, total: int, rise: float = 0.3) -> float:
    """Rise from a 25th of the highest rate over the first 30 % of the steps, then fall to nearly nothing, by cosine."""
    lowest, last, turn = highest / 25, highest / 250_000, rise * total
    if step < turn:
        return highest + (lowest - highest) * (1 + math.cos(math.pi * step / turn)) / 2
    return last + cosine(step - math.ceil(turn), initial=highest - last, total=max(total - math.ceil(turn), 1))
