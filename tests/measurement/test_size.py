import torch
from torch import nn

from topiarist.measurement.size import count_nonzero, memory_kb
from topiarist.models import mlp
from topiarist.models.evaluation import count_parameters


def test_a_small_network_by_hand() -> None:
    model = mlp([3, 4, 2], batch_norm=True)
    parameters = (3 * 4 + 4) + (4 + 4) + (4 * 2 + 2)
    assert count_parameters(model) == parameters
    assert count_nonzero(model) == parameters - 4 - 4 - 2  # biases of layers and norm begin at zero
    assert memory_kb(model) == (4 * (parameters + 4 + 4) + 8) / 1024  # running mean and variance; batches seen


def test_the_type_counts() -> None:
    assert memory_kb(mlp([64, 32]).double()) == 2 * memory_kb(mlp([64, 32])) == 4 * memory_kb(mlp([64, 32]).half())


def test_what_is_tied_counts_once() -> None:
    layer = nn.Linear(8, 8, bias=False)
    tied = nn.Sequential(layer, nn.Linear(8, 8, bias=False), layer)
    tied[1].weight = layer.weight
    assert count_parameters(tied) == 64 and memory_kb(tied) == 0.25


def test_zeros_are_parameters_but_not_nonzero() -> None:
    model = nn.Linear(4, 4)
    with torch.no_grad():
        model.weight.fill_(1)
        model.bias.copy_(torch.tensor([0.0, -0.0, 1.0, float("nan")]))
    assert count_parameters(model) == 20 and count_nonzero(model) == 18


def test_frozen_parameters_count() -> None:
    assert count_parameters(nn.Linear(3, 3).requires_grad_(False)) == 12


def test_nothing_is_zero() -> None:
    assert count_parameters(nn.ReLU()) == count_nonzero(nn.ReLU()) == memory_kb(nn.ReLU()) == 0
