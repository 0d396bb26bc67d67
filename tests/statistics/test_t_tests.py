import math
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp, ttest_rel

from topiarist.errors import SettingsError
from topiarist.randomness import array_generator
from topiarist.statistics import Alternative, corrected_t

ALTERNATIVES: tuple[Alternative, ...] = get_args(Alternative)
CASES = st.integers(2, 20), st.integers(0, 1000), st.sampled_from(ALTERNATIVES)


@pytest.mark.slow
@given(*CASES, st.floats(-1, 1))
def test_without_correction_it_is_the_paired_t_test(n: int, seed: int, how: Alternative, margin: float) -> None:
    first, second = array_generator(seed, "t").normal(size=(2, n))
    found = corrected_t(first, second, test_to_train=0.0, alternative=how)
    reference = ttest_rel(first, second, alternative=how)
    assert (found.statistic, found.p) == pytest.approx((reference.statistic, reference.pvalue))
    assert found.effect == pytest.approx(reference.statistic / math.sqrt(n))
    shifted = corrected_t(first, second, test_to_train=0.0, alternative=how, margin=margin)
    assert shifted.p == pytest.approx(ttest_1samp(first - second, -margin, alternative=how).pvalue)


def test_by_hand() -> None:
    # d = 1, 2, 3, 4, mean 2.5, s² = 5/3; (1/4 + 1/4) s² = 5/6.
    found = corrected_t([2, 4, 6, 8], [1, 2, 3, 4], test_to_train=0.25)
    assert found.statistic == pytest.approx(2.5 / math.sqrt(5 / 6))
    assert found.test == "corrected resampled t"
    moved = corrected_t([2, 4, 6, 8], [1, 2, 3, 4], test_to_train=0.25, margin=0.5)
    assert moved.statistic == pytest.approx(3 / math.sqrt(5 / 6))
    # Table of Student's t: 3 degrees of freedom, one-sided 0.05 at 2.353; 0.01 at 4.541.
    assert corrected_t([2, 4, 6, 8], [1, 2, 3, 4], test_to_train=0.25, alternative="greater").p == pytest.approx(
        0.036, abs=0.002
    )


@given(*CASES, st.floats(0.01, 1))
def test_the_correction_divides_t(n: int, seed: int, how: Alternative, ratio: float) -> None:
    first, second = array_generator(seed, "t").normal(size=(2, n))
    plain = corrected_t(first, second, test_to_train=0.0, alternative=how)
    corrected = corrected_t(first, second, test_to_train=ratio, alternative=how)
    assert corrected.statistic == pytest.approx(plain.statistic / math.sqrt(1 + n * ratio))


@pytest.mark.parametrize(
    ("first", "second", "margin", "expected"),
    [
        ([2, 3, 4], [1, 2, 3], 0.0, {"two-sided": 0, "greater": 0, "less": 1}),
        ([1, 2, 3], [2, 3, 4], 0.0, {"two-sided": 0, "greater": 1, "less": 0}),
        ([1, 2, 3], [1, 2, 3], 0.0, {"two-sided": 1, "greater": 1, "less": 1}),
        ([1, 2, 3], [1, 2, 3], 0.1, {"two-sided": 0, "greater": 0, "less": 1}),
        ([0.81, 0.91, 0.71], [0.82, 0.92, 0.72], 0.01, {"two-sided": 1, "greater": 1, "less": 1}),
    ],
)
def test_differences_that_do_not_vary(
    first: list[float], second: list[float], margin: float, expected: dict[Alternative, float]
) -> None:
    for how, p in expected.items():
        found = corrected_t(first, second, test_to_train=0.1, alternative=how, margin=margin)
        assert found.p == p
        assert found.notes == ("the differences do not vary, and p assumes that they never do",)
        assert not math.isnan(found.statistic)


def test_bad_input_is_refused() -> None:
    with pytest.raises(SettingsError, match="2 or more"):
        corrected_t([1], [2], test_to_train=0)
    with pytest.raises(SettingsError, match="test_to_train"):
        corrected_t([1, 2], [2, 4], test_to_train=-0.1)
    with pytest.raises(SettingsError, match="margin"):
        corrected_t([1, 2], [2, 4], test_to_train=0, margin=math.nan)
