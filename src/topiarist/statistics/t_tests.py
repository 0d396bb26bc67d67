"""The resampled t-test, corrected for training sets that overlap (Nadeau and Bengio, 2003)."""

import math

import numpy
from scipy.stats import t

from topiarist.errors import SettingsError
from topiarist.statistics.effects import in_units_of, paired_d, standard_deviation
from topiarist.statistics.finding import Finding
from topiarist.statistics.samples import (
    Alternative,
    Values,
    check_alternative,
    check_not_negative,
    pairs,
    rounding_error,
)


def corrected_t(
    first: Values,
    second: Values,
    *,
    test_to_train: float,
    alternative: Alternative = "two-sided",
    margin: float = 0.0,
) -> Finding:
    """Compare two models over the same resamplings: t = (d̄ + margin) / √((1/n + test_to_train) s²), n − 1 df.

    `test_to_train` is the size of a test set over that of its training set, 1/(k−1) in k folds; 0 is the paired t-test.
    """
    check_alternative(alternative)
    check_not_negative("test_to_train", test_to_train)
    if not math.isfinite(margin):
        raise SettingsError(f"margin must be finite; found {margin}")
    one, two = pairs(first, second, fewest=2)
    differences = one - two
    tolerance = rounding_error(one, two, numpy.array([margin]))
    spread = standard_deviation(differences)
    scaled = in_units_of(spread, float(differences.mean()) + margin, tolerance)
    statistic = scaled / math.sqrt(1 / len(one) + test_to_train)
    alike = spread <= tolerance
    return Finding(
        "corrected resampled t" if test_to_train else "paired t",
        statistic,
        1.0 if alike and statistic == 0 else p_of(statistic, len(one) - 1, alternative),
        paired_d(one, two),
        "d of the differences",
        ("the differences do not vary, and p takes that for granted",) if alike else (),
    )


def p_of(statistic: float, freedom: int, alternative: Alternative) -> float:
    """Give p of Student's t; of an infinite one it is 0 or 1."""
    if alternative == "two-sided":
        return min(1.0, 2 * float(t.sf(abs(statistic), freedom)))
    return float(t.sf(statistic if alternative == "greater" else -statistic, freedom))
