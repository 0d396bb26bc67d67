"""The catalogue of networks: a name, a class and a factory each.

A factory returns a network and an example input of it; `make` seeds it, so that equal seeds give equal networks, and
leaves nothing at a default that would hide a wrong cut: biases of zero, norms of one, layer scales of a millionth.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from topiarist.randomness import isolated

Inputs = Tensor | tuple[Any, ...] | Mapping[str, Any]
Made = tuple[nn.Module, Inputs]
Factory = Callable[[], Made]

NOISE = 0.1  # added to what is constant: as large as the weights of a fresh layer of 100 inputs
LEAST_VARIANCE = 0.5


@dataclass(frozen=True)
class Entry:
    """One network of the zoo: its name, the class of networks it belongs to, and its factory."""

    name: str
    group: str
    factory: Factory

    def make(self, seed: int = 0) -> Made:
        """Return the network in evaluation mode with random weights, and inputs for it."""
        with isolated(seed):
            model, inputs = self.factory()
            unsettle(model)
        return model.eval(), inputs


class Catalogue:
    """Networks of one class, in the order in which they were added; `short` names the class on a command line."""

    def __init__(self, short: str, group: str) -> None:
        self.short, self.group = short, group
        self.entries: dict[str, Entry] = {}

    def add(self, factory: Factory) -> Factory:
        """Add a factory under its own name; use as a decorator."""
        self.add_named(factory.__name__, factory)
        return factory

    def add_named(self, name: str, factory: Factory) -> None:
        """Add a factory under a name."""
        if name in self.entries:
            raise ValueError(f"two networks are called {name!r}")
        self.entries[name] = Entry(name=name, group=self.group, factory=factory)


def join(catalogues: Iterable[Catalogue]) -> dict[str, Entry]:
    """Return the networks of all catalogues by name."""
    joined: dict[str, Entry] = {}
    for catalogue in catalogues:
        for name, entry in catalogue.entries.items():
            if name in joined:
                raise ValueError(f"two networks are called {name!r}")
            joined[name] = entry
    return joined


@torch.no_grad()
def unsettle(model: nn.Module) -> None:
    """Add noise to parameters that hold one value and to the statistics of batch norms, and shuffle what picks units.

    A buffer `index` of zeros, as CondenseNet's before its training, picks one unit again and again: no other counts.
    """
    for parameter in model.parameters():
        if parameter.is_floating_point() and parameter.numel() and bool((parameter == parameter.flatten()[0]).all()):
            parameter.add_(torch.empty_like(parameter).uniform_(-NOISE, NOISE))
    for name, buffer in model.named_buffers():
        if name.endswith("running_mean"):
            buffer.uniform_(-NOISE, NOISE)
        elif name.endswith("running_var"):
            buffer.uniform_(LEAST_VARIANCE, 2 - LEAST_VARIANCE)
        elif name.endswith("index") and buffer.ndim == 1 and not buffer.any():
            buffer.copy_(torch.randperm(len(buffer)))


def use(model: nn.Module, inputs: Inputs) -> Any:
    """Return what a network computes for its inputs, whichever form they have."""
    if isinstance(inputs, Tensor):
        return model(inputs)
    if isinstance(inputs, Mapping):
        return model(**inputs)
    return model(*inputs)


def words(batch: int, length: int, vocabulary: int) -> Tensor:
    """Return random word numbers (batch, length)."""
    return torch.randint(0, vocabulary, (batch, length))
