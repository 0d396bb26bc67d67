"""Wilcoxon's tests (1945), exact with ties: signed ranks of paired runs, rank sums of independent ones.

The alternative is about first − second. Two-sided p is twice the smaller tail.
"""

from topiarist.statistics.effects import cliffs_delta, rank_biserial
from topiarist.statistics.exact import is_rank_sum_exact, is_signed_rank_exact, rank_sum_p, signed_rank_p
from topiarist.statistics.finding import Finding
from topiarist.statistics.power import reach_note, smallest_p_rank_sum, smallest_p_signed_rank
from topiarist.statistics.ranks import pooled_ranks, signed_ranks
from topiarist.statistics.samples import Alternative, Values, check_alternative, pairs, sample


def signed_rank(
    first: Values,
    second: Values,
    *,
    alternative: Alternative = "two-sided",
    alpha: float = 0.05,
    comparisons: int = 1,
) -> Finding:
    """Compare paired runs; the statistic is W⁺, the sum of the ranks of |first − second| where first is greater.

    Pairs that are equal are left out. `alpha` and `comparisons` only serve the note on what the runs can reach.
    """
    check_alternative(alternative)
    one, two = pairs(first, second)
    ranks, positive = signed_ranks(one, two)
    statistic, n = int(ranks[positive].sum()), len(ranks)
    if n == 0:
        notes: tuple[str | None, ...] = ("all pairs are equal: there is nothing to test",)
    else:
        left_out = f"{len(one) - n} of {len(one)} pairs are equal and left out" if n < len(one) else None
        smallest = smallest_p_signed_rank(n, alternative)
        reach = reach_note(smallest, alpha, comparisons, runs=counted_pairs(n, differing=n < len(one)))
        notes = (left_out, reach, approximation_note(is_signed_rank_exact(n), f"{n} pairs"))
    p = signed_rank_p(ranks, statistic, alternative) if n else 1.0
    effect = rank_biserial(one, two)
    return Finding("Wilcoxon signed-rank", statistic / 2, p, effect, "rank-biserial correlation", given(notes))


def rank_sum(
    first: Values,
    second: Values,
    *,
    alternative: Alternative = "two-sided",
    alpha: float = 0.05,
    comparisons: int = 1,
) -> Finding:
    """Compare independent runs (Wilcoxon–Mann–Whitney); the statistic is W, the sum of the ranks of `first`.

    Mann and Whitney's U is W − n(n+1)/2. `alpha` and `comparisons` only serve the note on what the runs can reach.
    """
    check_alternative(alternative)
    one, two = sample(first, "first"), sample(second, "second")
    n, m = len(one), len(two)
    ranks = pooled_ranks(one, two)
    statistic = int(ranks[:n].sum())
    smallest = smallest_p_rank_sum(n, m, alternative)
    notes = (
        "all runs are equal: there is nothing to test" if (ranks == ranks[0]).all() else None,
        reach_note(smallest, alpha, comparisons, runs=f"{n} and {m} runs"),
        approximation_note(is_rank_sum_exact(n, m), f"{n} and {m} runs"),
    )
    p = rank_sum_p(ranks, n, statistic, alternative)
    return Finding("Wilcoxon rank-sum", statistic / 2, p, cliffs_delta(one, two), "Cliff's delta", given(notes))


def counted_pairs(n: int, *, differing: bool) -> str:
    """Name the pairs that a test rests on."""
    return ("1 pair" if n == 1 else f"{n} pairs") + (" with a difference" if differing else "")


def approximation_note(exact: bool, runs: str) -> str | None:
    """Say that p is not exact."""
    return None if exact else f"p is a normal approximation: {runs} are too many to count"


def given(notes: tuple[str | None, ...]) -> tuple[str, ...]:
    """Give the notes that say something."""
    return tuple(note for note in notes if note is not None)
