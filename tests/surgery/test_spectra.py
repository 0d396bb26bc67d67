"""Singular values and what they count: against numpy, and against what is known of hand-made matrices."""

import numpy
import pytest
import torch
from torch import nn

from tests.surgery.samples import made
from topiarist.errors import SettingsError
from topiarist.randomness import generator
from topiarist.surgery.advice.spectra import (
    activity_spectrum,
    count_negligible,
    effective_rank,
    lost_share,
    smallest_rank,
    weight_spectrum,
)
from topiarist.surgery.calibration import CalibrationBatches
from topiarist.surgery.choice.activity import activity_of
from topiarist.tracing import anatomy


def entropy_rank(values: numpy.ndarray[tuple[int], numpy.dtype[numpy.float64]]) -> float:
    shares = values / values.sum()
    return float(numpy.exp(-(shares * numpy.log(shares)).sum()))


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 3, 2, 2)])
def test_the_spectrum_of_weights_is_that_of_numpy(shape: tuple[int, ...]) -> None:
    weight = torch.randn(shape, generator=generator(0, "weight"))
    oracle = numpy.linalg.svd(weight.numpy().astype(float).reshape(shape[0], -1), compute_uv=False)
    found = weight_spectrum(weight)
    assert numpy.allclose(found.singular_values, oracle)
    assert found.effective_rank == pytest.approx(entropy_rank(oracle))


def test_the_spectrum_of_activations_is_that_of_the_centred_matrix() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)), 300, 5)
    activity = activity_of(model, anatomy(model, x[:2]), "0", CalibrationBatches(x, model, 1))
    assert activity is not None
    hidden = model[:2](x).detach().numpy()
    oracle = numpy.linalg.svd((hidden - hidden.mean(0)) / numpy.sqrt(300), compute_uv=False)
    assert numpy.allclose(activity_spectrum(activity).singular_values, oracle)


def test_activations_before_zero_padding_are_not_centred() -> None:
    model, x = made(lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Conv2d(4, 3, 3, padding=1)), 20, 2, 7, 7)
    activity = activity_of(model, anatomy(model, x[:2]), "0", CalibrationBatches(x, model, 1))
    assert activity is not None
    channels = model[:2](x).detach().transpose(0, 1).flatten(1).numpy()
    oracle = numpy.linalg.svd(channels / numpy.sqrt(channels.shape[1]), compute_uv=False)
    assert numpy.allclose(activity_spectrum(activity).singular_values, oracle)


@pytest.mark.parametrize(
    ("values", "rank"), [([2.0] * 7, 7.0), ([3.0, 0.0, 0.0], 1.0), ([0.0, 0.0], 0.0), ([], 0.0), ([1.0, 1.0, 0.0], 2.0)]
)
def test_the_effective_rank_counts_equal_values(values: list[float], rank: float) -> None:
    assert effective_rank(values) == pytest.approx(rank)


def test_the_smallest_rank_keeps_just_enough() -> None:
    values = [3.0, 2.0, 1.0, 1.0]  # squares 9, 4, 1, 1 of 15
    assert [smallest_rank(values, keep) for keep in (0.5, 9 / 15, 0.61, 13 / 15, 0.87, 14 / 15, 0.94, 1.0)] == [
        *(1, 1, 2, 2, 3, 3, 4, 4)
    ]
    assert [lost_share(values, rank) for rank in range(5)] == pytest.approx([1, 6 / 15, 2 / 15, 1 / 15, 0])


def test_a_matrix_of_zeros_has_a_rank_to_keep_and_nothing_to_lose() -> None:
    assert smallest_rank([0.0, 0.0], 0.99) == 1
    assert lost_share([0.0, 0.0], 1) == 0.0


@pytest.mark.parametrize("keep", [0.0, -1.0, 1.1, float("nan")])
def test_a_share_to_keep_that_is_none_is_refused(keep: float) -> None:
    with pytest.raises(SettingsError, match="share to keep"):
        smallest_rank([1.0], keep)


def test_negligible_values_are_below_one_floor_or_the_other() -> None:
    assert count_negligible([100.0, 0.51, 0.49, 0.31, 0.29], 5) == 3  # 0.005 · 100 = 0.5
    assert count_negligible([1.0, 0.31, 0.29, 0.0], 4) == 2
    assert count_negligible([0.3], 1) == 0
    assert count_negligible([1.0, 0.2], 2, absolute=0.1) == 0


def test_values_that_a_matrix_does_not_have_count_as_zero() -> None:
    assert count_negligible([5.0, 4.0], 10) == 8
    assert count_negligible([0.1, 0.0], 10) == 10
