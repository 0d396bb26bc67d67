import numpy
import pytest

from topiarist.statistics import rank_sum, signed_rank

# Largest W with P(W⁺ ≤ W) ≤ 0.025, n = 6, 7, …, 50: OEIS A226330, Mitic, Mathematica Journal 6 (1996).
# fmt: off
SIGNED_RANK_TABLE = [
    0, 2, 3, 5, 8, 10, 13, 17, 21, 25, 29, 34, 40, 46, 52, 58, 65, 73, 81, 89, 98, 107, 116, 126, 137, 147, 159, 170,
    182, 195, 208, 221, 235, 249, 264, 279, 294, 310, 327, 343, 361, 378, 396, 415, 434,
]
# fmt: on
# Largest sum of the ranks of the smaller sample that is significant, two-sided, at 0.05 and at 0.01: the common
# textbook table of the rank-sum test, by the sizes of the samples.
RANK_SUM_TABLE = {
    (4, 5): (11, None),
    (4, 6): (12, 10),
    (5, 5): (17, 15),
    (5, 10): (23, 19),
    (6, 7): (27, 24),
    (7, 7): (36, 32),
    (8, 8): (49, 43),
    (9, 9): (62, 56),
    (10, 10): (78, 71),
    (11, 12): (99, 90),
    (12, 12): (115, 105),
}


@pytest.mark.parametrize(("n", "critical"), list(enumerate(SIGNED_RANK_TABLE, start=6)))
def test_the_table_of_signed_ranks(n: int, critical: int) -> None:
    def p_of(total: int) -> float:
        """Take the positive ranks, from the largest down, such that they sum to the total."""
        signs = -numpy.ones(n)
        for rank in range(n, 0, -1):
            if rank <= total:
                signs[rank - 1], total = 1, total - rank
        return signed_rank(signs * numpy.arange(1, n + 1), numpy.zeros(n)).p

    assert p_of(critical) <= 0.05 < p_of(critical + 1)


@pytest.mark.parametrize(("sizes", "critical"), list(RANK_SUM_TABLE.items()))
def test_the_table_of_rank_sums(sizes: tuple[int, int], critical: tuple[int, int | None]) -> None:
    n, m = sizes

    def p_of(total: int) -> float:
        """Raise the ranks 1, …, n, the largest first, until they sum to the total."""
        ranks, left = list(range(1, n + 1)), total - n * (n + 1) // 2
        for place in reversed(range(n)):
            step = min(left, m)
            ranks[place], left = ranks[place] + step, left - step
        return rank_sum(ranks, sorted(set(range(1, n + m + 1)) - set(ranks))).p

    for alpha, largest in zip((0.05, 0.01), critical, strict=True):
        least = n * (n + 1) // 2
        assert largest is None or p_of(largest) <= alpha
        assert p_of(least if largest is None else largest + 1) > alpha


def test_worked_examples() -> None:
    # Hollander and Wolfe (1973), p. 29 and p. 69, as in the examples of R's wilcox.test: V = 40, p = 0.01953 and
    # W = 35, p = 0.1272.
    before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
    after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
    depression = signed_rank(before, after, alternative="greater")
    assert (depression.statistic, depression.p) == (40, 10 / 2**9)
    term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
    permeability = rank_sum(term, [1.15, 0.88, 0.90, 0.74, 1.21], alternative="greater")
    assert (permeability.statistic, round(permeability.p, 4)) == (35 + 55, 0.1272)
    # Blood pressure, with ties: 0.0542 by StatXact, as in the tests of R's exactRankTests.
    control = [80, 94, 85, 90, 90, 90, 108, 94, 78, 105, 88]
    assert round(rank_sum([94, 108, 110, 90], control, alternative="greater").p, 4) == 0.0542
