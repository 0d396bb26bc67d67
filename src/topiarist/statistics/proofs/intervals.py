"""How sure a metric's value is: an interval around what one network reached on some samples."""

import math

import numpy
import scipy
from numpy.typing import ArrayLike

from topiarist.statistics.answers import effective_number
from topiarist.statistics.metrics.judged import judged
from topiarist.statistics.metrics.metric import Metric
from topiarist.statistics.proofs.differences import influenced
from topiarist.statistics.proofs.evidence import FEW_CARRY
from topiarist.statistics.samples import Floats

CONFIDENCE = 0.95  # the usual one, two-sided: the level of tests is 0.05


def value_interval(
    metric: Metric, answers: ArrayLike, targets: ArrayLike, weights: ArrayLike | None = None
) -> tuple[float, float]:
    """Return an interval of 95 % for a metric's value, from a network's answers to samples.

    Shares of right answers have Wilson's (1927). The mean of errors, or of their squares, that of its standard error;
    other metrics that of the influences of samples, and where fewer than ten samples carry the variance, as where all
    is right, at least Wilson's of the smallest class or label.

    Examples
    --------
    >>> from topiarist.statistics.metrics import find_metric
    >>> low, high = value_interval(find_metric("classes", "accuracy"), [[0.9, 0.1]] * 6, [0] * 6)
    >>> round(low, 2), high
    (0.61, 1.0)
    """
    found = judged(metric.kind, answers, targets, weights)
    value, reach = metric.value(answers, targets, weights), float(scipy.special.ndtri(0.5 + CONFIDENCE / 2))
    if not math.isfinite(value):
        return math.nan, math.nan
    if metric.decisions and metric.per_sample is not None:
        return wilson(value, effective_number(found.weights))
    if metric.errors is not None:
        return _around_errors(metric, value, metric.errors(found.answers, found.targets), found.weights, reach)
    each = None if weights is None else found.weights  # a metric of the user's may know none
    rows = numpy.zeros(len(found.targets), dtype=numpy.int64)
    influences = influenced(metric, [found.answers], found.targets, each, rows, 0).influences
    squares = influences**2
    error = math.sqrt(float(squares.sum()))
    low, high = value - reach * error, value + reach * error
    if not is_fraction(metric):
        return low, high
    if not error or float(squares.sum() ** 2 / (squares @ squares)) < FEW_CARRY:
        widest = wilson(value, _fewest(metric, found.targets))
        low, high = min(low, widest[0]), max(high, widest[1])
    return max(low, 0.0), min(high, 1.0)


def is_fraction(metric: Metric) -> bool:
    """Return whether a metric lies between 0 and 1: accuracies, areas and F1 do, losses and errors do not."""
    return metric.higher_is_better and metric.kind in ("classes", "labels")


def wilson(share: float, samples: float) -> tuple[float, float]:
    """Return Wilson's (1927) interval of a share of so many samples.

    It is (s + z²/2n ± z √(s (1 − s) / n + z² / 4n²)) / (1 + z²/n).
    """
    z = float(scipy.special.ndtri(0.5 + CONFIDENCE / 2))
    middle, more = share + z * z / (2 * samples), 1 + z * z / samples
    half = z * math.sqrt(share * (1 - share) / samples + z * z / (4 * samples * samples))
    return max((middle - half) / more, 0.0), min((middle + half) / more, 1.0)


def _around_errors(metric: Metric, value: float, errors: Floats, weights: Floats, reach: float) -> tuple[float, float]:
    """Return value · (1 ± reach · r)^(1 / exponent), r being the relative standard error of the mean error.

    Errors of several targets are divided by their means first.
    """
    means = numpy.average(errors, axis=0, weights=weights)
    rows = (errors / numpy.where(means > 0, means, 1.0)).mean(axis=1)
    relative = math.sqrt(float(weights**2 @ (rows - rows @ weights / weights.sum()) ** 2)) / float(weights.sum())
    sides = (max(1 - reach * relative, 0.0), 1 + reach * relative)
    return value * sides[0] ** (1 / metric.exponent), value * sides[1] ** (1 / metric.exponent)


def _fewest(metric: Metric, targets: Floats) -> float:
    """Return how many samples the smallest class, or side of a label, has."""
    if metric.kind == "classes":
        return float(numpy.unique(targets, return_counts=True)[1].min())
    if metric.kind != "labels":
        return float(len(targets))
    ones = targets.sum(axis=0)
    return float(max(min(ones.min(), (len(targets) - ones).min()), 1))
