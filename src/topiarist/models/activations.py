"""Activations by name, each with the initialisation of weights that suits it.

Order of preference of the paper (Huang, Training Deep Neural Networks): SELU, ELU, leaky ReLU, ReLU, tanh, sigmoid;
ReLU where run time rules. SELU wants LeCun-normal weights and alpha dropout, the ReLU family He's, the saturating
ones Glorot's.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from topiarist.errors import ModelError

Initialisation = Literal["he", "glorot", "lecun"]


@dataclass(frozen=True)
class Activation:
    """How to make the module, and how to initialise the layer before it."""

    make: Callable[[], nn.Module]
    initialisation: Initialisation
    dropout: type[nn.Dropout | nn.AlphaDropout] = nn.Dropout


ACTIVATIONS: dict[str, Activation] = {
    "selu": Activation(nn.SELU, "lecun", nn.AlphaDropout),
    "elu": Activation(nn.ELU, "he"),
    "leaky_relu": Activation(nn.LeakyReLU, "he"),
    "relu": Activation(nn.ReLU, "he"),
    "gelu": Activation(nn.GELU, "he"),
    "silu": Activation(nn.SiLU, "he"),
    "tanh": Activation(nn.Tanh, "glorot"),
    "sigmoid": Activation(nn.Sigmoid, "glorot"),
}


def find_activation(name: str) -> Activation:
    """Look an activation up by name."""
    try:
        return ACTIVATIONS[name]
    except KeyError:
        raise ModelError(f"no activation is called '{name}': choose among {', '.join(ACTIVATIONS)}") from None


def initialise(weight: Tensor, how: Initialisation, *, generator: torch.Generator) -> None:
    """Fill a kernel (units_out, units_in, …) in place.

    He: normal with variance 2/fan_in. LeCun: 1/fan_in. Glorot: uniform in ±√(6/(fan_in + fan_out)).
    """
    receptive = weight[0][0].numel()
    fan_in, fan_out = weight.shape[1] * receptive, weight.shape[0] * receptive
    with torch.no_grad():
        if how == "glorot":
            bound = math.sqrt(6 / (fan_in + fan_out))
            weight.uniform_(-bound, bound, generator=generator)
        else:
            variance = (2 if how == "he" else 1) / fan_in
            weight.normal_(0, math.sqrt(variance), generator=generator)
