import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import chi2, friedmanchisquare, kruskal, rankdata

from topiarist.errors import SettingsError
from topiarist.randomness import array_generator
from topiarist.statistics import friedman, friedman_two_factors
from topiarist.statistics.samples import Floats

# Niacin in bran flakes (amounts added 0, 4, 8; laboratories; replicates): Campbell and Pelletier (1962), as example 7.9
# of Hollander, Wolfe and Chicken and in R's NSM3.
NIACIN = [
    [[7.58, 7.87, 7.71], [8.00, 8.27, 8.00], [7.60, 7.30, 7.82], [8.03, 7.35, 7.66]],
    [[11.63, 11.87, 11.40], [12.20, 11.70, 11.80], [11.04, 11.50, 11.49], [11.50, 10.10, 11.70]],
    [[15.00, 15.92, 15.58], [16.60, 16.40, 15.90], [15.87, 15.91, 16.28], [15.10, 14.80, 15.70]],
]


def test_niacin() -> None:
    ranks = rankdata(numpy.reshape(NIACIN, (3, 12)), axis=1)
    sums = ranks.reshape(3, 4, 3).mean(axis=2).sum(axis=0)
    # Mack and Skillings without correction for ties: 12 / (k(N+n)) Σ (S_j − (N+n)/2)², about 12.93.
    published = 12 / (4 * 39) * float(((sums - 39 / 2) ** 2).sum())
    assert published == pytest.approx(12.927, abs=5e-4)
    # Three pairs are tied: a block's Σ (r − r̄)² is 143 without ties, and less by ½ for each pair.
    found = friedman(NIACIN)
    assert found.statistic == pytest.approx(published * 3 * 143 / (3 * 143 - 1.5))
    assert found.statistic == pytest.approx(12.973, abs=5e-4)
    assert found.p == pytest.approx(chi2.sf(12.9727, 3), rel=1e-4)
    assert (found.effect, found.effect_name, found.notes) == (None, None, ())


@pytest.mark.slow
@given(arrays(numpy.int64, st.tuples(st.integers(2, 8), st.integers(3, 5)), elements=st.integers(0, 5)))
def test_without_replicates_it_is_scipys(values: numpy.ndarray[tuple[int, int], numpy.dtype[numpy.int64]]) -> None:
    found = friedman(values)
    if (values == values[:, :1]).all():
        assert (found.statistic, found.p) == (0, 1)
        assert "nothing to test" in found.notes[0]
        return
    reference = friedmanchisquare(*values.T)
    assert found.statistic == pytest.approx(reference.statistic)
    assert found.p == pytest.approx(reference.pvalue)
    assert found.effect == pytest.approx(reference.statistic / (values.shape[0] * (values.shape[1] - 1)))


@pytest.mark.slow
@given(st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=2, max_size=4))
def test_one_block_with_replicates_is_kruskal_and_walliss(groups: list[list[int]]) -> None:
    if len({value for group in groups for value in group}) == 1:
        return
    found, reference = friedman([groups]), kruskal(*groups)
    assert found.statistic == pytest.approx(reference.statistic)
    assert found.p == pytest.approx(reference.pvalue)


@pytest.mark.slow
def test_the_statistic_has_the_mean_that_permutations_give_it() -> None:
    # Under permutation within blocks, E Q = k − 1 exactly, with ties and replicates too.
    generator = array_generator(0, "friedman")
    values = generator.integers(0, 4, (3, 4, 2)).astype(float)
    found = [
        friedman(generator.permuted(values.reshape(3, 8), axis=1).reshape(values.shape)).statistic for _ in range(1000)
    ]
    error = float(numpy.std(found)) / 1000**0.5
    assert abs(float(numpy.mean(found)) - 3) < 4 * error < 0.4


def test_blocks_may_differ_in_level_and_rank_invariance_holds() -> None:
    values = numpy.asarray(NIACIN)
    assert friedman(values + numpy.array([100, 0, -50])[:, None, None]).statistic == friedman(values).statistic
    assert friedman(numpy.exp(values)) == friedman(values)
    assert friedman(values[::-1]).statistic == pytest.approx(friedman(values).statistic)


def two_factors(first: float, second: float) -> Floats:
    generator = array_generator(1, "two factors")
    values: Floats = generator.normal(size=(4, 2, 10))
    values += first * numpy.arange(4)[:, None, None] + second * numpy.arange(2)[None, :, None]
    return values


def test_two_factors_are_told_apart() -> None:
    pieces, classes = friedman_two_factors(two_factors(1.0, 0.0))
    assert pieces.p < 1e-4 and classes.p > 0.05
    pieces, classes = friedman_two_factors(two_factors(0.0, 2.0))
    assert pieces.p > 0.05 and classes.p < 1e-4
    assert (pieces.test, classes.test) == ("Friedman, first factor", "Friedman, second factor")


def test_two_factors_are_one_factor_each_with_the_other_as_blocks() -> None:
    values = numpy.asarray(NIACIN)
    amounts, laboratories = friedman_two_factors(values)
    assert laboratories.statistic == friedman(values).statistic
    assert amounts.statistic == friedman(values.transpose(1, 0, 2)).statistic
    # The amounts do not overlap: in each of 4 blocks of 9, the sums of ranks are 6, 15, 24, and a block's SS is 60,
    # but for one tie, 8.00 and 8.00: Q = Σ (R − R̄)² / (3/8 ΣSS).
    assert amounts.statistic == pytest.approx((36**2 + 36**2) / (3 / 8 * (4 * 60 - 0.5)))


def test_one_run_of_two_factors_is_scipys_twice() -> None:
    values = numpy.array([[0.8852, 0.8839, 0.8870, 0.8852], [0.8887, 0.8895, 0.8821, 0.8840], [0.88, 0.9, 0.87, 0.89]])
    rows, columns = friedman_two_factors(values)
    assert columns.p == pytest.approx(friedmanchisquare(*values.T).pvalue)
    assert rows.p == pytest.approx(friedmanchisquare(*values).pvalue)


def test_too_few_blocks_are_noted() -> None:
    # The largest Q of n blocks of 2 is n: 3.84 is the point of the chi-squared distribution.
    assert friedman([[1, 2]] * 3).notes == (
        "3 blocks of 2 by 1 runs cannot give p below 0.0833: more runs are needed to reach 0.05",
    )
    assert friedman([[1, 2]] * 4).notes == ()


@pytest.mark.parametrize("values", [[1, 2], [[1], [2]], [[[[1, 2]]]], [], [[1, 2], [3]], [[1, float("nan")]]])
def test_bad_input_is_refused(values: list[float]) -> None:
    with pytest.raises(SettingsError, match="values must be"):
        friedman(values)


def test_a_factor_of_one_level_is_refused() -> None:
    with pytest.raises(SettingsError, match="2 or more treatments"):
        friedman_two_factors([[1, 2, 3]])
