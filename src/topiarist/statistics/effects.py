"""How large a difference is, in units of its spread or as a share of the comparisons won."""

import math

import numpy
from scipy.special import gammaln

from topiarist.statistics.ranks import pooled_ranks, signed_ranks
from topiarist.statistics.samples import Floats, Values, pairs, rounding_error, sample


def cohens_d(first: Values, second: Values) -> float:
    """Give Cohen's d of two samples: (x̄ − ȳ) / s, s² = ((n−1)s₁² + (m−1)s₂²) / (n + m − 2)."""
    one, two = sample(first, "first", fewest=2), sample(second, "second", fewest=2)
    squares = float(one.var(ddof=0)) * len(one) + float(two.var(ddof=0)) * len(two)
    spread = math.sqrt(squares / (len(one) + len(two) - 2))
    return in_units_of(spread, float(one.mean() - two.mean()), rounding_error(one, two))


def hedges_g(first: Values, second: Values) -> float:
    """Give Hedges' g: Cohen's d without its bias, d · Γ(f/2) / (√(f/2) Γ((f−1)/2)), f = n + m − 2."""
    half = (len(first) + len(second) - 2) / 2
    return cohens_d(first, second) * math.exp(gammaln(half) - gammaln(half - 0.5)) / math.sqrt(half)


def paired_d(first: Values, second: Values) -> float:
    """Give d of paired samples (d_z): mean of the differences / their standard deviation."""
    one, two = pairs(first, second, fewest=2)
    differences = one - two
    return in_units_of(standard_deviation(differences), float(differences.mean()), rounding_error(one, two))


def cliffs_delta(first: Values, second: Values) -> float:
    """Give Cliff's δ = P(X > Y) − P(X < Y) over all pairs of a value of each sample."""
    one, two = sample(first, "first"), sample(second, "second")
    n, m = len(one), len(two)
    wins = int(pooled_ranks(one, two)[:n].sum()) - n * (n + 1)  # 2U, a tie counts ½
    return wins / (n * m) - 1


def rank_biserial(first: Values, second: Values) -> float:
    """Give the matched-pairs rank-biserial correlation (W⁺ − W⁻) / (W⁺ + W⁻); equal pairs are left out."""
    ranks, positive = signed_ranks(*pairs(first, second))
    total = int(ranks.sum())
    return (2 * int(ranks[positive].sum()) - total) / total if total else 0.0


def standard_deviation(values: Floats) -> float:
    """Give the standard deviation of a sample, with n − 1."""
    return float(numpy.std(values, ddof=1))


def in_units_of(spread: float, difference: float, tolerance: float) -> float:
    """Give difference / spread; without any spread that is 0 or ±∞, where rounding counts for nothing."""
    if spread > tolerance:
        return difference / spread
    return 0.0 if abs(difference) <= tolerance else math.copysign(math.inf, difference)
