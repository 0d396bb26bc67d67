"""The network for a table: two hidden layers, narrower where a table has many inputs."""

from collections.abc import Sequence

import torch
from torch import nn

from topiarist.models.perceptrons import mlp

HIDDEN = (64, 32)  # benchmarks/README.md: students of 64-64 units were no better
MOST_WEIGHTS = 20_000  # of the first layer and the others together: 80 KB in float32


def tabular_widths(inputs: int, outputs: int) -> tuple[int, ...]:
    """Return the hidden widths for so many inputs and outputs: 64-32, or fewer so that 20,000 weights are enough.

    Examples
    --------
    >>> tabular_widths(20, 3), tabular_widths(1_000, 3)
    ((64, 32), (16, 32))
    """
    first, second = HIDDEN
    while first > 8 and first * (inputs + second) + second * outputs > MOST_WEIGHTS:
        first -= 8
    return first, second


def tabular(
    inputs: int,
    outputs: int,
    *,
    hidden: Sequence[int] | None = None,
    activation: str = "relu",
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """Build the network to start from for a table.

    Parameters
    ----------
    inputs, outputs : how many numbers a row has, and as many as `Task.outputs` says
    hidden : units of each hidden layer; those of `tabular_widths` unless given
    activation : one of `models.ACTIVATIONS`
    dropout : in the hidden layers
    generator : what draws the weights; without one, seed 0 is used

    Raises
    ------
    ModelError : where the sizes make no network

    Examples
    --------
    >>> tabular(10, 3).hidden0
    Linear(in_features=10, out_features=64, bias=True)
    """
    widths = tabular_widths(inputs, outputs) if hidden is None else hidden
    return mlp([inputs, *widths, outputs], activation, dropout=dropout, generator=generator)
