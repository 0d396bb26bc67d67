"""Transfer learning: reuse the lower layers of a trained network, give it a new head, train in declared phases.

After Huang, Training Deep Neural Networks: first the head with the base frozen, then the top one or two layers of the
base at a lower rate; where that is not enough, drop, replace or add top layers.
"""

import copy
import math
from collections.abc import Sequence

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from topiarist.data import Data
from topiarist.errors import ModelError, SettingsError
from topiarist.models.activations import initialise
from topiarist.models.building import build, spec_of
from topiarist.models.card import Card, Spec, attach, card_of
from topiarist.models.copying import copied
from topiarist.models.evaluation import numbers_of, runs
from topiarist.randomness import generator as named_generator
from topiarist.randomness import isolated
from topiarist.surgery.edits.plan import plan_of
from topiarist.training.config import Phase, TrainConfig
from topiarist.training.fitting import train
from topiarist.training.history import Epoch, History
from topiarist.training.loop import OnEpoch

DEFAULT_PHASES = (Phase(epochs=10, train_top=1), Phase(epochs=10, train_top=3, learning_rate=1e-4))
LARGEST = 299  # pixels: the largest input of networks in common use (Inception-v3; most others read 224)


def reuse(
    base: nn.Module, *, classes: int, drop: int = 0, add: Sequence[int] = (), generator: torch.Generator | None = None
) -> nn.Module:
    """Return a copy of a trained network with a fresh head: the last linear layer is replaced.

    Parameters
    ----------
    base : the trained network, which is left alone
    classes : the number of classes of the new task
    drop : how many of the top hidden layers of one of our own networks are left out
    add : the sizes of hidden layers that are put on top of it instead
    generator : what draws the weights of the new layers; without one, seed 0 is used

    Raises
    ------
    ModelError : where there is no linear layer to replace, or layers cannot be dropped or added

    Examples
    --------
    >>> from topiarist import models
    >>> reuse(models.mlp([4, 8, 6, 3]), classes=5, drop=1, add=[7]).output
    Linear(in_features=7, out_features=5, bias=True)
    """
    random = named_generator(0, "head") if generator is None else generator
    spec = spec_of(base)
    if spec is not None and spec["family"] == "mlp":
        return _reuse_mlp(base, spec, classes=classes, drop=drop, add=add, generator=random)
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
    attach(model, Card(spec=_with_outputs(card_of(base).spec, classes)))
    if not plan_of(model).edits and spec_of(model) is None:  # it was changed by hand
        attach(model, Card())
    return model


def _with_outputs(spec: Spec | None, outputs: int) -> Spec | None:
    """Return the spec of one of our own networks with so many outputs; whoever saves it sees whether it still holds."""
    if spec is None or not spec.keys() & {"sizes", "classes"}:
        return None
    return {**spec, "sizes": [*spec["sizes"][:-1], outputs]} if "sizes" in spec else {**spec, "classes": outputs}


def _reuse_mlp(
    base: nn.Module, spec: Spec, *, classes: int, drop: int, add: Sequence[int], generator: torch.Generator
) -> nn.Module:
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
    """Train in phases, each with its own layers, epochs and learning rate.

    What is frozen stays so, and afterwards every parameter is as trainable as it was before.

    Parameters
    ----------
    model : the network, trained in place
    data : what to train on
    phases : one after the other; unless given, 10 epochs of the head, then 10 of the top three layers at 0.0001
    config : everything that the phases leave open
    on_epoch : called after every epoch, the epochs of all phases numbered as one

    Returns
    -------
    list of History : one per phase

    Raises
    ------
    SettingsError : without phases, for more layers than there are; where the configuration prunes or counts in steps

    Examples
    --------
    >>> from topiarist import load_data, models
    >>> model = reuse(models.mlp([4, 8, 6, 2]), classes=3)
    >>> [len(history) for history in train_phases(model, load_data("iris"), [Phase(epochs=2, train_top=1)])]
    [2]
    """
    if not phases:
        raise SettingsError("there are no phases to train")
    settings = TrainConfig() if config is None else config
    if settings.pruning is not None:
        raise SettingsError("a training in phases does not prune: prune the trained network in another training")
    if settings.steps is not None:
        raise SettingsError("each phase has epochs of its own: leave steps out of a training in phases")
    layers = len(layers_from_below(model))
    for phase in phases:
        if phase not in DEFAULT_PHASES and phase.train_top is not None and phase.train_top > layers:
            raise SettingsError(f"a phase trains the top {phase.train_top} layers; the network has {layers}")
    trainable = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    histories: list[History] = []
    done = 0

    def report(number: int, epochs: Sequence[Epoch]) -> None:
        if on_epoch is not None:
            on_epoch(done + number, epochs)

    try:
        for phase in phases:
            freeze_below(model, phase.train_top)
            for parameter, flag in trainable:
                parameter.requires_grad_(flag and parameter.requires_grad)
            rate = settings.learning_rate if phase.learning_rate is None else phase.learning_rate
            changed = settings.model_copy(update={"epochs": phase.epochs, "learning_rate": rate})
            histories.append(train(model, data, changed, on_epoch=None if on_epoch is None else report))
            done += phase.epochs
    finally:
        for parameter, flag in trainable:
            parameter.requires_grad_(flag)
    return histories


def freeze_below(model: nn.Module, train_top: int | None) -> None:
    """Make only the top layers trainable."""
    layers = layers_from_below(model)
    frozen = 0 if train_top is None else max(0, len(layers) - train_top)
    for number, parameters in enumerate(layers):
        for parameter in parameters:
            parameter.requires_grad_(number >= frozen)


def layers_from_below(model: nn.Module) -> list[list[nn.Parameter]]:
    """Return the parameters of each layer; batch norm belongs to the layer before it."""
    layers: dict[str, list[nn.Parameter]] = {}
    for name, module in model.named_modules():
        layer = name.split(".parametrizations")[0]
        if isinstance(module, _BatchNorm) and layers:
            layer = list(layers)[-1]
        own = list(module.parameters(recurse=False))
        if own:
            layers.setdefault(layer, []).extend(own)
    return list(layers.values())


def shape_to_read(model: nn.Module, found: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape in which a network can read samples of the shape `found`: that one, or one of images.

    If the network does not read the samples as they are, the shape on its card is taken or, for images, the square
    nearest in size that it reads, in grey or in colour. The network is asked without computing anything: on torch's
    meta device, where only shapes are followed.
    """
    shapes_only = copied(model).to("meta")
    known = card_of(model).input_shape

    def reads(shape: tuple[int, ...]) -> bool:
        return runs(shapes_only, numbers_of(shapes_only).new_empty(2, *shape))

    if reads(found):
        return found
    if known is not None and reads(known) and _can_become(found, known):
        return known
    if len(found) == 3:
        for size in sorted(range(1, LARGEST + 1), key=lambda size: (abs(size - found[1]), size)):
            for channels in dict.fromkeys((found[0], 3, 1)):
                if _can_become(found, (channels, size, size)) and reads((channels, size, size)):
                    return channels, size, size
    asked = "" if known is None else f": it was trained on samples of shape {known}"
    raise ModelError(
        f"the network cannot read samples of shape {found}, nor can they be resized to what it reads{asked}"
    )


def _can_become(found: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return whether samples can be reshaped or resized to another shape."""
    if math.prod(found) == math.prod(shape):
        return True
    return len(found) == len(shape) == 3 and (found[0] == shape[0] or {found[0], shape[0]} == {1, 3})
