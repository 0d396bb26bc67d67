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

from topiarist.errors import ModelError

Initialisation = Literal["he", "glorot", "lecun"]
LEAKY_SLOPE = 0.01  # torch's own; Huang (2024) leaves α of equation 12 open


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
    if not 0 <= leaky_slope < 1:
        raise ModelError(f"leaky_slope must be at least 0 and below 1; found {leaky_slope}")
    try:
        found = ACTIVATIONS[name]
    except KeyError:
        raise ModelError(f"no activation is called '{name}': choose among {', '.join(ACTIVATIONS)}") from None
    if name != "leaky_relu":
        return found
    slope = float(leaky_slope)
    return replace(found, make=partial(nn.LeakyReLU, slope), slope=slope)


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
