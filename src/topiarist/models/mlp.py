"""Networks of fully connected layers."""

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import nn

from topiarist.errors import ModelError
from topiarist.models.activations import LEAKY_SLOPE, Activation, find_activation, initialise
from topiarist.models.card import Card, attach
from topiarist.randomness import generator as named_generator
from topiarist.randomness import isolated

BatchNorm = Literal["before", "after"]

# The values of torch: ε as the paper has it (Huang 2024, equation 17), α of its moving average (19) 0.1.
EPSILON, MOMENTUM = 1e-5, 0.1


def mlp(
    sizes: Sequence[int],
    activation: str = "relu",
    batch_norm: BatchNorm | bool = False,
    dropout: float = 0.0,
    *,
    dropout_layers: int = 3,
    input_dropout: float = 0.0,
    batch_norm_epsilon: float = EPSILON,
    batch_norm_momentum: float = MOMENTUM,
    leaky_slope: float = LEAKY_SLOPE,
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """Build inputs → hidden layers → classes, `sizes` naming all of them: `mlp([64, 128, 10])`.

    Layers are called `hidden0`, `norm0`, `activation0`, `dropout0`, …, `output`. Batch norm goes before the activation
    (True or "before") or after it; `batch_norm_epsilon` is added to its variance, and `batch_norm_momentum` is the
    share of a batch in its moving averages. `leaky_slope` is that of leaky ReLU below zero. Dropout is put on the last
    `dropout_layers` hidden layers, never on the output; SELU networks get alpha dropout. The same generator gives the
    same weights; without one, seed 0 is used.
    """
    sizes = [int(size) for size in sizes]
    check(sizes, batch_norm, {"dropout": dropout, "input_dropout": input_dropout}, dropout_layers)
    check_norm(batch_norm_epsilon, batch_norm_momentum)
    chosen = find_activation(activation, leaky_slope=leaky_slope)
    norm = partial(nn.BatchNorm1d, eps=float(batch_norm_epsilon), momentum=float(batch_norm_momentum))
    random = named_generator(0, "initial weights") if generator is None else generator
    try:
        with isolated(0):  # what torch draws for its own initial weights is overwritten below
            layers = make_layers(sizes, chosen, norm, batch_norm, dropout, dropout_layers, input_dropout)
    except (RuntimeError, TypeError) as error:  # of torch, for want of memory
        raise ModelError(f"cannot build a network of sizes {sizes}: {str(error).splitlines()[0]}") from error
    for name, layer in layers.items():
        if isinstance(layer, nn.Linear):
            how = "glorot" if name == "output" else chosen.initialisation
            initialise(layer.weight, how, slope=chosen.slope, generator=random)
            nn.init.zeros_(layer.bias)
    model = nn.Sequential(layers)
    spec: dict[str, Any] = {
        "family": "mlp",
        "sizes": sizes,
        "activation": activation,
        "batch_norm": batch_norm,
        "dropout": dropout,
    }
    spec |= {"dropout_layers": dropout_layers, "input_dropout": input_dropout}
    # Only what differs from the default is written: files without these settings are read, and read by older versions.
    settings = {
        "batch_norm_epsilon": (batch_norm_epsilon, EPSILON),
        "batch_norm_momentum": (batch_norm_momentum, MOMENTUM),
        "leaky_slope": (leaky_slope, LEAKY_SLOPE),
    }
    spec |= {name: float(value) for name, (value, default) in settings.items() if value != default}
    attach(model, Card(spec=spec))
    return model


def make_layers(
    sizes: list[int],
    activation: Activation,
    norm: Callable[[int], nn.Module],
    batch_norm: BatchNorm | bool,
    dropout: float,
    dropout_layers: int,
    input_dropout: float,
) -> OrderedDict[str, nn.Module]:
    """Give the layers by name, in the order in which they run."""
    hidden = len(sizes) - 2
    layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
    if input_dropout:
        layers["input_dropout"] = nn.Dropout(input_dropout)
    for number in range(hidden):
        layers[f"hidden{number}"] = nn.Linear(sizes[number], sizes[number + 1])
        steps: dict[str, nn.Module] = {f"activation{number}": activation.make()}
        if batch_norm:
            normed = {f"norm{number}": norm(sizes[number + 1])}
            steps = {**steps, **normed} if batch_norm == "after" else {**normed, **steps}
        layers.update(steps)
        if dropout and number >= hidden - dropout_layers:
            layers[f"dropout{number}"] = activation.dropout(dropout)
    layers["output"] = nn.Linear(sizes[-2], sizes[-1])
    return layers


def check(sizes: list[int], batch_norm: BatchNorm | bool, rates: dict[str, float], dropout_layers: int) -> None:
    """Refuse what makes no network."""
    if len(sizes) < 2 or min(sizes) < 1:
        raise ModelError(f"sizes must name inputs, hidden layers and classes, each at least 1; found {sizes}")
    if batch_norm not in (False, True, "before", "after"):
        raise ModelError(f"batch_norm must be False, True, 'before' or 'after'; found {batch_norm!r}")
    for name, rate in rates.items():
        if not 0 <= rate < 1:
            raise ModelError(f"{name} must be at least 0 and below 1; found {rate}")
    if dropout_layers < 0:
        raise ModelError(f"dropout_layers must be at least 0; found {dropout_layers}")


def check_norm(epsilon: float, momentum: float) -> None:
    """Refuse a batch norm that could divide by zero, or whose averages would not follow the batches."""
    if not 0 < epsilon < math.inf:
        raise ModelError(f"batch_norm_epsilon must be above 0; found {epsilon}")
    if not 0 < momentum <= 1:
        raise ModelError(f"batch_norm_momentum must be above 0 and at most 1; found {momentum}")
