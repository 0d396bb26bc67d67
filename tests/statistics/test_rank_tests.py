from collections.abc import Sequence
from itertools import combinations, product
from typing import get_args

import numpy
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, permutation_test, rankdata, wilcoxon

from topiarist.errors import SettingsError
from topiarist.randomness import array_generator
from topiarist.statistics import Alternative, rank_sum, signed_rank

ALTERNATIVES: tuple[Alternative, ...] = get_args(Alternative)
FLIPPED: dict[Alternative, Alternative] = {"two-sided": "two-sided", "greater": "less", "less": "greater"}
FEW = st.lists(st.integers(-4, 4), min_size=1, max_size=6)
DISTINCT = st.lists(st.integers(-500, 500), min_size=2, max_size=12, unique_by=abs)


def tails(sums: Sequence[float], found: float, alternative: Alternative) -> float:
    """P by counting all arrangements."""
    greater = sum(value >= found - 1e-9 for value in sums) / len(sums)
    less = sum(value <= found + 1e-9 for value in sums) / len(sums)
    return {"greater": greater, "less": less, "two-sided": min(1, 2 * min(greater, less))}[alternative]


@pytest.mark.slow
@given(FEW, st.sampled_from(ALTERNATIVES))
def test_signed_ranks_with_ties_and_zeros_are_those_of_all_signs(differences: list[int], how: Alternative) -> None:
    kept = numpy.array([value for value in differences if value != 0])
    assume(len(kept))
    ranks = rankdata(numpy.abs(kept))
    found = float(ranks[kept > 0].sum())
    sums = [float((ranks * signs).sum()) for signs in product([0, 1], repeat=len(kept))]
    finding = signed_rank(differences, [0] * len(differences), alternative=how)
    assert finding.statistic == found
    assert finding.p == pytest.approx(tails(sums, found, how), abs=1e-14)


@pytest.mark.slow
@given(FEW, FEW, st.sampled_from(ALTERNATIVES))
def test_rank_sums_with_ties_are_those_of_all_allotments(first: list[int], second: list[int], how: Alternative) -> None:
    ranks = rankdata(first + second)
    found = float(ranks[: len(first)].sum())
    sums = [sum(chosen) for chosen in combinations(ranks.tolist(), len(first))]
    finding = rank_sum(first, second, alternative=how)
    assert finding.statistic == found
    assert finding.p == pytest.approx(tails(sums, found, how), abs=1e-14)


@pytest.mark.slow
@given(DISTINCT.filter(lambda values: 0 not in values), st.sampled_from(ALTERNATIVES))
def test_signed_ranks_without_ties_are_scipys(differences: list[int], how: Alternative) -> None:
    reference = wilcoxon(differences, alternative=how, method="exact")
    assert signed_rank(differences, [0] * len(differences), alternative=how).p == pytest.approx(reference.pvalue)


@pytest.mark.slow
@given(DISTINCT, st.integers(1, 11), st.sampled_from(ALTERNATIVES))
def test_rank_sums_without_ties_are_scipys(values: list[int], size: int, how: Alternative) -> None:
    first, second = values[: min(size, len(values) - 1)], values[min(size, len(values) - 1) :]
    reference = mannwhitneyu(first, second, alternative=how, method="exact")
    finding = rank_sum(first, second, alternative=how)
    assert finding.p == pytest.approx(reference.pvalue)
    assert finding.statistic - len(first) * (len(first) + 1) / 2 == reference.statistic


@pytest.mark.parametrize("how", ALTERNATIVES)
def test_ties_are_those_of_scipys_permutation_test(how: Alternative) -> None:
    first, second = [3, 4, 5, 5, 7, 8], [1, 2, 3, 3, 5]

    def sum_of_ranks(one: list[float], two: list[float]) -> float:
        return float(rankdata(numpy.concatenate([one, two]))[: len(one)].sum())

    reference = permutation_test((first, second), sum_of_ranks, n_resamples=10**6, alternative=how)
    assert rank_sum(first, second, alternative=how).p == pytest.approx(reference.pvalue)


def test_large_samples_are_scipys_approximation_with_ties() -> None:
    generator = array_generator(0, "large samples")
    first, second = generator.integers(0, 30, 80), generator.integers(2, 33, 80)
    for how in ALTERNATIVES:
        ours = signed_rank(first, second, alternative=how)
        reference = wilcoxon(first, second, alternative=how, method="approx", correction=True)
        assert ours.p == pytest.approx(reference.pvalue)
        assert "normal approximation" in ours.notes[-1]
        theirs = mannwhitneyu(first, second, alternative=how, method="asymptotic")
        assert rank_sum(first, second, alternative=how).p == pytest.approx(theirs.pvalue)
    assert rank_sum([1.0] * 100, [1.0] * 100).p == 1


@pytest.mark.parametrize("n", [40, 50])
def test_exact_and_approximate_p_nearly_agree(n: int) -> None:
    generator = array_generator(n, "agreement")
    first, second = generator.integers(0, 40, n), generator.integers(3, 43, n)
    exact, near = rank_sum(first, second), mannwhitneyu(first, second, method="asymptotic")
    assert exact.p == pytest.approx(near.pvalue, rel=0.05)
    assert exact.notes == ()
    paired, near_paired = signed_rank(first, second), wilcoxon(first, second, method="approx", correction=True)
    assert paired.p == pytest.approx(near_paired.pvalue, rel=0.05)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=20), st.integers(-9, 9))
def test_order_and_shift(rows: list[tuple[int, int]], shift: int) -> None:
    first, second = (numpy.array(column) for column in zip(*rows, strict=True))
    for test in (signed_rank, rank_sum):
        for how in ALTERNATIVES:
            found = test(first, second, alternative=how)
            swapped = test(second, first, alternative=FLIPPED[how])
            moved = test(first + shift, second + shift, alternative=how)
            assert found.p == pytest.approx(swapped.p, abs=1e-14)
            assert found.effect == pytest.approx(-(swapped.effect or 0), abs=1e-14)
            assert found == moved
            assert 0 < found.p <= 1


def test_rounding_does_not_break_ties() -> None:
    # As numbers, 0.92 − 0.91 ≠ 0.82 − 0.81 and 0.3 − 0.1 ≠ 0.2.
    assert 0.92 - 0.91 != 0.82 - 0.81
    cents = signed_rank([0.92, 0.81, 0.55], [0.91, 0.82, 0.5])
    assert (cents.statistic, cents.p) == (4.5, 1 / 2 + 1 / 4)
    lost = signed_rank(numpy.array([0.3, 0.4]) - 0.1, [0.2, 0.3])
    assert lost.notes == ("all pairs are equal: there is nothing to test",)
    assert rank_sum(numpy.array([0.3]) - 0.1, [0.2]).effect == 0


def test_notes() -> None:
    few = signed_rank([2, 3, 4, 5, 6], [1, 1, 1, 1, 1])
    assert few.p == 0.0625
    assert few.notes == ("5 pairs cannot give p below 0.0625: more runs are needed to reach 0.05",)
    assert signed_rank([2, 3, 4, 5, 6], [1] * 5, alternative="greater").notes == ()
    assert signed_rank([2, 3, 4, 5, 6, 7], [1] * 6).notes == ()
    equal = signed_rank([1, 2, 3], [1, 2, 3])
    assert (equal.p, equal.effect, equal.notes) == (1, 0, ("all pairs are equal: there is nothing to test",))
    some = signed_rank([1, 2, 3, 4, 5, 6], [1, 0, 0, 0, 0, 0])
    assert some.notes[0] == "1 of 6 pairs are equal and left out"
    assert some.notes[1].startswith("5 pairs with a difference cannot give p below 0.0625")
    assert rank_sum([1, 2, 3], [4, 5, 6]).notes == (
        "3 and 3 runs cannot give p below 0.1: more runs are needed to reach 0.05",
    )
    assert rank_sum([1, 2, 3], [4, 5, 6], alternative="less").notes == ()
    assert rank_sum([2] * 5, [2] * 5).notes == ("all runs are equal: there is nothing to test",)


@pytest.mark.parametrize(
    ("first", "second", "match"),
    [
        ([1, 2], [1], "equal length; found 2 and 1"),
        ([1, float("nan")], [1, 2], "first must be finite numbers; found nan"),
        ([1, 2], [1, float("inf")], "second must be finite numbers; found inf"),
        ([], [], "found shape"),
        ([[1, 2]], [[1, 2]], "found shape"),
        (["a", "b"], [1, 2], "first must be numbers"),
    ],
)
def test_bad_input_is_refused(first: list[float], second: list[float], match: str) -> None:
    with pytest.raises(SettingsError, match=match):
        signed_rank(first, second)
    if "equal length" not in match:
        with pytest.raises(SettingsError, match=match):
            rank_sum(first, second)


def test_an_unknown_alternative_is_refused() -> None:
    for test in (signed_rank, rank_sum):
        with pytest.raises(SettingsError, match="'more'"):
            test([1, 2], [3, 4], alternative="more")  # type: ignore[arg-type]
