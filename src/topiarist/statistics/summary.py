"""A sample in five numbers, the interval by the bootstrap, bias-corrected and accelerated (Efron, 1987)."""

import warnings
from dataclasses import dataclass

import numpy
from scipy.stats import bootstrap

from topiarist.errors import SettingsError
from topiarist.randomness import array_generator
from topiarist.statistics.effects import standard_deviation
from topiarist.statistics.samples import Floats, Values, check_share, sample

FEWEST_RESAMPLES = 100
BATCH_VALUES = 2**22


@dataclass(frozen=True)
class Summary:
    """Number, mean, sample standard deviation, and confidence interval of the mean; one run has neither of the last."""

    n: int
    mean: float
    sd: float | None
    low: float | None
    high: float | None


def summarise(values: Values, *, confidence: float = 0.95, resamples: int = 9999, seed: int = 0) -> Summary:
    """Give the mean of some runs, their spread, and where the true mean may lie."""
    check_share("confidence", confidence)
    if resamples < FEWEST_RESAMPLES:
        raise SettingsError(f"resamples must be {FEWEST_RESAMPLES} or more; found {resamples}")
    array = sample(values)
    if len(array) == 1:
        return Summary(1, float(array[0]), None, None, None)
    if array.min() == array.max():
        mean = float(array[0])
        return Summary(len(array), mean, 0.0, mean, mean)
    low, high = interval_of_mean(array, confidence, resamples, seed)
    return Summary(len(array), float(array.mean()), standard_deviation(array), low, high)


def interval_of_mean(values: Floats, confidence: float, resamples: int, seed: int) -> tuple[float, float]:
    """Give the BCa interval of the mean; plain percentiles where the values are too alike to correct for bias."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = bootstrap(
            (values,),
            numpy.mean,
            n_resamples=resamples,
            batch=max(1, BATCH_VALUES // len(values)),
            confidence_level=confidence,
            method="BCa",
            rng=array_generator(seed, "bootstrap"),
        )
    ends = numpy.asarray(result.confidence_interval, dtype=numpy.float64)
    if not numpy.isfinite(ends).all():
        ends = numpy.quantile(result.bootstrap_distribution, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(ends[0]), float(ends[1])
