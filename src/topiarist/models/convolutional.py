"""What our families of convolutional networks have in common: how they are checked, made and filled."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from topiarist.errors import ModelError
from topiarist.models.activations import initialise
from topiarist.models.card import Card, attach
from topiarist.randomness import generator as named_generator
from topiarist.randomness import isolated

SCENES = (1, 48, 467)  # ten seconds at 48 kHz as 48 mel bands


def make_network(
    make: Callable[[], nn.Sequential], spec: Mapping[str, Any], generator: torch.Generator | None
) -> nn.Sequential:
    """Build a network, draw its weights and give it its spec.

    Kernels are drawn as He has it, that of the last layer as Glorot; biases are zero. Without a generator, seed 0 is
    used.
    """
    random = named_generator(0, "initial weights") if generator is None else generator
    try:
        with isolated(0):  # what torch draws for its own initial weights is overwritten below
            model = make()
    except (RuntimeError, TypeError) as error:  # of torch, for want of memory
        raise ModelError(f"cannot build a network for {dict(spec)}: {str(error).splitlines()[0]}") from error
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]
    for layer in layers:
        initialise(layer.weight, "glorot" if layer is layers[-1] else "he", generator=random)
        assert layer.bias is not None
        nn.init.zeros_(layer.bias)
    attach(model, Card(spec=dict(spec)))
    return model


def check(blocks: Sequence[int], input_shape: Sequence[int], classes: int, dropout: float) -> None:
    """Refuse what makes no network."""
    if min(blocks) < 0:
        raise ModelError(f"the blocks have 0 or more layers each; found {tuple(blocks)}")
    if len(input_shape) != 3 or min(input_shape) < 1:
        raise ModelError(f"a convolutional network reads samples (channels, height, width); found {tuple(input_shape)}")
    if classes < 1:
        raise ModelError(f"a network tells at least 1 class; found {classes}")
    if not 0 <= dropout < 1:
        raise ModelError(f"dropout must be at least 0 and below 1; found {dropout}")
