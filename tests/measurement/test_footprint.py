"""What a network takes: by hand, and as measuring finds it."""

from typing import Any

import torch
from torch import Tensor, nn

from topiarist.data import Part
from topiarist.measurement import measure
from topiarist.measurement.footprint import Footprint, footprint
from topiarist.models import mlp
from topiarist.models.evaluation import count_parameters


def weighed(model: nn.Module, *shape: int, **others: Any) -> Footprint:
    example = torch.zeros(1, *shape, dtype=next(iter(model.parameters()), torch.zeros(0)).dtype)
    return footprint(model, example, **others)


def test_a_small_network_by_hand() -> None:
    model = mlp([3, 4, 2], batch_norm=True)
    parameters = (3 * 4 + 4) + (4 + 4) + (4 * 2 + 2)
    found = weighed(model, 3)
    assert count_parameters(model) == found.parameters == parameters
    assert found.nonzero == parameters - 4 - 4 - 2  # biases of layers and norm begin at zero
    assert found.memory_kb == (4 * (parameters + 4 + 4) + 8) / 1024  # running mean and variance; batches seen


def test_the_type_counts() -> None:
    networks = mlp([64, 32]).half(), mlp([64, 32]), mlp([64, 32]).double()
    half, plain, double = (weighed(network, 64).memory_kb for network in networks)
    assert double == 2 * plain == 4 * half


def test_what_is_tied_counts_once() -> None:
    layer = nn.Linear(8, 8, bias=False)
    tied = nn.Sequential(layer, nn.Linear(8, 8, bias=False), layer)
    tied[1].weight = layer.weight
    assert weighed(tied, 8).parameters == 64 and weighed(tied, 8).memory_kb == 0.25


def test_zeros_are_parameters_but_not_nonzero() -> None:
    model = nn.Linear(4, 4)
    with torch.no_grad():
        model.weight.fill_(1)
        model.bias.copy_(torch.tensor([0.0, -0.0, 1.0, float("nan")]))
    assert (weighed(model, 4).parameters, weighed(model, 4).nonzero) == (20, 18)


def test_frozen_parameters_count() -> None:
    assert weighed(nn.Linear(3, 3).requires_grad_(False), 3).parameters == 12


def test_nothing_is_zero() -> None:
    found = weighed(nn.ReLU(), 4)
    assert found.parameters == found.nonzero == found.memory_kb == found.macs == 0


def test_a_footprint_is_what_measuring_finds() -> None:
    model = mlp([6, 5, 3])
    found = weighed(model, 6)
    measured = measure(model, Part(torch.zeros(4, 6), torch.zeros(4, dtype=torch.int64)), latency=False)
    assert found == Footprint(**{name: getattr(measured, name) for name in Footprint.__dataclass_fields__})
    assert (found.parameters, found.macs, found.latency_ms) == (53, 45, None)
    timed = weighed(model, 6, latency=True).latency_ms
    assert timed is not None and 0 < timed < 1000


def test_a_file_size_that_is_given_is_taken() -> None:
    assert weighed(mlp([6, 5, 3]), 6, file_bytes=2048).file_kb == 2.0


class TwoInputs(nn.Module):
    """Adds what two layers make of two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(3, 4), nn.Linear(5, 4)

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        total: Tensor = self.left(one) + self.right(other)
        return total


def test_a_network_of_several_inputs_is_weighed_by_place_or_by_name() -> None:
    one, other = torch.zeros(1, 3), torch.zeros(1, 5)
    by_place = footprint(TwoInputs(), (one, other), latency=True)
    by_name = footprint(TwoInputs(), {"one": one, "other": other})
    assert by_place.macs == by_name.macs == 3 * 4 + 5 * 4
    assert by_place.latency_ms is not None and by_place.latency_ms > 0
