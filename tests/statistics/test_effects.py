import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topiarist.errors import SettingsError
from topiarist.statistics import cliffs_delta, cohens_d, hedges_g, paired_d, rank_biserial
from topiarist.statistics.samples import Floats

VALUES = st.lists(st.integers(-9, 9), min_size=2, max_size=9)


def sample_with(mean: float, sd: float, n: int) -> Floats:
    values = numpy.arange(n, dtype=float)
    values -= values.mean()
    scaled: Floats = mean + sd * values / values.std(ddof=1)
    return scaled


def test_the_example_of_borenstein() -> None:
    # Borenstein, Hedges, Higgins and Rothstein (2009), chapter 4: means 103 and 100, SD 5.5 and 4.5, 50 each:
    # d = 0.5970, g = 0.5924.
    first, second = sample_with(103, 5.5, 50), sample_with(100, 4.5, 50)
    assert cohens_d(first, second) == pytest.approx(0.5970, abs=5e-5)
    assert hedges_g(first, second) == pytest.approx(0.5924, abs=5e-5)


def test_samples_of_unequal_size_by_hand() -> None:
    # Means 3 and 5; squares 8 and 2 over 3 + 1 degrees of freedom.
    assert cohens_d([1, 3, 3, 5], [4, 6]) == pytest.approx(-2 / math.sqrt(10 / 4))
    # Γ(2) / (√2 Γ(1.5)) = 2 / √(2π)
    assert hedges_g([1, 3, 3, 5], [4, 6]) == pytest.approx(-2 / math.sqrt(10 / 4) * 2 / math.sqrt(2 * math.pi))


def test_paired_d_by_hand() -> None:
    assert paired_d([2, 4, 6], [1, 2, 3]) == 2.0
    assert paired_d([2, 3], [1, 2]) == math.inf
    assert paired_d([1, 2], [2, 3]) == cohens_d([1, 1], [2, 2]) == -math.inf
    assert paired_d([1, 2], [1, 2]) == cohens_d([1, 1], [1, 1]) == 0.0


@given(VALUES, VALUES)
def test_cliffs_delta_counts_all_pairs(first: list[int], second: list[int]) -> None:
    signs = numpy.sign(numpy.subtract.outer(first, second))
    assert cliffs_delta(first, second) == pytest.approx(float(signs.mean()), abs=1e-14)
    assert cliffs_delta(first, second) == pytest.approx(-cliffs_delta(second, first), abs=1e-14)


def test_rank_biserial_by_hand() -> None:
    # Differences 1, −2, 3, 0, 3: ranks 1, 2, 3.5, –, 3.5; W⁺ = 8, W⁻ = 2.
    assert rank_biserial([1, -2, 3, 5, 3], [0, 0, 0, 5, 0]) == pytest.approx(0.6)
    assert rank_biserial([1, 2, 3], [0, 0, 0]) == 1
    assert rank_biserial([1, 2], [1, 2]) == 0


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=12))
def test_rank_biserial_lies_within_one_and_changes_sign(rows: list[tuple[int, int]]) -> None:
    first, second = ([row[side] for row in rows] for side in (0, 1))
    assert -1 <= rank_biserial(first, second) == -rank_biserial(second, first) <= 1


def test_bad_input_is_refused() -> None:
    with pytest.raises(SettingsError, match="2 or more"):
        cohens_d([1], [1, 2])
    with pytest.raises(SettingsError, match="2 or more"):
        hedges_g([1, 2], [])
    with pytest.raises(SettingsError, match="equal length"):
        paired_d([1, 2, 3], [1, 2])
