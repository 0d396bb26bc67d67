import math
from typing import get_args

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_ind, ttest_rel

from topiarist.errors import SettingsError
from topiarist.randomness import array_generator
from topiarist.statistics import Design, corrected_t, non_inferiority, power_of_noninferiority
from topiarist.statistics.samples import Floats

DESIGNS: tuple[Design, ...] = get_args(Design)
TIMES = 1000
OVERLAP = 0.25


def scores(design: Design, difference: float, seed: int) -> list[tuple[Floats, Floats]]:
    """Draw candidates and baselines, 10 runs each; the differences over folds are correlated as overlap makes them.

    With correlation ρ, the mean of the differences has variance σ²(1 − ρ)(1/n + ρ/(1 − ρ)), and s² expectation
    σ²(1 − ρ): Nadeau and Bengio's correction with test_to_train = ρ/(1 − ρ). Here σ²(1 − ρ) = 1.
    """
    generator = array_generator(seed, "non-inferiority", design)
    baseline, noise = generator.normal(size=(2, TIMES, 10))
    shared = math.sqrt(OVERLAP) * generator.normal(size=(TIMES, 1))
    candidate = {
        "folds": baseline + noise + shared,
        "pairs": baseline + noise,
        "runs": noise,
    }[design]
    return list(zip(candidate + difference, baseline, strict=True))


def rate_proven(design: Design, difference: float, *, margin: float, test_to_train: float) -> float:
    return float(
        numpy.mean(
            [
                non_inferiority(*pair, margin=margin, design=design, test_to_train=test_to_train).proven
                for pair in scores(design, difference, seed=0)
            ]
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_at_the_margin_it_errs_no_more_often_than_alpha(design: Design) -> None:
    overlap = OVERLAP if design == "folds" else 0.0
    rate = rate_proven(design, -1.0, margin=1.0, test_to_train=overlap)
    assert 0.02 < rate <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / TIMES)


@pytest.mark.slow
def test_folds_without_correction_err_often() -> None:
    assert rate_proven("folds", -1.0, margin=1.0, test_to_train=0.0) > 0.15


@pytest.mark.slow
@pytest.mark.parametrize(("design", "margin"), [("folds", 1.5), ("pairs", 0.9)])
def test_the_power_is_as_computed(design: Design, margin: float) -> None:
    overlap = OVERLAP if design == "folds" else 0.0
    expected = power_of_noninferiority(10, sd=1.0, margin=margin, test_to_train=overlap)
    rate = rate_proven(design, 0.0, margin=margin, test_to_train=overlap)
    assert 0.5 < expected < 0.95
    # Signed ranks have 0.955 of the efficiency of t.
    slack = 3 * math.sqrt(expected * (1 - expected) / TIMES) + (0.04 if design == "pairs" else 0.0)
    assert rate == pytest.approx(expected, abs=slack)


@given(st.integers(0, 500), st.floats(0, 2), st.floats(0, 1), st.sampled_from([0.01, 0.05, 0.3]))
def test_over_folds_the_bound_and_p_say_the_same(seed: int, margin: float, ratio: float, alpha: float) -> None:
    candidate, baseline = array_generator(seed, "bound").normal(size=(2, 6))
    verdict = non_inferiority(candidate, baseline, margin=margin, test_to_train=ratio, alpha=alpha)
    assert verdict.proven == (verdict.low >= -margin)
    found = corrected_t(candidate, baseline, test_to_train=ratio, alternative="greater", margin=margin)
    assert verdict.p == verdict.adjusted_p == found.p
    assert verdict.difference == pytest.approx(float(numpy.mean(candidate) - numpy.mean(baseline)))


def test_the_bounds_are_scipys() -> None:
    candidate, baseline = array_generator(3, "bounds").normal(size=(2, 8))
    paired = ttest_rel(candidate, baseline, alternative="greater").confidence_interval(0.9).low
    welch = ttest_ind(candidate, baseline[:5], equal_var=False, alternative="greater").confidence_interval(0.9).low
    for design in ("folds", "pairs"):
        assert non_inferiority(candidate, baseline, margin=0.1, design=design, alpha=0.1).low == pytest.approx(paired)
    found = non_inferiority(candidate, baseline[:5], margin=0.1, design="runs", alpha=0.1)
    assert found.low == pytest.approx(welch)


def test_ranks_by_hand() -> None:
    baseline = [0.90, 0.91, 0.92, 0.93, 0.94]
    # d + 0.01 is 0.01 or 0.02, all positive: p = 2⁻⁵; a loss of just the margin is left out.
    close = non_inferiority([0.90, 0.91, 0.93, 0.94, 0.95], baseline, margin=0.01, design="pairs")
    assert (close.p, close.proven) == (2**-5, True)
    edge = non_inferiority([0.89, 0.91, 0.93, 0.94, 0.95], baseline, margin=0.01, design="pairs")
    assert (edge.p, edge.proven) == (2**-4, False)
    # All of 5 + 5 runs above: 1 / C(10, 5).
    apart = non_inferiority(baseline, baseline, margin=0.05, design="runs")
    assert apart.p == pytest.approx(1 / 252)


def test_equal_scores_are_proven_within_any_margin_but_none() -> None:
    same = [0.9, 0.8, 0.7]
    assert non_inferiority(same, same, margin=0.01).proven
    assert not non_inferiority(same, same, margin=0.0).proven
    assert non_inferiority([1, 1], [1, 1], margin=0.5, design="runs").low == 0


def test_notes() -> None:
    one, two = [0.9, 0.8, 0.75], [0.85, 0.81, 0.76]
    assert non_inferiority(one, two, margin=0.01, test_to_train=0.5).notes == ()
    assert "share no training data" in non_inferiority(one, two, margin=0.01).notes[0]
    assert non_inferiority(one, two, margin=0.1, design="pairs").notes == (
        "3 pairs cannot give p below 0.125: more runs are needed to reach 0.05",
    )
    assert non_inferiority(one, two, margin=0.1, design="pairs", alpha=0.2).notes == ()
    assert "3 and 3 runs" in non_inferiority(one, two, margin=0.1, design="runs", comparisons=2).notes[0]


@pytest.mark.parametrize(
    ("candidate", "settings", "match"),
    [
        ([1.0, 2.0], {}, "equal length; found 2 and 3"),
        ([1.0, 2.0], {"design": "pairs"}, "equal length"),
        ([1.0], {"design": "runs"}, "candidate must be a flat list of 2 or more"),
        ([1.0, 2.0, math.nan], {}, "candidate must be finite"),
        ([1.0, 2.0, 3.0], {"margin": -0.1}, "margin must be 0 or more; found -0.1"),
        ([1.0, 2.0, 3.0], {"margin": math.nan}, "margin"),
        ([1.0, 2.0, 3.0], {"alpha": 0.0}, "alpha"),
        ([1.0, 2.0, 3.0], {"design": "seeds"}, "'seeds'"),
        ([1.0, 2.0, 3.0], {"design": "runs", "test_to_train": 0.1}, "test_to_train is for folds"),
    ],
)
def test_bad_input_is_refused(candidate: list[float], settings: dict[str, object], match: str) -> None:
    with pytest.raises(SettingsError, match=match):
        non_inferiority(candidate, [1.0, 2.0, 3.0], **({"margin": 0.1} | settings))  # type: ignore[arg-type]
