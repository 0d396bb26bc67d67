import math
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topiarist.errors import SettingsError
from topiarist.statistics import (
    Alternative,
    power_of_noninferiority,
    rank_sum,
    runs_needed,
    signed_rank,
)
from topiarist.statistics.ranks import reach_note, smallest_p_rank_sum, smallest_p_signed_rank


@pytest.mark.parametrize("how", get_args(Alternative))
@pytest.mark.parametrize("n", range(1, 9))
def test_the_smallest_p_is_that_of_the_clearest_runs(n: int, how: Alternative) -> None:
    one, two = ([1.0 + i for i in range(n)], [-1.0 - i for i in range(n)])
    high, low = (two, one) if how == "less" else (one, two)
    assert signed_rank(high, low, alternative=how).p == smallest_p_signed_rank(n, how)
    for m in range(1, 9):
        other = [(-1.0 if high is one else 1.0) * (i + 1) for i in range(m)]
        assert rank_sum(high, other, alternative=how).p == smallest_p_rank_sum(n, m, how)


def test_smallest_p_by_hand() -> None:
    assert smallest_p_signed_rank(5) == 0.0625
    assert smallest_p_signed_rank(5, "greater") == 0.03125
    assert smallest_p_signed_rank(0) == 1
    assert smallest_p_rank_sum(3, 3) == 0.1
    assert smallest_p_rank_sum(4, 4) == pytest.approx(2 / 70)


def test_the_note() -> None:
    assert reach_note(0.05, 0.05) is None
    assert reach_note(0.03, 0.05, 2) == (
        "so few runs cannot give p below 0.03: more runs are needed to reach 0.05 in 2 comparisons"
    )
    assert reach_note(0.0625, 0.05, runs="5 pairs") == (
        "5 pairs cannot give p below 0.0625: more runs are needed to reach 0.05"
    )


def test_published_sample_sizes() -> None:
    # Dalgaard, Introductory Statistics with R (2008), 8.3: two-sided 0.05, power 0.85: n = 19.97 pairs.
    assert runs_needed(sd=10 * math.sqrt(2), margin=10, alpha=0.025, power=0.85) == 20
    # G*Power and R's power.t.test(delta=0.5, power=0.8, type="paired", alternative="one.sided"): n = 26.14.
    assert runs_needed(sd=2, margin=1) == 27
    assert power_of_noninferiority(26, sd=2, margin=1) < 0.8 < power_of_noninferiority(27, sd=2, margin=1)


@pytest.mark.slow
@given(st.floats(0.1, 10), st.floats(0.1, 3), st.floats(0, 0.5), st.sampled_from([0.01, 0.05, 0.2]))
def test_the_runs_needed_are_the_fewest(sd: float, ratio: float, test_to_train: float, alpha: float) -> None:
    margin = ratio * sd
    runs = runs_needed(sd=sd, margin=margin, alpha=alpha, test_to_train=test_to_train)

    def power(count: int) -> float:
        return power_of_noninferiority(count, sd=sd, margin=margin, alpha=alpha, test_to_train=test_to_train)

    if runs is None:
        assert test_to_train > 0
        assert power(10**6) < 0.8001
    else:
        assert power(runs) >= 0.8
        assert runs == 2 or power(runs - 1) < 0.8


def test_overlap_sets_a_limit() -> None:
    # As n → ∞, δ → 1 / √0.25 = 2, and 2 − 1.645 = Φ⁻¹(0.639) < Φ⁻¹(0.8).
    assert runs_needed(sd=1, margin=1, test_to_train=0.25) is None
    assert power_of_noninferiority(10**6, sd=1, margin=1, test_to_train=0.25) == pytest.approx(0.639, abs=1e-3)
    assert runs_needed(sd=1, margin=1, test_to_train=0.25, power=0.6) is not None
    assert runs_needed(sd=1, margin=0) is None
    assert runs_needed(sd=0, margin=1, test_to_train=1) == 2


def test_power_rises_with_the_runs_and_starts_from_alpha() -> None:
    powers = [power_of_noninferiority(n, sd=1, margin=0.5, test_to_train=0.1) for n in range(2, 60)]
    assert all(before < after for before, after in pairwise(powers))
    assert power_of_noninferiority(7, sd=1, margin=0, alpha=0.03) == pytest.approx(0.03)
    assert power_of_noninferiority(5, sd=0, margin=0.1) == 1
    assert power_of_noninferiority(5, sd=0, margin=0) == 0
    assert power_of_noninferiority(5, sd=1e-6, margin=1) == pytest.approx(1)


@pytest.mark.parametrize(
    ("setting", "value"), [("sd", -1), ("margin", -0.1), ("alpha", 0), ("test_to_train", math.nan), ("alpha", 1)]
)
def test_nonsense_is_refused(setting: str, value: float) -> None:
    settings = {"sd": 1.0, "margin": 0.1, "alpha": 0.05, "test_to_train": 0.0} | {setting: value}
    with pytest.raises(SettingsError, match=setting):
        power_of_noninferiority(5, **settings)
    with pytest.raises(SettingsError, match=setting):
        runs_needed(**settings)


def test_one_run_has_no_power() -> None:
    with pytest.raises(SettingsError, match="runs must be 2 or more; found 1"):
        power_of_noninferiority(1, sd=1, margin=1)
    with pytest.raises(SettingsError, match="alternative"):
        smallest_p_signed_rank(5, "both")  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="power"):
        runs_needed(sd=1, margin=1, power=1)
