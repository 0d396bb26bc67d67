"""The small statistics of the Surgeon's comparison: means with intervals, shares with intervals, and chance."""

import math
from collections.abc import Sequence

import numpy
from scipy import stats

CONFIDENCE = 0.95
Interval = tuple[float, float]


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Return Student's interval of a mean; None of fewer than two values."""
    if len(values) < 2:
        return None
    mean, error = float(numpy.mean(values)), float(numpy.std(values, ddof=1)) / math.sqrt(len(values))
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * error
    return mean - reach, mean + reach


def share_interval(hits: int, trials: int) -> Interval:
    """Return Wilson's interval of a share."""
    found = stats.binomtest(hits, trials).proportion_ci(CONFIDENCE, method="wilson")
    return float(found.low), float(found.high)


def is_at_chance(accuracy: float, *, majority: float, samples: int) -> bool:
    """Return whether an accuracy lies within what answering the largest class for every sample may reach.

    `majority` is the share of that class; the bound is the upper end of the binomial interval of so many samples. With
    10 equal classes and 1,000 samples, up to 0.119 is chance.
    """
    return accuracy <= float(stats.binom.ppf((1 + CONFIDENCE) / 2, samples, majority)) / samples
