"""Bootstrap intervals (Efron, 1979) of a gain in macro accuracy: test samples are drawn again, with replacement."""

from dataclasses import dataclass

import numpy
from numpy.typing import ArrayLike

from topiarist.errors import SettingsError
from topiarist.randomness import array_generator
from topiarist.statistics.samples import finite_array

DRAWS = 10_000


@dataclass(frozen=True)
class Interval:
    """A value with the percentile interval of its draws."""

    value: float
    low: float
    high: float


def bootstrap_macro_gain(
    gains: ArrayLike, classes: ArrayLike, *, confidence: float = 0.95, draws: int = DRAWS, seed: int = 0
) -> Interval:
    """Give the mean over classes of the mean gain of a sample, and its interval.

    `gains` (n_samples,) say by how much each sample is answered better: 1 or 0 for one network, minus the same for
    another, or minus the share of several networks. Samples of each class are drawn among themselves.
    """
    values, labels = finite_array(gains, "gains"), numpy.asarray(classes)
    if values.ndim != 1 or values.shape != labels.shape or not len(values):
        raise SettingsError(f"one gain and one class a sample are needed; found {values.shape} and {labels.shape}")
    random = array_generator(seed, "bootstrap")
    by_class = [values[labels == label] for label in numpy.unique(labels)]
    drawn = sum(some[random.integers(0, len(some), size=(draws, len(some)))].mean(axis=1) for some in by_class) / len(
        by_class
    )
    tail = (1 - confidence) / 2
    low, high = numpy.quantile(drawn, [tail, 1 - tail])
    return Interval(float(numpy.mean([some.mean() for some in by_class])), float(low), float(high))
