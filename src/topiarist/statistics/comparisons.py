"""Tests between samples of runs: Wilcoxon's two, exact with ties; the corrected t; Friedman's of one or two factors."""

import math
from dataclasses import dataclass, replace

import numpy
import scipy
from numpy.typing import ArrayLike

from topiarist.errors import SettingsError
from topiarist.statistics.ranks import (
    pooled_ranks,
    rank_sum_p,
    reach_note,
    signed_rank_p,
    signed_ranks,
    smallest_p_rank_sum,
    smallest_p_signed_rank,
)
from topiarist.statistics.samples import (
    Alternative,
    Floats,
    Values,
    check_alternative,
    check_not_negative,
    finite_array,
    pairs,
    rounding_error,
    sample,
)
from topiarist.statistics.summaries import cliffs_delta, in_units_of, paired_d, rank_biserial


@dataclass(frozen=True)
class StatisticalResult:
    """A test's name, statistic and p, the size of the effect, and what a reader must know to believe it."""

    test: str
    statistic: float
    p: float
    effect: float | None = None
    effect_name: str | None = None
    notes: tuple[str, ...] = ()


def signed_rank(
    first: Values, second: Values, *, alternative: Alternative = "two-sided", alpha: float = 0.05, comparisons: int = 1
) -> StatisticalResult:
    """Compare paired runs by Wilcoxon's signed-rank test (1945), exact also with ties, for up to 50 pairs.

    Parameters
    ----------
    first, second
        Scores of equal length; values at the same place belong together. Pairs that are equal are left out.
    alternative
        "greater" if `first` is expected to be the greater. Two-sided p is twice the smaller tail.
    alpha, comparisons
        The level to reach and the number of tests made together; they only serve the note on what the runs can reach.

    Returns
    -------
    StatisticalResult
        The statistic is W⁺, the sum of the ranks of |first − second| where first is greater.

    Raises
    ------
    SettingsError
        If a sample is empty, not flat or not finite, or if the lengths differ.

    Examples
    --------
    >>> signed_rank([2, 3, 4, 5, 6, 7], [1, 1, 1, 1, 1, 1]).p
    0.03125
    """
    check_alternative(alternative)
    one, two = pairs(first, second)
    ranks, positive = signed_ranks(one, two)
    n, p, notes = len(ranks), 1.0, ["all pairs are equal: there is nothing to test"]
    if n:
        p, exact = signed_rank_p(ranks, positive, alternative)
        equal = len(one) - n
        notes = [f"{equal} of {len(one)} pairs are equal and left out"] if equal else []
        runs = ("1 pair" if n == 1 else f"{n} pairs") + (" with a difference" if equal else "")
        notes += _limits(smallest_p_signed_rank(n, alternative), alpha, comparisons, runs=runs, exact=exact)
    statistic, effect = int(ranks[positive].sum()) / 2, rank_biserial(one, two)
    return StatisticalResult("Wilcoxon signed-rank", statistic, p, effect, "rank-biserial correlation", tuple(notes))


def rank_sum(
    first: Values, second: Values, *, alternative: Alternative = "two-sided", alpha: float = 0.05, comparisons: int = 1
) -> StatisticalResult:
    """Compare independent runs by the Wilcoxon–Mann–Whitney test, exact also with ties, for up to about 70 + 70 runs.

    Parameters and errors are those of `signed_rank`, but the numbers of runs may differ. The statistic is W, the sum of
    the ranks of `first`; Mann and Whitney's U is W − n(n+1)/2.

    Examples
    --------
    >>> rank_sum([3, 4, 5], [1, 2, 2]).p
    0.1
    """
    check_alternative(alternative)
    one, two = sample(first, "first"), sample(second, "second")
    n, m = len(one), len(two)
    ranks = pooled_ranks(one, two)
    alike = bool((ranks == ranks[0]).all())
    p, exact = (1.0, True) if alike else rank_sum_p(ranks, n, alternative)
    notes = ["all runs are equal: there is nothing to test"] if alike else []
    smallest, runs = smallest_p_rank_sum(n, m, alternative), f"{n} and {m} runs"
    notes += _limits(smallest, alpha, comparisons, runs=runs, exact=exact)
    statistic, effect = int(ranks[:n].sum()) / 2, cliffs_delta(one, two)
    return StatisticalResult("Wilcoxon rank-sum", statistic, p, effect, "Cliff's delta", tuple(notes))


def _limits(smallest: float, alpha: float, comparisons: int, *, runs: str, exact: bool) -> list[str]:
    """Return notes on what so many runs cannot show."""
    reach = reach_note(smallest, alpha, comparisons, runs=runs)
    approximate = None if exact else f"p is a normal approximation: {runs} are too many to count"
    return [note for note in (reach, approximate) if note is not None]


def corrected_t(
    first: Values, second: Values, *, test_to_train: float, alternative: Alternative = "two-sided", margin: float = 0.0
) -> StatisticalResult:
    """Compare two models over the same resamplings by the corrected t-test of Nadeau and Bengio (2003).

    t = (d̄ + margin) / √((1/n + test_to_train) s²) with n − 1 degrees of freedom: training sets that overlap make the
    differences d correlated, which a plain t-test takes for evidence. The effect is `paired_d`.

    Parameters
    ----------
    first, second, alternative
        As for `signed_rank`; values at the same place are of the same resampling.
    test_to_train
        Size of a test set over that of its training set, 1/(k−1) in k folds; 0 makes it the paired t-test.
    margin
        Added to every difference.

    Raises
    ------
    SettingsError
        If the samples are no pairs of 2 or more finite numbers, or a setting is out of range.

    Examples
    --------
    >>> round(corrected_t([2, 4, 6, 8], [1, 2, 3, 4], test_to_train=1 / 4).p, 4)
    0.0714
    """
    check_alternative(alternative)
    check_not_negative(test_to_train=test_to_train)
    if not math.isfinite(margin):
        raise SettingsError(f"margin must be finite; found {margin}")
    one, two = pairs(first, second, fewest=2)
    differences = one - two
    tolerance = rounding_error(one, two, numpy.array([margin]))
    spread = float(differences.std(ddof=1))
    scaled = in_units_of(spread, float(differences.mean()) + margin, tolerance)
    statistic = scaled / math.sqrt(1 / len(one) + test_to_train)
    extreme = {"greater": statistic, "less": -statistic, "two-sided": abs(statistic)}[alternative]
    tail = float(scipy.stats.t.sf(extreme, len(one) - 1))
    p = min(1.0, 2 * tail) if alternative == "two-sided" else tail
    alike = spread <= tolerance
    return StatisticalResult(
        "corrected resampled t" if test_to_train else "paired t",
        statistic,
        1.0 if alike and statistic == 0 else p,
        paired_d(one, two),
        "d of the differences",
        ("the differences do not vary, and p assumes that they never do",) if alike else (),
    )


def friedman(values: ArrayLike) -> StatisticalResult:
    """Compare treatments over blocks by Friedman's test (1937), with ties and replicates (Mack and Skillings, 1980).

    All k·r values of a block are ranked together; with R_j the sum of the ranks of treatment j and SS_b the sum of
    squared deviations of the ranks in block b, Q = Σ (R_j − R̄)² / (r/(kr − 1) · Σ SS_b) is about chi-squared, k − 1 df.
    scipy's `friedmanchisquare` is the same without replicates; then the effect is Kendall's W = Q / (n_blocks (k − 1)).

    Parameters
    ----------
    values
        (n_blocks, n_treatments) or (n_blocks, n_treatments, n_replicates).

    Raises
    ------
    SettingsError
        If the values have another shape, are not finite, or are of fewer than 2 treatments.

    Examples
    --------
    >>> round(friedman([[1, 2, 3], [1, 3, 2], [1, 2, 3], [1, 2, 3]]).p, 4)
    0.0388
    """
    array = _blocks(values)
    n_blocks, n_treatments, n_replicates = array.shape
    statistic, p = _chi_squared(array)
    in_order = numpy.arange(n_treatments * n_replicates, dtype=numpy.float64).reshape(n_treatments, n_replicates)
    _, smallest = _chi_squared(numpy.broadcast_to(in_order, array.shape))  # the same order everywhere, no overlap
    runs = f"{n_blocks} block{'s' * (n_blocks > 1)} of {n_treatments} by {n_replicates} runs"
    alike = bool((numpy.ptp(array, axis=(1, 2)) == 0).all())
    nothing = "the values of each block are all equal: there is nothing to test" if alike else None
    return StatisticalResult(
        "Friedman",
        statistic,
        p,
        statistic / (n_blocks * (n_treatments - 1)) if n_replicates == 1 else None,
        "Kendall's W" if n_replicates == 1 else None,
        tuple(note for note in (nothing, reach_note(smallest, 0.05, runs=runs)) if note is not None),
    )


def friedman_two_factors(values: ArrayLike) -> tuple[StatisticalResult, StatisticalResult]:
    """Compare the levels of each of two factors (n_first, n_second, n_runs), with the other factor's levels as blocks.

    Examples
    --------
    >>> [round(found.p, 3) for found in friedman_two_factors([[[1, 2], [4, 3]], [[5, 6], [8, 7]]])]
    [0.028, 0.028]
    """
    array = _blocks(values)
    first, second = friedman(array.swapaxes(0, 1)), friedman(array)
    return replace(first, test="Friedman, first factor"), replace(second, test="Friedman, second factor")


def _chi_squared(array: Floats) -> tuple[float, float]:
    """Return Q, 0 where all values of each block are tied, and its p."""
    n_blocks, n_treatments, n_replicates = array.shape
    ranks = scipy.stats.rankdata(array.reshape(n_blocks, -1), axis=1)
    squares = float(((ranks - ranks.mean(axis=1, keepdims=True)) ** 2).sum())
    sums = ranks.reshape(array.shape).sum(axis=(0, 2))
    between = float(((sums - sums.mean()) ** 2).sum())
    statistic = between * (n_treatments * n_replicates - 1) / (n_replicates * squares) if squares else 0.0
    return statistic, float(scipy.stats.chi2.sf(statistic, n_treatments - 1))


def _blocks(values: ArrayLike) -> Floats:
    """Return values (n_blocks, n_treatments, n_replicates) with something to compare."""
    array = finite_array(values, "values")
    array = array[..., None] if array.ndim == 2 else array
    if array.ndim != 3 or min(array.shape) < 1:
        raise SettingsError(f"values must be blocks by treatments, or by replicates too; found shape {array.shape}")
    if array.shape[1] < 2:
        raise SettingsError(f"values must be of 2 or more treatments; found shape {array.shape}")
    return array
