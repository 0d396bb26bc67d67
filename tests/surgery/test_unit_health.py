"""Dead and saturated units: planted ones are found, whatever activation and operation lie between, and no others."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.surgery.samples import made
from topiarist.surgery.advice.readings import Health, health_from, read_spaces
from topiarist.surgery.calibration import CalibrationBatches
from topiarist.tracing import anatomy


def judged(model: nn.Module, x: Tensor, space: str) -> Health:
    return health_from(read_spaces(model, anatomy(model, x[:2]), [space], CalibrationBatches(x, model, 1))[space])


def plant(layer: Any, unit: int, bias: float, scale: float = 0.0) -> None:
    with torch.no_grad():
        layer.weight[unit] *= scale
        layer.bias[unit] = bias


def test_units_that_are_always_zero_or_never_vary_are_dead() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)), 200, 4)
    plant(model[0], 1, -100.0, scale=1.0)
    plant(model[0], 3, 2.5)
    plant(model[0], 4, 100.0, scale=1.0)  # a ReLU that never clips is as alive as a linear unit
    assert judged(model, x, "0") == Health(dead=(1, 3), silent=(1,), saturated=())


def test_a_channel_that_fires_once_is_not_dead() -> None:
    model, x = made(lambda: nn.Sequential(nn.Conv2d(1, 3, 1), nn.ReLU(), nn.Conv2d(3, 2, 3, padding=1)), 4, 1, 30, 30)
    with torch.no_grad():
        model[0].weight[:] = torch.tensor([1.0, 1.0, -1.0]).reshape(3, 1, 1, 1)
        model[0].bias[:] = torch.tensor([-50.0, -50.0, 0.0])
    assert judged(model, x, "0").silent == (0, 1)
    x[3, 0, 17, 5] = 60.0
    assert judged(model, x, "0") == Health(dead=(), silent=(), saturated=())


def test_a_unit_is_dead_only_where_all_readers_say_so() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.third = nn.Linear(4, 3), nn.Linear(3, 2), nn.Linear(3, 2)

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.first(x)
            given: Tensor = self.second(torch.relu(hidden)) + self.third(hidden)
            return given

    model, x = made(Twice, 100, 4)
    plant(model.first, 0, -100.0, scale=1.0)
    plant(model.first, 2, 0.0)
    assert judged(model, x, "first") == Health(dead=(2,), silent=(2,), saturated=())


Squash = Callable[[Tensor], Tensor]
SQUASHES: dict[str, tuple[Squash, tuple[int, ...]]] = {
    "sigmoid": (nn.Sigmoid(), (0, 1, 2)),
    "sigmoid function": (torch.sigmoid, (0, 1, 2)),
    "tanh": (nn.Tanh(), (0, 1, 2)),
    "tanh method": (lambda x: x.tanh(), (0, 1, 2)),
    "hardtanh": (nn.Hardtanh(-2.0, 3.0), (0, 1, 2)),
    "hardtanh function": (lambda x: functional.hardtanh(x, -2.0, max_val=3.0), (0, 1, 2)),
    "hardsigmoid": (nn.Hardsigmoid(), (0, 1, 2)),
    "softsign": (nn.Softsign(), (0, 1, 2)),
    "relu6": (nn.ReLU6(), (0,)),
    "relu": (nn.ReLU(), ()),
    "nothing": (nn.Identity(), ()),
}


class Squashed(nn.Module):
    """Units of `first` through an activation, a dropout, and joined with what came in."""

    def __init__(self, squash: Squash, joined: bool) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 5), nn.Linear(9 if joined else 5, 2)
        self.squash, self.dropout, self.joined = squash, nn.Dropout(), joined

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.dropout(self.squash(self.first(x)))
        given: Tensor = self.second(torch.cat([x, hidden], dim=1) if self.joined else hidden)
        return given


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("kind", SQUASHES)
def test_units_at_the_end_of_their_range_are_saturated(kind: str, joined: bool) -> None:
    squash, saturated = SQUASHES[kind]
    model, x = made(lambda: Squashed(squash, joined), 400, 4)
    plant(model.first, 0, 1000.0, scale=1.0)
    plant(model.first, 1, -1000.0, scale=1.0)
    plant(model.first, 2, 0.0, scale=1e6)  # sometimes at one end, sometimes at the other
    plant(model.first, 3, 0.5, scale=0.2)
    plant(model.first, 4, -0.5, scale=0.2)
    assert judged(model, x, "first").saturated == saturated


@pytest.mark.parametrize(("often", "saturated"), [(94, ()), (96, (0,))])
def test_a_unit_is_saturated_where_it_nearly_always_is(often: int, saturated: tuple[int, ...]) -> None:
    model, _ = made(lambda: nn.Sequential(nn.Linear(1, 1), nn.Tanh(), nn.Linear(1, 2)), 2, 1)
    with torch.no_grad():
        model[0].weight[:], model[0].bias[:] = 1.0, 0.0
    x = torch.cat([torch.full((often, 1), 2.31), torch.zeros(100 - often, 1)]).double()  # tanh 2.31 = 0.9805
    assert judged(model, x, "0").saturated == saturated
    assert judged(model, x * 2.28 / 2.31, "0").saturated == ()  # tanh 2.28 = 0.9793


@pytest.mark.parametrize("pool", [nn.MaxPool2d(2), nn.AvgPool2d(2)])
def test_saturated_channels_are_known_through_pooling_and_flattening(pool: nn.Module) -> None:
    model, x = made(
        lambda: nn.Sequential(nn.Conv2d(1, 3, 1), nn.Tanh(), pool, nn.Flatten(), nn.Linear(12, 2)), 50, 1, 4, 4
    )
    plant(model[0], 1, -30.0, scale=1.0)
    assert judged(model, x, "0").saturated == (1,)


def test_behind_a_batch_norm_nothing_is_said_to_be_saturated() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.BatchNorm1d(3), nn.Linear(3, 2)), 50, 4)
    plant(model[0], 1, 30.0, scale=1.0)
    assert judged(model, x, "0").saturated == ()


def test_a_reader_that_runs_twice_has_no_known_bounds() -> None:
    class Again(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.shared, self.last = nn.Linear(4, 3), nn.Linear(3, 3), nn.Linear(3, 2)

        def forward(self, x: Tensor) -> Tensor:
            given: Tensor = self.last(torch.tanh(self.shared(self.shared(torch.tanh(self.first(x))))))
            return given

    model, x = made(Again, 100, 4)
    plant(model.first, 0, 1000.0, scale=1.0)
    plant(model.shared, 0, 1000.0, scale=1.0)  # far above the bound of what it reads when it first runs
    assert judged(model, x, "first").saturated == ()


def test_units_that_no_one_reads_are_not_judged() -> None:
    assert health_from({}) == Health((), (), ())
