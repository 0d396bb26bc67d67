import statistics
from itertools import product

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from topiarist.errors import SettingsError
from topiarist.randomness import array_generator
from topiarist.statistics import Summary, summarise


def ideal_bca(values: list[float], confidence: float) -> list[float]:
    """Return the BCa interval of the mean over all nⁿ resamples: Efron and Tibshirani (1993), 14.3."""
    sample = numpy.array(values)
    means = numpy.sort([numpy.mean(chosen) for chosen in product(values, repeat=len(values))])
    below = ((means < sample.mean() - 1e-12).mean() + (means <= sample.mean() + 1e-12).mean()) / 2
    bias = norm.ppf(below)
    without = (sample.sum() - sample) / (len(sample) - 1)
    gaps = without.mean() - without
    acceleration = (gaps**3).sum() / (6 * (gaps**2).sum() ** 1.5)
    ends = norm.ppf([(1 - confidence) / 2, (1 + confidence) / 2]) + bias
    return [float(numpy.quantile(means, q)) for q in norm.cdf(bias + ends / (1 - acceleration * ends))]


@pytest.mark.slow
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_interval_is_that_of_all_resamples(confidence: float) -> None:
    values = [0.61, 0.72, 0.74, 0.79, 0.83, 1.4]
    found = summarise(values, confidence=confidence, resamples=20_000)
    assert [found.low, found.high] == pytest.approx(ideal_bca(values, confidence), abs=0.012)
    assert found.mean == pytest.approx(statistics.mean(values))
    assert found.sd == pytest.approx(statistics.stdev(values))
    assert found.n == 6
    assert found.low is not None and found.high is not None
    assert found.high - found.mean > 1.3 * (found.mean - found.low)  # skewed as the sample is


@pytest.mark.slow
def test_the_interval_covers_the_mean_about_as_often_as_it_says() -> None:
    generator = array_generator(0, "coverage")
    found = [summarise(generator.normal(3, 2, 25), confidence=0.9, resamples=400) for _ in range(300)]
    covered = numpy.mean([(one.low or 0) <= 3 <= (one.high or 0) for one in found])
    assert 0.83 <= covered <= 0.95  # 0.9, less some small-sample bias, within 3 standard errors of 0.017


def test_one_run_and_constant_runs() -> None:
    assert summarise([0.7]) == Summary(1, 0.7, None, None, None)
    assert summarise([0.1, 0.1, 0.1]) == Summary(3, 0.1, 0.0, 0.1, 0.1)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=6))
def test_no_sample_makes_a_warning_or_an_empty_interval(values: list[float]) -> None:
    found = summarise(values, resamples=100)
    assert found.low is not None and found.high is not None
    slack = 1e-9 * max(1.0, max(map(abs, values)))
    assert min(values) - slack <= found.low <= found.high <= max(values) + slack


@pytest.mark.parametrize("n", [2, 3, 5, 20])
def test_nearly_constant_runs_are_no_trouble(n: int) -> None:
    found = summarise([1.0] * (n - 1) + [float(numpy.nextafter(1, 2))])
    assert (found.low, found.high) == pytest.approx((1, 1))


def test_the_seed_decides() -> None:
    values = [0.6, 0.7, 0.75, 0.9]
    assert summarise(values, seed=1) == summarise(values, seed=1) != summarise(values, seed=2, resamples=200)


def test_bad_input_is_refused() -> None:
    with pytest.raises(SettingsError, match="values must be a flat list of 1 or more"):
        summarise([])
    with pytest.raises(SettingsError, match="finite"):
        summarise([1.0, float("nan")])
    with pytest.raises(SettingsError, match="confidence"):
        summarise([1, 2], confidence=1)
    with pytest.raises(SettingsError, match="resamples"):
        summarise([1, 2], resamples=10)
