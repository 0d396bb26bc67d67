"""Exact permutation distributions of rank statistics, given the ties that were found.

Midranks are doubled to whole numbers, so sums of ranks can be counted by dynamic programming (Streitberg and Röhmel,
1986): each rank is either in the sum or not, and every choice is equally likely under the hypothesis. Samples too large
for that get the normal approximation with the variance of the tied ranks and a continuity correction of ½.
"""

import math

import numpy
from scipy.stats import norm

from topiarist.statistics.ranks import Whole
from topiarist.statistics.samples import Alternative, Floats

MOST_PAIRS = 50  # the counts, at most 2⁵⁰, are exact as floats
MOST_WORK = 2 * 10**8  # about 70 runs in each sample


def signed_rank_counts(ranks: Whole) -> Floats:
    """Give how many of the 2ⁿ choices of signs make the positive ranks sum to 0, 1, …, all of them."""
    counts = numpy.zeros(int(ranks.sum()) + 1)
    counts[0] = 1
    for rank in ranks.tolist():
        counts[rank:] += counts[:-rank].copy()
    return counts


def rank_sum_counts(ranks: Whole, size: int) -> Floats:
    """Give how many of the choices of `size` ranks sum to 0, 1, …, all of them."""
    if 2 * size > len(ranks):
        return rank_sum_counts(ranks, len(ranks) - size)[::-1]
    counts = numpy.zeros((size + 1, int(ranks.sum()) + 1))
    counts[0, 0] = 1
    reach = 1
    for rank in ranks.tolist():
        counts[1:, rank : rank + reach] += counts[:-1, :reach].copy()
        reach += rank
    row: Floats = counts[size]
    return row


def tail_p(counts: Floats, statistic: int, alternative: Alternative) -> float:
    """Give P(T ≥ t), P(T ≤ t), or twice the smaller of the two, at most 1."""
    greater, less = float(counts[statistic:].sum()), float(counts[: statistic + 1].sum())
    extreme = {"greater": greater, "less": less, "two-sided": 2 * min(greater, less)}[alternative]
    return min(1.0, extreme / float(counts.sum()))


def normal_p(distance: float, deviation: float, correction: float, alternative: Alternative) -> float:
    """Give p of a statistic so far above its mean, by the normal distribution with continuity correction."""
    if deviation == 0:
        return 1.0
    if alternative == "two-sided":
        return min(1.0, 2 * float(norm.sf(max(abs(distance) - correction, 0.0) / deviation)))
    above = distance if alternative == "greater" else -distance
    return float(norm.sf((above - correction) / deviation))


def is_signed_rank_exact(n_pairs: int) -> bool:
    """Say whether the exact distribution is used for so many pairs."""
    return n_pairs <= MOST_PAIRS


def is_rank_sum_exact(n: int, m: int) -> bool:
    """Say whether the exact distribution is used for samples so large."""
    together = n + m
    return together * min(n, m) * together * (together + 1) <= MOST_WORK


def signed_rank_p(ranks: Whole, statistic: int, alternative: Alternative) -> float:
    """Give p of a sum of positive ranks; ranks and statistic are doubled."""
    if is_signed_rank_exact(len(ranks)):
        return tail_p(signed_rank_counts(ranks), statistic, alternative)
    deviation = math.sqrt(float((ranks.astype(numpy.float64) ** 2).sum()) / 4)
    return normal_p(statistic - ranks.sum() / 2, deviation, 1.0, alternative)


def rank_sum_p(ranks: Whole, size: int, statistic: int, alternative: Alternative) -> float:
    """Give p of a sum of `size` of the ranks; ranks and statistic are doubled."""
    n, m = size, len(ranks) - size
    if is_rank_sum_exact(n, m):
        return tail_p(rank_sum_counts(ranks, size), statistic, alternative)
    mean = float(ranks.mean())
    variance = n * m / (n + m) * float(((ranks - mean) ** 2).sum()) / (n + m - 1)
    return normal_p(statistic - n * mean, math.sqrt(variance), 1.0, alternative)
