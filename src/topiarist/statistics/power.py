"""What a number of runs can show: the smallest p there is, the power of a test, and the runs it takes."""

import math

from scipy.stats import nct, t

from topiarist.errors import SettingsError
from topiarist.statistics.samples import Alternative, check_alternative, check_not_negative, check_share

MOST_RUNS = 2**30


def smallest_p_signed_rank(n: int, alternative: Alternative = "two-sided") -> float:
    """Give the smallest p of the signed-rank test with n pairs: 2⁻ⁿ, twice that if two-sided."""
    return smallest_p(2**n, alternative)


def smallest_p_rank_sum(n: int, m: int, alternative: Alternative = "two-sided") -> float:
    """Give the smallest p of the rank-sum test with n and m runs: 1 / C(n + m, n), twice that if two-sided."""
    return smallest_p(math.comb(n + m, n), alternative)


def smallest_p(arrangements: int, alternative: Alternative) -> float:
    """Give p of the most extreme of so many equally likely arrangements."""
    check_alternative(alternative)
    return min(1.0, (2 if alternative == "two-sided" else 1) / arrangements)


def reach_note(smallest: float, alpha: float, comparisons: int = 1, *, runs: str = "so few runs") -> str | None:
    """Say that so many runs cannot reach alpha, be the difference what it may; None where they can.

    With several comparisons, Holm's correction multiplies the smallest p by their number.
    """
    if smallest * comparisons <= alpha:
        return None
    among = f" in {comparisons} comparisons" if comparisons > 1 else ""
    return f"{runs} cannot give p below {smallest:.3g}: more runs are needed to reach {alpha:g}{among}"


def power_of_noninferiority(
    runs: int, *, sd: float, margin: float, alpha: float = 0.05, test_to_train: float = 0.0
) -> float:
    """Give the chance to prove non-inferiority by the (corrected) t-test where the true difference is 0.

    P(T > t(1−α; n−1)), T noncentral t with δ = margin / (sd √(1/n + test_to_train)), sd that of the differences.
    """
    check_design(sd=sd, margin=margin, alpha=alpha, test_to_train=test_to_train)
    if runs < 2:
        raise SettingsError(f"runs must be 2 or more; found {runs}")
    if sd == 0:
        return 1.0 if margin > 0 else 0.0
    shift = margin / (sd * math.sqrt(1 / runs + test_to_train))
    return float(nct.sf(t.isf(alpha, runs - 1), runs - 1, shift))


def runs_needed(
    *, sd: float, margin: float, alpha: float = 0.05, power: float = 0.8, test_to_train: float = 0.0
) -> int | None:
    """Give the fewest runs with which the test has that power; None where no number of runs, up to 2³⁰, suffices.

    As n → ∞ the power tends to Φ(margin / (sd √test_to_train) − z(1−α)): runs that share their data say only so much.
    """
    check_design(sd=sd, margin=margin, alpha=alpha, test_to_train=test_to_train)
    check_share("power", power)

    def enough(runs: int) -> bool:
        return power_of_noninferiority(runs, sd=sd, margin=margin, alpha=alpha, test_to_train=test_to_train) >= power

    above = 2
    while not enough(above):
        above *= 2
        if above > MOST_RUNS:
            return None
    below = above // 2
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if enough(middle) else (middle, above)
    return above


def check_design(*, sd: float, margin: float, alpha: float, test_to_train: float) -> None:
    """Refuse numbers that describe no test."""
    for name, value in {"sd": sd, "margin": margin, "test_to_train": test_to_train}.items():
        check_not_negative(name, value)
    check_share("alpha", alpha)
