"""Activations by name, each with the initialisation of weights that suits it.

Order of preference of the paper (Huang, Training Deep Neural Networks): SELU, ELU, leaky ReLU, ReLU, tanh, sigmoid;
ReLU where run time rules. SELU wants LeCun-normal weights and alpha dropout, the ReLU family He's, the saturating
ones Glorot's.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from topiarist.models.settings import LEAKY_SLOPE

Initialisation = Literal["he", "glorot", "lecun"]


@dataclass(frozen=True)
class Activation:
    """How to make the module, and how to initialise the layer before it; `slope` is that of leaky ReLU below zero."""

    make: Callable[[], nn.Module]
    initialisation: Initialisation
    dropout: type[nn.Dropout | nn.AlphaDropout] = nn.Dropout
    slope: float = 0.0


ACTIVATIONS: dict[str, Activation] = {
    "selu": Activation(nn.SELU, "lecun", nn.AlphaDropout),
    "elu": Activation(nn.ELU, "he"),
    "leaky_relu": Activation(nn.LeakyReLU, "he", slope=LEAKY_SLOPE),
    "relu": Activation(nn.ReLU, "he"),
    "gelu": Activation(nn.GELU, "he"),
    "silu": Activation(nn.SiLU, "he"),
    "tanh": Activation(nn.Tanh, "glorot"),
    "sigmoid": Activation(nn.Sigmoid, "glorot"),
}


def find_activation(name: str, *, leaky_slope: float = LEAKY_SLOPE) -> Activation:
    """Return the activation of a name; `leaky_slope` takes effect on leaky ReLU alone."""
    if name == "leaky_relu":
        return replace(ACTIVATIONS[name], make=partial(nn.LeakyReLU, leaky_slope), slope=leaky_slope)
    return ACTIVATIONS[name]


def initialise(weight: Tensor, how: Initialisation, *, slope: float = 0.0, generator: torch.Generator) -> None:
    """Fill a kernel (units_out, units_in, …) in place.

    He: normal with variance 2/((1 + slope²)·fan_in), `slope` that of leaky ReLU (He and others, 2015).
    LeCun: 1/fan_in. Glorot: uniform in ±√(6/(fan_in + fan_out)).
    """
    receptive = weight[0][0].numel()
    fan_in, fan_out = weight.shape[1] * receptive, weight.shape[0] * receptive
    with torch.no_grad():
        if how == "glorot":
            bound = math.sqrt(6 / (fan_in + fan_out))
            weight.uniform_(-bound, bound, generator=generator)
        else:
            variance = (2 / (1 + slope**2) if how == "he" else 1) / fan_in
            weight.normal_(0, math.sqrt(variance), generator=generator)
