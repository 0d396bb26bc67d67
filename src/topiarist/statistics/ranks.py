"""Ranks with ties, and p of rank sums from their exact permutation distribution, given the ties that were found.

Midranks are doubled to whole numbers, so that sums of ranks can be counted by dynamic programming (Streitberg and
Röhmel, 1986): each rank is either in the sum or not, and every choice is equally likely under the hypothesis. For the
ranks 1, 2, 3 with signs, the eight sums of the positive ranks are 0, 1, 2, 3, 3, 4, 5, 6: counts 1 1 1 2 1 1 1.
scipy counts exactly only without ties, and approximates otherwise; runs of networks, whose scores are shares of few
samples, are full of ties. Samples too large to count get scipy's normal approximation.
"""

import math

import numpy
import scipy
from numpy.typing import NDArray

from topiarist.statistics.samples import Alternative, Floats, check_alternative, rounding_error

Integers = NDArray[numpy.int64]

MOST_PAIRS = 50  # the counts, at most 2⁵⁰, are exact as floats
# Additions of a count: about 70 runs in each sample. At 40 and 50 runs the approximation is within 5 % of the exact p.
MOST_WORK = 2 * 10**8


def doubled_midranks(values: Floats, tolerance: float = 0.0) -> Integers:
    """Return twice the midranks (n,); neighbours at most `tolerance` apart are tied.

    Differences that agree but for rounding are ties: 0.92 − 0.91 and 0.82 − 0.81 get the same rank.
    """
    order = numpy.argsort(values, kind="stable")
    levels = numpy.zeros(len(values), dtype=numpy.int64)
    levels[order[1:]] = numpy.cumsum(numpy.diff(values[order]) > tolerance)
    return numpy.rint(2 * scipy.stats.rankdata(levels)).astype(numpy.int64)


def signed_ranks(first: Floats, second: Floats) -> tuple[Integers, NDArray[numpy.bool_]]:
    """Return, of the pairs that differ, twice the midranks of |first − second| and whether first is the greater."""
    tolerance = rounding_error(first, second)
    differences = first - second
    differences = differences[numpy.abs(differences) > tolerance]
    return doubled_midranks(numpy.abs(differences), tolerance), differences > 0


def pooled_ranks(first: Floats, second: Floats) -> Integers:
    """Return twice the midranks (n + m,) of both samples together, the first sample's first."""
    return doubled_midranks(numpy.concatenate([first, second]), rounding_error(first, second))


def signed_rank_p(ranks: Integers, positive: NDArray[numpy.bool_], alternative: Alternative) -> tuple[float, bool]:
    """Return p of the sum of the positive ranks, and whether it is exact."""
    if len(ranks) > MOST_PAIRS:
        signed = numpy.where(positive, ranks, -ranks)
        found = scipy.stats.wilcoxon(signed, alternative=alternative, method="approx", correction=True)
        return float(found.pvalue), False
    counts = numpy.zeros(int(ranks.sum()) + 1)  # of the 2ⁿ choices of signs, by the sum of the positive ranks
    counts[0] = 1
    for rank in ranks.tolist():
        counts[rank:] += counts[:-rank].copy()
    return _tail(counts, int(ranks[positive].sum()), alternative), True


def rank_sum_p(ranks: Integers, size: int, alternative: Alternative) -> tuple[float, bool]:
    """Return p of the sum of the first `size` ranks, and whether it is exact; the ranks are not all equal."""
    total, smaller = len(ranks), min(size, len(ranks) - size)
    if total * smaller * total * (total + 1) > MOST_WORK:
        found = scipy.stats.mannwhitneyu(ranks[:size], ranks[size:], alternative=alternative, method="asymptotic")
        return float(found.pvalue), False
    return _tail(_rank_sum_counts(ranks, size), int(ranks[:size].sum()), alternative), True


def _rank_sum_counts(ranks: Integers, size: int) -> Floats:
    """Return how many of the choices of `size` ranks sum to 0, 1, …, all of them."""
    if 2 * size > len(ranks):
        return _rank_sum_counts(ranks, len(ranks) - size)[::-1]
    counts = numpy.zeros((size + 1, int(ranks.sum()) + 1))
    counts[0, 0] = 1
    reach = 1
    for rank in ranks.tolist():
        counts[1:, rank : rank + reach] += counts[:-1, :reach].copy()
        reach += rank
    row: Floats = counts[size]
    return row


def _tail(counts: Floats, statistic: int, alternative: Alternative) -> float:
    """Return P(T ≥ t), P(T ≤ t), or twice the smaller of the two, at most 1."""
    greater, less = float(counts[statistic:].sum()), float(counts[: statistic + 1].sum())
    extreme = {"greater": greater, "less": less, "two-sided": 2 * min(greater, less)}[alternative]
    return min(1.0, extreme / float(counts.sum()))


def smallest_p_signed_rank(n: int, alternative: Alternative = "two-sided") -> float:
    """Return the smallest p of the signed-rank test with n pairs: 2⁻ⁿ, twice that if two-sided."""
    return _smallest_p(2**n, alternative)


def smallest_p_rank_sum(n: int, m: int, alternative: Alternative = "two-sided") -> float:
    """Return the smallest p of the rank-sum test with n and m runs: 1 / C(n + m, n), twice that if two-sided."""
    return _smallest_p(math.comb(n + m, n), alternative)


def _smallest_p(arrangements: int, alternative: Alternative) -> float:
    check_alternative(alternative)
    return min(1.0, (2 if alternative == "two-sided" else 1) / arrangements)


def reach_note(smallest: float, alpha: float, comparisons: int = 1, *, runs: str = "so few runs") -> str | None:
    """Return a note that so many runs cannot reach alpha, however large the difference; None where they can.

    With several comparisons, Holm's correction multiplies the smallest p by their number.
    """
    if smallest * comparisons <= alpha:
        return None
    among = f" in {comparisons} comparisons" if comparisons > 1 else ""
    return f"{runs} cannot give p below {smallest:.3g}: more runs are needed to reach {alpha:g}{among}"
