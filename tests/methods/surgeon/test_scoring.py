"""Scores: the paper's example to its last digit, what size costs, and when a network is worse beyond doubt."""

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from topiarist.methods.surgeon.scoring import (
    CLEAR,
    PRICES,
    Aim,
    clearly_worse,
    composite_score,
    price_of,
    priced_score,
)

SHARE = st.floats(0, 1)
GAIN = st.floats(-1, 1)
FRACTION = st.floats(0.01, 20)
COUNT = st.integers(1, 10**8)
PROBABILITIES = st.lists(st.tuples(SHARE, SHARE), min_size=2, max_size=60)

TABLE_1 = [
    ("remove layer 5", 0.6023, 0.0274, 0.9977, 0.9812),
    ("identity", 0.6016, 0.0268, 1.0000, 0.9795),
    ("remove 1 neuron of layer 5", 0.5829, 0.0081, 0.9997, 0.9539),
    ("add layer before layer 4", 0.5773, 0.0025, 1.0030, 0.9450),
    ("add 20 neurons to layer 2", 0.5678, -0.0070, 2.6544, 0.6377),
]


@pytest.mark.parametrize(("operation", "accuracy", "gain", "fraction", "score"), TABLE_1)
def test_the_composite_score_is_that_of_table_1(
    operation: str, accuracy: float, gain: float, fraction: float, score: float
) -> None:
    assert composite_score(accuracy, gain, fraction) == pytest.approx(score, abs=1e-4), operation


def test_the_operations_of_table_1_are_ranked_as_there() -> None:
    scores = [composite_score(accuracy, gain, fraction) for _, accuracy, gain, fraction, _ in TABLE_1]
    assert scores == sorted(scores, reverse=True)


@given(SHARE, GAIN, FRACTION)
def test_the_composite_score_is_equation_16(accuracy: float, gain: float, fraction: float) -> None:
    expected = accuracy + math.exp(gain) / math.exp(fraction)
    assert composite_score(accuracy, gain, fraction) == pytest.approx(expected, rel=1e-12)


@given(SHARE, GAIN, FRACTION, st.floats(1e-3, 1))
def test_the_composite_score_rises_with_the_gain_and_falls_with_the_size(
    accuracy: float, gain: float, fraction: float, more: float
) -> None:
    score = composite_score(accuracy, gain, fraction)
    assert composite_score(accuracy, gain + more, fraction) > score or fraction > 15  # there it may be lost in rounding
    assert composite_score(accuracy, gain, fraction + more) < score or fraction > 15


@given(GAIN, FRACTION)
def test_a_network_without_an_accuracy_is_worth_less_than_any(gain: float, fraction: float) -> None:
    assert composite_score(math.nan, gain, fraction) == -math.inf
    assert composite_score(math.nan, math.nan, fraction) == -math.inf
    assert priced_score(math.nan, 10, start=10, price=0.1) == -math.inf


@given(SHARE, COUNT, COUNT, st.floats(0, 1))
def test_size_costs_its_price_for_each_doubling(value: float, parameters: int, start: int, price: float) -> None:
    score = priced_score(value, parameters, start=start, price=price)
    assert priced_score(value, 2 * parameters, start=start, price=price) == pytest.approx(score - price, abs=1e-9)
    assert priced_score(value, start, start=start, price=price) == value
    assert priced_score(value, parameters, start=start, price=0.0) == value


def test_aims_have_prices_and_a_number_is_a_price() -> None:
    aims: list[Aim] = ["better", "balanced", "smaller"]
    assert [price_of(aim) for aim in aims] == [PRICES[aim] for aim in aims]
    assert 0 <= price_of("better") < price_of("balanced") < price_of("smaller")
    assert price_of(0.02) == 0.02 and price_of(0) == 0.0


def tensors(probabilities: list[tuple[float, float]]) -> tuple[Tensor, Tensor]:
    found = torch.tensor(probabilities, dtype=torch.float64)
    return found[None, :, 0], found[None, :, 1]


@pytest.mark.slow
@given(PROBABILITIES, st.floats(-0.5, 0.5))
def test_clearly_worse_is_a_paired_test(probabilities: list[tuple[float, float]], handicap: float) -> None:
    one, leading = tensors(probabilities)
    differences = leading - one - handicap
    assume(float(differences.std()) > 1e-6)
    statistic = float(stats.ttest_rel(leading[0].numpy() - handicap, one[0].numpy()).statistic)
    assume(abs(statistic - CLEAR) > 1e-6)
    assert clearly_worse(one, leading, handicap) == (statistic > CLEAR)


@given(PROBABILITIES)
def test_of_two_networks_at_most_one_is_clearly_worse(probabilities: list[tuple[float, float]]) -> None:
    one, other = tensors(probabilities)
    assert not (clearly_worse(one, other, 0.0) and clearly_worse(other, one, 0.0))
    assert not clearly_worse(one, one, 0.0)


@given(PROBABILITIES)
def test_only_differences_on_the_same_samples_count(probabilities: list[tuple[float, float]]) -> None:
    """A lead that is equal on all samples is clear, however much samples differ; in another order it need not be."""
    one, _ = tensors(probabilities)
    assert clearly_worse(one, one + 0.01, 0.0)
    assert not clearly_worse(one, one + 0.01, 0.02)
    assert not clearly_worse(one, one - 0.01, 0.0)
    assert clearly_worse(one, one - 0.01, -0.02)


@given(PROBABILITIES)
def test_the_order_of_samples_does_not_count(probabilities: list[tuple[float, float]]) -> None:
    one, leading = tensors(probabilities)
    differences = leading - one
    error = float(differences.std()) / math.sqrt(differences.numel())
    assume(abs(float(differences.mean()) - CLEAR * error) > 1e-9)
    assert clearly_worse(one, leading, 0.0) == clearly_worse(one.flip(1), leading.flip(1), 0.0)


def test_nothing_is_clear_of_one_sample_or_of_none() -> None:
    assert not clearly_worse(torch.zeros(1, 1), torch.ones(1, 1), 0.0)
    assert not clearly_worse(torch.zeros(1, 0), torch.zeros(1, 0), 0.0)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_nothing_is_clear_where_numbers_are_none(wrong: float) -> None:
    leading, strange = torch.ones(1, 50), torch.zeros(1, 50)
    strange[0, 3] = wrong
    assert not clearly_worse(strange, leading, 0.0)
    assert not clearly_worse(torch.zeros(1, 50), leading + strange, 0.0)
