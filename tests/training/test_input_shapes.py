"""What a network reads is found by asking it."""

import pytest
import torch
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.models import Card, attach, mlp
from topiarist.training.transfer import shape_to_read


def flat_after_convolution(channels: int, size: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(channels, 2, 3), nn.Flatten(), nn.Linear(2 * (size - 2) ** 2, 3))


def test_what_is_read_as_it_is_stays_so() -> None:
    pooled = nn.Sequential(nn.Conv2d(1, 2, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 3))
    for shape in ((1, 8, 8), (1, 28, 20)):
        assert shape_to_read(pooled, shape) == shape
    assert shape_to_read(mlp([64, 5, 3]), (1, 8, 8)) == (1, 8, 8)
    assert shape_to_read(mlp([64, 5, 3]).double(), (64,)) == (64,)


@pytest.mark.parametrize(("channels", "size"), [(3, 32), (1, 8), (3, 224), (1, 97)])
def test_the_shape_that_a_network_reads_is_found(channels: int, size: int) -> None:
    network = flat_after_convolution(channels, size).train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    for found in ((1, 28, 28), (3, 40, 20)):
        assert shape_to_read(network, found) == (channels, size, size)
    assert network.training and all(value.equal(before[name]) for name, value in network.state_dict().items())


def test_the_card_says_what_could_not_be_guessed() -> None:
    network = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(2 * 6 * 10, 3))
    with pytest.raises(ModelError, match=r"cannot read samples of shape \(1, 28, 28\)"):
        shape_to_read(network, (1, 28, 28))
    attach(network, Card(input_shape=(3, 8, 12)))
    assert shape_to_read(network, (1, 28, 28)) == (3, 8, 12)
    assert shape_to_read(network, (288,)) == (3, 8, 12)
    with pytest.raises(ModelError, match=r"it was trained on samples of shape \(3, 8, 12\)"):
        shape_to_read(network, (13,))


class Strange(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        raise KeyError(torch.numel(x))


def test_a_network_that_reads_nothing_is_refused() -> None:
    with pytest.raises(ModelError, match="cannot read samples"):
        shape_to_read(Strange(), (1, 4, 4))
