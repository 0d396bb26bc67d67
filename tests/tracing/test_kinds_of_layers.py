"""Layers of every kind: half of every space goes, one by one and together, and the result survives a file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.tracing.cutting import Case, Written, check_case, making

IMAGES = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
STEPS = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
MEMORY = {"stem": 8, "memory": 6}


def recurrent(kind: Callable[..., nn.Module], **settings: Any) -> Callable[[], nn.Module]:
    """Return what makes a network with a recurrent layer between two linear ones."""
    outputs = settings.get("proj_size", 6) * (2 if settings.get("bidirectional") else 1)
    return making(
        lambda net, x: net.head(net.memory(torch.relu(net.stem(x)))[0]),
        stem=lambda: nn.Linear(4, 8),
        memory=lambda: kind(8, 6, batch_first=True, **settings),
        head=lambda: nn.Linear(outputs, 3),
    )


def around(make: Callable[[], nn.Module], width: int = 8, given: int = 8) -> Callable[[], nn.Module]:
    """Return what makes an image network with one layer between two convolutions."""
    return making(
        lambda net, x: net.head(net.middle(torch.relu(net.stem(x))).flatten(2).mean(-1)),
        stem=lambda: nn.Conv2d(3, width, 3, padding=1),
        middle=make,
        head=lambda: nn.Linear(given, 2),
    )


def transposed(kind: type[nn.Module], dims: int, groups: int = 1) -> Case:
    convolution = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dims - 1]
    make = making(
        lambda net, x: net.last(torch.relu(net.up(torch.relu(net.stem(x))))),
        stem=lambda: convolution(3, 8, 1),
        up=lambda: kind(8, 12, 2, stride=2, groups=groups),
        last=lambda: convolution(12, 2, 1),
    )
    example = torch.randn(2, 3, *[3] * dims, generator=torch.Generator().manual_seed(dims), dtype=torch.float64)
    free = {"stem": 8, "up": 12} if groups == 1 else {"stem:members": 4, "stem:groups": 2, "up:members": 6}
    return make, example, free


def gathered(net: Any, x: Tensor) -> Tensor:
    y = net.first(x)
    steps = x[:, :, :1].argmax(1, keepdim=True)
    given: Tensor = net.head(torch.gather(y, 1, steps.expand(-1, -1, y.size(2))))
    return given


def shuffled(net: Any, x: Tensor) -> Tensor:
    y = torch.relu(net.stem(x))
    batch, channels, height, width = y.shape
    y = (
        y.view(batch, net.groups, channels // net.groups, height, width)
        .transpose(1, 2)
        .reshape(batch, -1, height, width)
    )
    given: Tensor = net.head(torch.relu(net.grouped(y)).mean((2, 3)))
    return given


class Shuffled(Written):
    """A channel shuffle behind and before convolutions in groups."""

    def __init__(self) -> None:
        layers = {"stem": nn.Conv2d(3, 8, 1), "grouped": nn.Conv2d(8, 8, 1, groups=2), "head": nn.Linear(8, 2)}
        super().__init__(shuffled, **layers)
        self.groups = 2


CASES: dict[str, Case] = {
    "lstm": (recurrent(nn.LSTM), STEPS, MEMORY),
    "gru": (recurrent(nn.GRU), STEPS, MEMORY),
    "rnn": (recurrent(nn.RNN), STEPS, MEMORY),
    "lstm without biases": (recurrent(nn.LSTM, bias=False), STEPS, MEMORY),
    "lstm of two layers": (recurrent(nn.LSTM, num_layers=2), STEPS, MEMORY),
    "gru in both directions": (recurrent(nn.GRU, bidirectional=True), STEPS, MEMORY),
    "lstm in both directions of two layers": (recurrent(nn.LSTM, num_layers=2, bidirectional=True), STEPS, MEMORY),
    "lstm with a projection": (recurrent(nn.LSTM, proj_size=4), STEPS, {**MEMORY, "memory#2": 4}),
    "transposed 1d": transposed(nn.ConvTranspose1d, 1),
    "transposed 2d": transposed(nn.ConvTranspose2d, 2),
    "transposed 3d": transposed(nn.ConvTranspose3d, 3),
    "transposed in groups": transposed(nn.ConvTranspose2d, 2, groups=2),
    "gathered steps": (
        making(
            gathered,
            first=lambda: nn.Linear(4, 8),
            head=lambda: nn.Linear(8, 2),
        ),
        STEPS,
        {"first": 8},
    ),
    "channel shuffle": (Shuffled, IMAGES, {"stem:groups": 2, "stem:members": 2, "grouped:members": 4}),
    "pixel shuffle": (
        making(
            lambda net, x: net.last(net.shuffle(torch.relu(net.stem(x)))),
            stem=lambda: nn.Conv2d(3, 16, 1),
            shuffle=lambda: nn.PixelShuffle(2),
            last=lambda: nn.Conv2d(4, 2, 1),
        ),
        IMAGES,
        {"stem:groups": 4},
    ),
    "pixel unshuffle": (
        making(
            lambda net, x: net.last(net.shuffle(torch.relu(net.stem(x)))),
            stem=lambda: nn.Conv2d(3, 6, 1),
            shuffle=lambda: nn.PixelUnshuffle(2),
            last=lambda: nn.Conv2d(24, 2, 1),
        ),
        IMAGES,
        {"stem": 6},
    ),
    "instance norm": (around(lambda: nn.InstanceNorm2d(8, affine=True)), IMAGES, {"stem": 8}),
    "instance norm without weights": (around(lambda: nn.InstanceNorm2d(8)), IMAGES, {"stem": 8}),
    "instance norm with statistics": (
        around(lambda: nn.InstanceNorm2d(8, affine=True, track_running_stats=True)),
        IMAGES,
        {"stem": 8},
    ),
    "group norm": (around(lambda: nn.GroupNorm(2, 8)), IMAGES, {"stem:groups": 2, "stem:members": 4}),
    "group norm of one group": (around(lambda: nn.GroupNorm(1, 8)), IMAGES, {"stem": 8}),
    "batch norm": (around(lambda: nn.BatchNorm2d(8)), IMAGES, {"stem": 8}),
    "rms norm": (
        lambda: nn.Sequential(nn.Linear(4, 8), nn.RMSNorm(8), nn.Linear(8, 2)),
        STEPS,
        {"0": 8},
    ),
    "layer norm": (
        lambda: nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 2)),
        STEPS,
        {"0": 8},
    ),
    "layer norm without weights": (
        lambda: nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8, elementwise_affine=False), nn.Linear(8, 2)),
        STEPS,
        {"0": 8},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_half_of_every_space_can_go(name: str, tmp_path: Path) -> None:
    check_case(CASES[name], tmp_path)
