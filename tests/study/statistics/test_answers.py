"""Is a network not worse than another? Against scipy's t-test, and against what comes of thousands of made-up answers."""

import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from topiarist.errors import SettingsError
from topiarist.randomness import array_generator
from topiarist.study.statistics import compare_answers
from topiarist.study.statistics.answers import power_of_samples, samples_needed
from topiarist.study.statistics.samples import Floats

TIMES = 4000


def answers(won: int, lost: int, samples: int) -> tuple[Floats, Floats]:
    """Give right answers of two networks that differ in so many."""
    candidate, baseline = numpy.ones((2, samples))
    baseline[:won] = 0
    candidate[won : won + lost] = 0
    return candidate, baseline


def rate_proven(samples: int, *, margin: float, won: float, lost: float) -> float:
    """Draw answers, of which these shares are won and lost; give how often a candidate is proven by them."""
    drawn = array_generator(0, "answers").multinomial(samples, [won, lost, 1 - won - lost], size=TIMES)
    kinds, times = numpy.unique(drawn[:, :2], axis=0, return_counts=True)  # nothing but these counts decides
    proven = [compare_answers(*answers(*kind, samples), margin=margin).proven for kind in kinds]
    return float(times[proven].sum()) / TIMES


def error_of(rate: float) -> float:
    return 3 * math.sqrt(rate * (1 - rate) / TIMES)


@given(st.integers(0, 500), st.integers(10, 200), st.sampled_from([0.01, 0.05]), st.sampled_from([0.01, 0.05, 0.2]))
def test_p_and_bounds_are_scipys_where_answers_differ_enough(
    seed: int, samples: int, margin: float, alpha: float
) -> None:
    generator = array_generator(seed, "shares")
    candidate, baseline = generator.random(samples), generator.integers(0, 2, samples)
    assert (candidate - baseline).var(ddof=1) > margin  # 1/12 + 1/4 is expected
    found = compare_answers(candidate, baseline, margin=margin, alpha=alpha)
    oracle = ttest_1samp(candidate - baseline, -margin, alternative="greater")
    assert found.p == pytest.approx(max(oracle.pvalue, (1 - margin) ** samples))
    assert found.low == pytest.approx(oracle.confidence_interval(1 - alpha).low)
    less = ttest_1samp(candidate - baseline, -margin, alternative="less")
    assert found.high == pytest.approx(less.confidence_interval(1 - alpha).high)
    assert found.proven == (found.p <= alpha) and (found.low > -margin or not found.proven)


@pytest.mark.parametrize(
    ("samples", "margin", "won", "most"),
    [
        (300, 0.02, 0.0, 0.05),
        (300, 0.02, 0.05, 0.055),
        (100, 0.05, 0.1, 0.055),
        (305, 0.02, 0.005, 0.085),  # the worst that we found: few of both look like certainty
    ],
)
def test_at_the_margin_it_errs_about_as_often_as_alpha(samples: int, margin: float, won: float, most: float) -> None:
    rate = rate_proven(samples, margin=margin, won=won, lost=won + margin)
    assert 0.01 < rate <= most + error_of(most)


@pytest.mark.parametrize(("samples", "margin", "differing"), [(500, 0.02, 0.04), (200, 0.05, 0.1)])
def test_the_power_is_as_computed(samples: int, margin: float, differing: float) -> None:
    expected = power_of_samples(samples, variance=differing, margin=margin)
    rate = rate_proven(samples, margin=margin, won=differing / 2, lost=differing / 2)
    assert 0.4 < expected < 0.95
    assert rate == pytest.approx(expected, abs=error_of(expected) + 0.02)  # counts are whole numbers


@pytest.mark.parametrize(("margin", "differing"), [(0.02, 0.05), (0.1, 0.12)])
def test_the_samples_needed_prove_an_equal_candidate_four_times_of_five(margin: float, differing: float) -> None:
    needed = samples_needed(variance=differing, margin=margin)
    assert power_of_samples(needed, variance=differing, margin=margin) >= 0.8
    assert power_of_samples(needed - 1, variance=differing, margin=margin) < 0.8
    rate = rate_proven(needed, margin=margin, won=differing / 2, lost=differing / 2)
    assert rate == pytest.approx(0.8, abs=error_of(0.8) + 0.02)


@given(st.integers(2, 600), st.integers(0, 10), st.floats(0.001, 0.5), st.sampled_from([0.01, 0.05, 0.2]))
def test_no_samples_prove_more_than_as_many_without_a_loss(
    samples: int, lost: int, margin: float, alpha: float
) -> None:
    found = compare_answers(*answers(0, min(lost, samples), samples), margin=margin, alpha=alpha)
    assert found.p >= (1 - margin) ** samples and found.proven == (found.p <= alpha)
    if (1 - margin) ** samples > alpha:  # the rule of three: below about 3 / margin samples, none is proven
        assert not found.proven and found.power == 0.0
    assert found.samples_needed >= math.log(alpha) / math.log1p(-margin) - 1e-9


def test_answers_that_are_all_the_same() -> None:
    right = numpy.arange(200) % 5 > 0
    found = compare_answers(right, right, margin=0.02)
    # t = 0.02 / √(0.02 · 0.98 / 200) = 2.02 has p = 0.0223 by 199 degrees of freedom; 0.98²⁰⁰ = 0.0176
    assert found.p == pytest.approx(0.0223, abs=1e-4) and found.proven
    assert (found.difference, found.won, found.lost, found.samples) == (0.0, 0.0, 0.0, 200)
    assert found.accuracy == found.baseline_accuracy == 0.8
    assert found.low == -found.high < 0
    assert not compare_answers(right[:140], right[:140], margin=0.02).proven  # 0.98¹⁴⁰ = 0.0591


def test_shares_of_several_networks() -> None:
    generator = array_generator(1, "several")
    candidates, baselines = generator.random((2, 5, 120)) < 0.9
    found = compare_answers(candidates.mean(axis=0), baselines.mean(axis=0), margin=0.05)
    differences = candidates.mean(axis=0) - baselines.mean(axis=0)
    assert found.difference == pytest.approx(candidates.mean() - baselines.mean())
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
        ([1, 0], {}, "equal number; found 2 and 3"),
        ([1], {}, "candidate must be a flat list of 2 or more"),
        ([1, 0, math.nan], {}, "candidate must be finite"),
        ([1, 0, 2], {}, "answers are 1 where they are right"),
        ([1, 0, -0.5], {}, "answers are 1 where they are right"),
        ([1, 0, 1], {"margin": 0.0}, "margin must lie between 0 and 1; found 0.0"),
        ([1, 0, 1], {"margin": 1.0}, "margin"),
        ([1, 0, 1], {"margin": math.nan}, "margin"),
        ([1, 0, 1], {"alpha": 0.0}, "alpha must lie"),
    ],
)
def test_bad_input_is_refused(candidate: list[float], settings: dict[str, float], match: str) -> None:
    with pytest.raises(SettingsError, match=match):
        compare_answers(candidate, [1, 1, 0], **({"margin": 0.1} | settings))
