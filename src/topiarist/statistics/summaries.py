"""Samples in few numbers: mean with a bootstrap interval, and the size of a difference.

Effect sizes are in units of the spread (d, g) or shares of the comparisons won (δ, rank-biserial correlation).
"""

import math
import warnings
from dataclasses import dataclass

import numpy
import scipy
from numpy.typing import ArrayLike

from topiarist.errors import SettingsError
from topiarist.randomness import array_generator
from topiarist.statistics.ranks import pooled_ranks, signed_ranks
from topiarist.statistics.samples import (
    Floats,
    Values,
    check_between_0_and_1,
    finite_array,
    pairs,
    rounding_error,
    sample,
)

FEWEST_RESAMPLES = 100  # below, either end of a 95 % interval would rest on one or two resamples
BATCH_VALUES = 2**22  # drawn at a time: 32 MB
DRAWS = 10_000  # the level of a 95 % interval's ends is then known to ± 0.16 %: √(0.025 · 0.975 / 10,000)


@dataclass(frozen=True)
class Summary:
    """Number, mean, sample standard deviation, and confidence interval of the mean; one run has neither of the last."""

    n: int
    mean: float
    sd: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Interval:
    """A value with the percentile interval of its draws."""

    value: float
    low: float
    high: float


def summarise(values: Values, *, confidence: float = 0.95, resamples: int = 9999, seed: int = 0) -> Summary:
    """Return the mean of some runs, their spread, and the BCa bootstrap interval of the mean (Efron, 1987).

    Parameters
    ----------
    values
        One score per run.
    confidence
        Probability that the interval covers the true mean.
    resamples, seed
        Number of bootstrap resamples, 100 or more, and the seed they are drawn with.

    Raises
    ------
    SettingsError
        If there is no run, a score is not finite, or a setting is out of range.

    Examples
    --------
    >>> found = summarise([0.91, 0.93, 0.92, 0.95])
    >>> round(found.mean, 4), round(found.sd, 4)
    (0.9275, 0.0171)
    """
    check_between_0_and_1(confidence=confidence)
    if resamples < FEWEST_RESAMPLES:
        raise SettingsError(f"resamples must be {FEWEST_RESAMPLES} or more; found {resamples}")
    array = sample(values)
    if len(array) == 1:
        return Summary(1, float(array[0]), None, None, None)
    if array.min() == array.max():
        mean = float(array[0])
        return Summary(len(array), mean, 0.0, mean, mean)
    low, high = _interval_of_mean(array, confidence, resamples, seed)
    return Summary(len(array), float(array.mean()), float(array.std(ddof=1)), low, high)


def _interval_of_mean(values: Floats, confidence: float, resamples: int, seed: int) -> tuple[float, float]:
    """Return the BCa interval of the mean; plain percentiles where the values are too alike to correct for bias."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = scipy.stats.bootstrap(
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


def bootstrap_macro_gain(
    gains: ArrayLike, classes: ArrayLike, *, confidence: float = 0.95, draws: int = DRAWS, seed: int = 0
) -> Interval:
    """Return the gain in macro accuracy, the mean over classes of mean gains, and its bootstrap interval (Efron, 1979).

    Parameters
    ----------
    gains
        (n_samples,) How much better each sample is answered: 1 or 0 for one network, minus the same for another, or
        minus the share of several networks that are right.
    classes
        (n_samples,) Labels; samples of each class are drawn among themselves.
    confidence, draws, seed
        Level of the interval, number of draws with replacement, and their seed.

    Raises
    ------
    SettingsError
        If there is not one finite gain and one class per sample.

    Examples
    --------
    >>> bootstrap_macro_gain([1, 0, 0, 0, 1, 1], ["cat", "cat", "cat", "cat", "dog", "dog"]).value
    0.625
    """
    values, labels = finite_array(gains, "gains"), numpy.asarray(classes)
    if values.ndim != 1 or values.shape != labels.shape or not len(values):
        raise SettingsError(f"one gain and one class per sample are needed; found {values.shape} and {labels.shape}")
    random = array_generator(seed, "bootstrap")
    by_class = [values[labels == label] for label in numpy.unique(labels)]
    drawn = sum(some[random.integers(0, len(some), size=(draws, len(some)))].mean(axis=1) for some in by_class)
    tail = (1 - confidence) / 2
    low, high = numpy.quantile(drawn / len(by_class), [tail, 1 - tail])
    return Interval(float(numpy.mean([some.mean() for some in by_class])), float(low), float(high))


def cohens_d(first: Values, second: Values) -> float:
    """Return Cohen's d of two independent samples: (x̄ − ȳ) / s, s² = ((n−1)s₁² + (m−1)s₂²) / (n + m − 2).

    Each sample has 2 or more finite values. Where neither varies, d is 0 or ±∞.

    Examples
    --------
    >>> cohens_d([3, 5, 7], [2, 3, 4]) == 2 / math.sqrt(2.5)
    True
    """
    one, two = sample(first, "first", fewest=2), sample(second, "second", fewest=2)
    squares = float(one.var(ddof=0)) * len(one) + float(two.var(ddof=0)) * len(two)
    spread = math.sqrt(squares / (len(one) + len(two) - 2))
    return in_units_of(spread, float(one.mean() - two.mean()), rounding_error(one, two))


def hedges_g(first: Values, second: Values) -> float:
    """Return Hedges' g: Cohen's d without its bias, d · Γ(f/2) / (√(f/2) Γ((f−1)/2)), f = n + m − 2.

    Examples
    --------
    >>> round(hedges_g([3, 5, 7], [2, 3, 4]), 4)
    1.0093
    """
    half, gammaln = (len(first) + len(second) - 2) / 2, scipy.special.gammaln
    return cohens_d(first, second) * math.exp(gammaln(half) - gammaln(half - 0.5)) / math.sqrt(half)


def paired_d(first: Values, second: Values) -> float:
    """Return d of paired samples (d_z): the mean of the differences over their standard deviation.

    Examples
    --------
    >>> paired_d([2, 4, 6], [1, 2, 3])
    2.0
    """
    one, two = pairs(first, second, fewest=2)
    differences = one - two
    return in_units_of(float(differences.std(ddof=1)), float(differences.mean()), rounding_error(one, two))


def cliffs_delta(first: Values, second: Values) -> float:
    """Return Cliff's δ = P(X > Y) − P(X < Y) over all pairs of a value of each sample.

    Examples
    --------
    >>> cliffs_delta([2, 3], [1, 2])
    0.75
    """
    one, two = sample(first, "first"), sample(second, "second")
    n, m = len(one), len(two)
    wins = int(pooled_ranks(one, two)[:n].sum()) - n * (n + 1)  # 2U, a tie counts ½
    return wins / (n * m) - 1


def rank_biserial(first: Values, second: Values) -> float:
    """Return the matched-pairs rank-biserial correlation (W⁺ − W⁻) / (W⁺ + W⁻); equal pairs are left out.

    Examples
    --------
    >>> rank_biserial([1, -2, 3, 5, 3], [0, 0, 0, 5, 0])
    0.6
    """
    ranks, positive = signed_ranks(*pairs(first, second))
    total = int(ranks.sum())
    return (2 * int(ranks[positive].sum()) - total) / total if total else 0.0


def in_units_of(spread: float, difference: float, tolerance: float) -> float:
    """Return difference / spread; without any spread that is 0 or ±∞, where rounding counts for nothing."""
    if spread > tolerance:
        return difference / spread
    return 0.0 if abs(difference) <= tolerance else math.copysign(math.inf, difference)
