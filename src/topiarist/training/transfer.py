"""Transfer learning: reuse the lower layers of a trained network, give it a new head, train in declared phases.

After Huang, Training Deep Neural Networks: first the head with the base frozen, then the top one or two layers of the
base at a lower rate; where that is not enough, drop, replace or add top layers.
"""

import copy
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from pydantic import Field
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from topiarist.data import Data
from topiarist.errors import ModelError, SettingsError
from topiarist.models import Card, attach, build, spec_of
from topiarist.models.activations import initialise
from topiarist.models.evaluation import numbers_of
from topiarist.randomness import generator as named_generator
from topiarist.randomness import isolated
from topiarist.settings import Settings
from topiarist.training.config import TrainConfig
from topiarist.training.history import Epoch, History
from topiarist.training.loop import OnEpoch
from topiarist.training.train import train


class Phase(Settings):
    """Some epochs in which only the top layers learn: 1 is the head alone, None is the whole network."""

    epochs: int = Field(ge=1)
    train_top: int | None = Field(default=None, ge=1)
    learning_rate: float | None = Field(default=None, gt=0)


DEFAULT_PHASES = (Phase(epochs=10, train_top=1), Phase(epochs=10, train_top=3, learning_rate=1e-4))


def reuse(
    base: nn.Module, *, classes: int, drop: int = 0, add: Sequence[int] = (), generator: torch.Generator | None = None
) -> nn.Module:
    """Give a copy of a trained network with a fresh head for `classes`.

    Of our own networks, the top `drop` hidden layers are left out and hidden layers of the sizes `add` are put on top.
    Of any other, the last linear layer is replaced.
    """
    random = named_generator(0, "head") if generator is None else generator
    spec = spec_of(base)
    if spec is not None and spec["family"] == "mlp":
        return reuse_mlp(base, spec, classes=classes, drop=drop, add=add, generator=random)
    if drop or add:
        raise ModelError("layers can be dropped or added only in networks made by topiarist; replace yours yourself")
    model = copy.deepcopy(base)
    heads = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    if not heads:
        raise ModelError("the network has no linear layer that a new head could replace")
    old = model.get_submodule(heads[-1])
    assert isinstance(old, nn.Linear)
    with isolated(0):  # what torch draws for its own initial weights is overwritten below
        head = nn.Linear(old.in_features, classes)
    initialise(head.weight, "glorot", generator=random)
    nn.init.zeros_(head.bias)
    head.to(old.weight)
    if not heads[-1]:
        return head
    model.set_submodule(heads[-1], head)
    attach(model, Card())
    return model


def reuse_mlp(
    base: nn.Module, spec: dict[str, Any], *, classes: int, drop: int, add: Sequence[int], generator: torch.Generator
) -> nn.Module:
    """Build the network anew and copy the layers that are kept."""
    hidden = spec["sizes"][1:-1]
    if not 0 <= drop <= len(hidden):
        raise ModelError(f"cannot drop {drop} of {len(hidden)} hidden layers")
    kept = len(hidden) - drop
    sizes = [spec["sizes"][0], *hidden[:kept], *add, classes]
    model = build({**spec, "sizes": sizes, "generator": generator}).to(numbers_of(base))
    reused = tuple(f"{part}{number}." for number in range(kept) for part in ("hidden", "norm"))
    state = {name: value for name, value in base.state_dict().items() if name.startswith(reused)}
    model.load_state_dict({**model.state_dict(), **state})
    return model


def train_phases(
    model: nn.Module,
    data: Data,
    phases: Sequence[Phase] = DEFAULT_PHASES,
    config: TrainConfig | None = None,
    *,
    on_epoch: OnEpoch | None = None,
) -> list[History]:
    """Train in phases, each with its own layers, epochs and rate; the rest is as `config` says.

    `on_epoch` sees the epochs of all phases numbered as one.
    What is frozen stays so, and afterwards every parameter is as trainable as it was before.
    """
    if not phases:
        raise SettingsError("there are no phases to train")
    settled = TrainConfig() if config is None else config
    if settled.pruning is not None:
        raise SettingsError(
            "a training in phases does not prune: prune the network that comes of it in a training more"
        )
    if settled.steps is not None:
        raise SettingsError("each phase has epochs of its own: leave steps out of a training in phases")
    trainable = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    histories: list[History] = []
    try:
        for phase in phases:
            freeze_below(model, phase.train_top)
            for parameter, flag in trainable:
                parameter.requires_grad_(flag and parameter.requires_grad)
            rate = settled.learning_rate if phase.learning_rate is None else phase.learning_rate
            changed = settled.model_copy(update={"epochs": phase.epochs, "learning_rate": rate})
            before = sum(earlier.epochs for earlier in phases[: len(histories)])
            seen = None if on_epoch is None else partial(call_shifted, on_epoch, before)
            histories.append(train(model, data, changed, on_epoch=seen))
    finally:
        for parameter, flag in trainable:
            parameter.requires_grad_(flag)
    return histories


def call_shifted(on_epoch: OnEpoch, before: int, number: int, epochs: Sequence[Epoch]) -> None:
    """Report an epoch that others came before."""
    on_epoch(before + number, epochs)


def freeze_below(model: nn.Module, train_top: int | None) -> None:
    """Let only the top layers learn; batch norm belongs to the layer before it."""
    layers: dict[str, list[nn.Parameter]] = {}
    for name, module in model.named_modules():
        layer = name.split(".parametrizations")[0]
        if isinstance(module, _BatchNorm) and layers:
            layer = list(layers)[-1]
        own = list(module.parameters(recurse=False))
        if own:
            layers.setdefault(layer, []).extend(own)
    frozen = 0 if train_top is None else max(0, len(layers) - train_top)
    for number, parameters in enumerate(layers.values()):
        for parameter in parameters:
            parameter.requires_grad_(number >= frozen)
