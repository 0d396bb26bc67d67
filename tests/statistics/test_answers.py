"""Is a network not worse than another? Against the likelihood itself, and against thousands of made-up answers."""

import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import xlogy
from scipy.stats import binom, norm

from topiarist.errors import SettingsError
from topiarist.randomness import array_generator
from topiarist.statistics import compare_answers
from topiarist.statistics.answers import likely_losses, power_of_samples, samples_needed, varied
from topiarist.statistics.samples import Floats

TIMES = 4000


def answers(won: int, lost: int, samples: int) -> tuple[Floats, Floats]:
    """Return right answers of two networks that differ in so many."""
    candidate, baseline = numpy.ones((2, samples))
    baseline[:won] = 0
    candidate[won : won + lost] = 0
    return candidate, baseline


def rate_proven(samples: int, *, margin: float, won: float, lost: float) -> float:
    """Draw answers, of which these shares are won and lost; give how often a candidate is proven by them."""
    drawn = array_generator(0, "answers").multinomial(samples, [won, lost, 1 - won - lost], size=TIMES)
    kinds, times = numpy.unique(drawn[:, :2], axis=0, return_counts=True)  # nothing but these counts decides
    proven = [compare_answers(*answers(int(one), int(other), samples), margin=margin).proven for one, other in kinds]
    return float(times[proven].sum()) / TIMES


def error_of(rate: float) -> float:
    return 3 * math.sqrt(rate * (1 - rate) / TIMES)


@pytest.mark.slow
@given(st.integers(0, 40), st.integers(0, 40), st.integers(100, 900), st.sampled_from([0.01, 0.05, 0.2]))
def test_the_losses_are_the_most_likely_ones_at_the_margin(won: int, lost: int, samples: int, margin: float) -> None:
    def unlikely(q: float) -> float:
        return -float(xlogy(won, q - margin) + xlogy(lost, q) + xlogy(samples - won - lost, 1 - 2 * q + margin))

    found = likely_losses(won, lost, samples, margin)
    oracle = minimize_scalar(unlikely, bounds=(margin, (1 + margin) / 2), method="bounded", options={"xatol": 1e-9})
    assert margin - 1e-12 <= found <= (1 + margin) / 2
    assert unlikely(found) <= oracle.fun + 1e-6


@pytest.mark.slow
@given(st.integers(0, 40), st.integers(0, 40), st.integers(100, 900), st.sampled_from([0.01, 0.05, 0.2]))
def test_p_and_bounds_are_those_of_the_score(won: int, lost: int, samples: int, alpha: float) -> None:
    margin = 0.05
    found = compare_answers(*answers(won, lost, samples), margin=margin, alpha=alpha)
    variance = 2 * likely_losses(won, lost, samples, margin) - margin - margin**2
    z = (won - lost + samples * margin) / math.sqrt(samples * variance)
    least = binom.cdf(max(lost - won, 0), samples, margin)
    assert found.p == pytest.approx(max(norm.sf(z), least), abs=1e-12)
    assert found.proven == (found.p <= alpha) and (found.low >= -margin - 1e-12 or not found.proven)
    assert found.high - found.difference == pytest.approx(found.difference - found.low)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("samples", "margin", "won", "most"),
    [
        (300, 0.02, 0.0, 0.05),
        (300, 0.02, 0.05, 0.055),
        (100, 0.05, 0.1, 0.055),
        (305, 0.02, 0.005, 0.055),  # few of both: a t-test would take them for certainty, and err in 8 of 100
    ],
)
def test_at_the_margin_it_errs_about_as_often_as_alpha(samples: int, margin: float, won: float, most: float) -> None:
    rate = rate_proven(samples, margin=margin, won=won, lost=won + margin)
    assert 0.01 < rate <= most + error_of(most)


@pytest.mark.parametrize(("samples", "margin", "differing"), [(500, 0.02, 0.04), (200, 0.05, 0.1)])
def test_the_power_is_as_computed(samples: int, margin: float, differing: float) -> None:
    half = samples * differing / 2
    expected = power_of_samples(samples, variance=varied(half, half, samples, margin), margin=margin)
    rate = rate_proven(samples, margin=margin, won=differing / 2, lost=differing / 2)
    assert 0.4 < expected < 0.95
    assert rate == pytest.approx(expected, abs=error_of(expected) + 0.02)  # counts are whole numbers


@pytest.mark.slow
@pytest.mark.parametrize(("margin", "differing"), [(0.02, 0.05), (0.1, 0.12)])
def test_the_samples_needed_prove_an_equal_candidate_four_times_of_five(margin: float, differing: float) -> None:
    variance = varied(1000 * differing, 1000 * differing, 2000, margin)
    needed = samples_needed(variance=variance, margin=margin)
    assert power_of_samples(needed, variance=variance, margin=margin) >= 0.8
    assert power_of_samples(needed - 1, variance=variance, margin=margin) < 0.8
    rate = rate_proven(needed, margin=margin, won=differing / 2, lost=differing / 2)
    assert 0.8 - error_of(0.8) - 0.03 <= rate <= 0.88  # counts are whole numbers


@pytest.mark.slow
@given(st.integers(2, 600), st.integers(0, 10), st.floats(0.001, 0.5), st.sampled_from([0.01, 0.05, 0.2]))
def test_no_samples_prove_more_than_as_many_without_a_loss(
    samples: int, lost: int, margin: float, alpha: float
) -> None:
    found = compare_answers(*answers(0, min(lost, samples), samples), margin=margin, alpha=alpha)
    assert found.p >= (1 - margin) ** samples - 1e-12 and found.proven == (found.p <= alpha)
    if (1 - margin) ** samples > alpha:  # the rule of three: below about 3 / margin samples, none is proven
        assert not found.proven and found.power == 0.0
    assert found.samples_needed >= math.log(alpha) / math.log1p(-margin) - 1e-9


def test_answers_that_are_all_the_same() -> None:
    right = numpy.arange(200) % 5 > 0
    found = compare_answers(right, right, margin=0.02)
    # z = 0.02 / √(0.02 · 0.98 / 200) = 2.02 has p = 0.0217; 0.98²⁰⁰ = 0.0176
    assert found.p == pytest.approx(0.0217, abs=1e-4) and found.proven
    assert (found.difference, found.won, found.lost, found.samples) == (0.0, 0.0, 0.0, 200)
    assert found.score == found.baseline_score == 0.8
    assert found.low == -found.high < 0
    assert not compare_answers(right[:140], right[:140], margin=0.02).proven  # 0.98¹⁴⁰ = 0.0591


def test_shares_of_several_networks() -> None:
    generator = array_generator(1, "several")
    candidates, baselines = generator.random((2, 5, 120)) < 0.9
    found = compare_answers(candidates.mean(axis=0), baselines.mean(axis=0), margin=0.05)
    differences = candidates.mean(axis=0) - baselines.mean(axis=0)
    assert found.difference == pytest.approx(candidates.mean() - baselines.mean())
    assert found.won is not None and found.lost is not None
    assert found.won - found.lost == pytest.approx(differences.sum())
    assert found.won == pytest.approx(differences[differences > 0].sum())
    single = compare_answers(candidates[0], baselines[0], margin=0.05)
    assert found.high - found.low < single.high - single.low and found.samples_needed < single.samples_needed


def test_a_better_candidate_is_proven_and_a_worse_one_is_not() -> None:
    better, worse = (compare_answers(*answers(*kind, 400), margin=0.02) for kind in ((12, 3), (3, 12)))
    assert better.proven and better.difference == pytest.approx(9 / 400) and (better.won, better.lost) == (12, 3)
    assert not worse.proven and worse.difference == -better.difference and worse.high < 0.02
    assert better.to_json() == {name: getattr(better, name) for name in better.to_json()}


@pytest.mark.parametrize(
    ("candidate", "settings", "match"),
    [
        ([1, 0], {}, "equal length; found 2 and 3"),
        ([1], {}, "candidate must be a flat list of 2 or more"),
        ([1, 0, math.nan], {}, "candidate must be finite"),
        ([1, 0, 2], {}, "answers must be 1 where right and 0 where wrong; found"),
        ([1, 0, -0.5], {}, "answers must be 1 where right and 0 where wrong; found"),
        ([1, 0, 1], {"margin": 0.0}, "margin must lie between 0 and 1; found 0.0"),
        ([1, 0, 1], {"margin": 1.0}, "margin"),
        ([1, 0, 1], {"margin": math.nan}, "margin"),
        ([1, 0, 1], {"alpha": 0.0}, "alpha must lie"),
    ],
)
def test_bad_input_is_refused(candidate: list[float], settings: dict[str, float], match: str) -> None:
    with pytest.raises(SettingsError, match=match):
        compare_answers(candidate, [1, 1, 0], **({"margin": 0.1} | settings))
