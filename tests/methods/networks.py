"""Networks with planted units: copies, multiples, complements and constants, and which of them are not needed."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from tests.networks import ResidualNetwork, built
from tests.surgery.samples import made

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {"sigmoid": nn.Sigmoid, "tanh": nn.Tanh, "relu": nn.ReLU}
ALL = {4, 5, 6}
BEFORE_ZEROS = {"sigmoid": {4}, "tanh": {4, 6}, "relu": {4, 6}}  # a reader that pads with zeros takes no constant


@torch.no_grad()
def plant(layer: Any, activation: str) -> None:
    """Of 8 units, let 4 be a copy of 1, 5 a constant, 6 an opposite or, of rectified ones, a multiple of 2."""
    factor = 2.5 if activation == "relu" else -1.0
    weight, bias = layer.weight, layer.bias
    weight[4], bias[4] = weight[1], bias[1]
    weight[5], bias[5] = 0.0, 0.3
    weight[6], bias[6] = factor * weight[2], factor * bias[2]


def perceptron(activation: str) -> tuple[Any, Any]:
    """Return two hidden layers of 8 units, each with planted ones."""
    squash = ACTIVATIONS[activation]
    model, x = made(
        lambda: nn.Sequential(nn.Linear(5, 8), squash(), nn.Linear(8, 8), squash(), nn.Linear(8, 3)), 200, 5
    )
    with torch.no_grad():
        model[2].weight.mul_(6)  # so that its units vary as those of a trained network
    plant(model[0], activation)
    plant(model[2], activation)
    return model, x


def convolutions(activation: str, padding: int) -> tuple[Any, Any]:
    """Return two convolutions of 8 channels, each with planted ones, the second with padding or not."""
    squash = ACTIVATIONS[activation]
    model, x = made(
        lambda: nn.Sequential(
            nn.Conv2d(2, 8, 3),
            squash(),
            nn.Conv2d(8, 8, 3, padding=padding),
            squash(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(8, 3),
        ),
        *(60, 2, 6, 6),
    )
    plant(model[0], activation)
    plant(model[2], activation)
    return model, x


@torch.no_grad()
def residual() -> tuple[Any, Any]:
    """Return a residual network in which unit 4 of the stream, of the block and of the branch are copies of others."""
    model, x = built(lambda: ResidualNetwork(8, 6, 5), (40, 3, 6, 6), seed=0)
    network: Any = model
    for norm in (network.stem_norm, network.first_norm, network.pointwise_norm):
        norm.bias.add_(1.0)  # so that no unit is dead
    for path in ("stem", "stem_norm", "second", "second_norm", "depthwise", "first", "first_norm", "pointwise"):
        for tensor in network.get_submodule(path).state_dict(keep_vars=True).values():
            if tensor.ndim:
                tensor[4] = tensor[1]
    for tensor in network.pointwise_norm.state_dict(keep_vars=True).values():
        if tensor.ndim:
            tensor[4] = tensor[1]
    return network, x
