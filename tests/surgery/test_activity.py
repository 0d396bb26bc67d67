"""What units do: moments against explicit activations, who sees a sigmoid, and where a constant can move."""

from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tests.networks import NETWORKS
from tests.surgery.samples import made, more
from topiarist.surgery.calibration import CalibrationBatches
from topiarist.surgery.choice.activity import Activity, activity_of
from topiarist.tracing import anatomy

Floats = NDArray[numpy.float64]


def seen(model: nn.Module, x: Any, name: str, **options: Any) -> Activity:
    found = activity_of(model, anatomy(model, x[:2]), name, CalibrationBatches(x, model, 1), **options)
    assert found is not None
    return found


def array(x: Tensor) -> Floats:
    values: Floats = x.detach().numpy()
    return values


def test_moments_of_a_hidden_layer_are_those_of_its_activations() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)), 300, 5)
    hidden = array(model[:2](x))
    found = seen(model, x, "0")
    assert numpy.allclose(found.products, hidden.T @ hidden / 300)
    assert numpy.allclose(found.means, hidden.mean(axis=0))
    assert numpy.allclose(found.varied, numpy.cov(hidden.T, bias=True))
    shifted = hidden - 0.5
    assert numpy.allclose(found.about(0.5), shifted.T @ shifted / 300)
    assert (found.shiftable, found.sigmoid) == (True, False)


def test_each_position_of_a_channel_is_a_sample() -> None:
    model, x = made(lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Conv2d(4, 3, 3, padding=1)), 20, 2, 7, 7)
    channels = array(model[:2](x).transpose(0, 1).flatten(1))
    found = seen(model, x, "0", most_positions=None)
    assert numpy.allclose(found.products, channels @ channels.T / channels.shape[1])
    assert not found.shiftable
    assert numpy.allclose(found.varied, found.products)


def test_a_flattened_channel_is_seen_at_each_of_its_places() -> None:
    model, x = made(lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3)), 20, 2, 4, 4)
    channels = array(model[:2](x).transpose(0, 1).flatten(1))
    found = seen(model, x, "0")
    assert numpy.allclose(found.products, channels @ channels.T / channels.shape[1])
    assert found.shiftable


def test_all_readers_of_a_space_count() -> None:
    model, example = NETWORKS["cascade"](0)
    x = more(example, 50)
    hidden = array(torch.tanh(model.layers[0](x)))  # type: ignore[index, operator]  # a ModuleList
    found = seen(model, x, "layers.0")
    assert numpy.allclose(found.products, hidden.T @ hidden / 50)


class Named(nn.Module):
    def __init__(self, squash: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first, self.second, self.squash = nn.Linear(4, 5), nn.Linear(5, 2), squash

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.second(self.squash(self.first(x)))
        return given


SIGMOIDS: dict[str, tuple[Callable[[], nn.Module], bool]] = {
    "module": (lambda: nn.Sequential(nn.Linear(4, 5), nn.Sigmoid(), nn.Linear(5, 2)), True),
    "dropout": (lambda: nn.Sequential(nn.Linear(4, 5), nn.Sigmoid(), nn.Dropout(), nn.Linear(5, 2)), True),
    "function": (lambda: Named(torch.sigmoid), True),
    "method": (lambda: Named(lambda x: x.sigmoid()), True),
    "tanh": (lambda: Named(torch.tanh), False),
    "relu": (lambda: nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2)), False),
    "nothing": (lambda: nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 2)), False),
    "norm after": (
        lambda: nn.Sequential(nn.Linear(4, 5), nn.Sigmoid(), nn.BatchNorm1d(5), nn.Linear(5, 2)),
        False,
    ),
}


@pytest.mark.parametrize("kind", SIGMOIDS)
def test_a_sigmoid_is_known_whatever_only_passes_it_on(kind: str) -> None:
    make, sigmoid = SIGMOIDS[kind]
    model, x = made(make, 10, 4)
    (name,) = anatomy(model, x[:2]).free
    assert seen(model, x, name).sigmoid is sigmoid


def test_samples_in_batches_or_at_once_are_the_same() -> None:
    model, example = NETWORKS["residual"](0)
    x = more(example, 30)
    found = anatomy(model, example)
    for name in found.free:
        whole, parts = (
            activity_of(model, found, name, CalibrationBatches(given, model, 1))
            for given in (x, list(torch.split(x, 7)))
        )
        assert whole is not None and parts is not None
        assert numpy.allclose(whole.products, parts.products) and numpy.allclose(whole.means, parts.means)
