"""Learning rates over time; t counts iterations (steps of the optimizer), not epochs.

Power, exponential and performance scheduling are those of Huang, Training Deep Neural Networks, equations 1 to 4;
cosine, one-cycle (Smith and Topin) and linear warm-up are what people expect today.
"""

import math
from typing import Literal

from pydantic import Field

from topiarist.settings import Settings

ScheduleName = Literal["constant", "power", "exponential", "performance", "cosine", "one-cycle"]
RISE = 0.3  # of the steps, in which one-cycle rises; with a 25th and a 250,000th of the rate, torch's OneCycleLR


class Schedule(Settings):
    """A learning-rate schedule by name.

    Examples
    --------
    >>> schedule = Schedule(name="power", step_size=10)
    >>> [schedule.rate(t, initial=0.1, total_steps=40) for t in (0, 10, 30)]
    [0.1, 0.05, 0.025]
    """

    name: ScheduleName = Field(default="constant", description="How the learning rate changes from step to step.")
    step_size: float | None = Field(
        default=None,
        gt=0,
        description="Steps s of power, η/(1+t/s)^c, and exponential, η·0.1^(t/s); by default η ends at a tenth.",
    )
    power: float = Field(default=1.0, gt=0, description="Exponent c of power scheduling, η/(1+t/s)^c.")
    factor: float = Field(default=2.0, gt=1, description="Performance scheduling divides the learning rate by it.")
    patience: int = Field(default=5, ge=1, description="Epochs without improvement before performance scheduling does.")
    warmup: int = Field(default=0, ge=0, description="Steps over which the learning rate first rises linearly.")

    def rate(self, step: int, *, initial: float, total_steps: int, reductions: int = 0) -> float:
        """Return the learning rate of step t = 0, 1, …; `reductions` counts how often the metric has stalled so far."""
        warm = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        return warm * self._unwarmed(step, initial, max(total_steps, 1), reductions)

    def _unwarmed(self, step: int, initial: float, total: int, reductions: int) -> float:
        match self.name:
            case "power":
                size = self.step_size or total / (10 ** (1 / self.power) - 1)
                return float(initial / (1 + step / size) ** self.power)
            case "exponential":
                return float(initial * 0.1 ** (step / (self.step_size or total)))
            case "performance":
                return float(initial / self.factor**reductions)
            case "cosine":
                return _cosine(step, initial, total)
            case "one-cycle":
                lowest, last, turn = initial / 25, initial / 250_000, RISE * total
                if step < turn:
                    return initial + (lowest - initial) * (1 + math.cos(math.pi * step / turn)) / 2
                return last + _cosine(step - math.ceil(turn), initial - last, max(total - math.ceil(turn), 1))
            case _:
                return initial


def _cosine(step: int, initial: float, total: int) -> float:
    return initial * (1 + math.cos(math.pi * min(step / total, 1.0))) / 2
