"""Networks of fully connected layers, and how all our families are made: built, filled and given their spec."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import nn

from topiarist.errors import ModelError, SettingsError
from topiarist.models.activations import Activation, find_activation, initialise
from topiarist.models.card import Card, Spec, attach
from topiarist.models.settings import EPSILON, LEAKY_SLOPE, MOMENTUM, BatchNorm, ModelSettings
from topiarist.randomness import generator as named_generator
from topiarist.randomness import isolated


def mlp(
    sizes: Sequence[int],
    activation: str = "relu",
    batch_norm: BatchNorm = False,
    dropout: float = 0.0,
    *,
    dropout_layers: int = 3,
    input_dropout: float = 0.0,
    batch_norm_epsilon: float = EPSILON,
    batch_norm_momentum: float = MOMENTUM,
    leaky_slope: float = LEAKY_SLOPE,
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """Build inputs → hidden layers → classes; layers are called `hidden0`, `norm0`, `activation0`, …, `output`.

    Parameters
    ----------
    sizes : the number of inputs, the units of each hidden layer, the number of classes
    activation : one of `models.ACTIVATIONS`, which also decides how the weights are drawn
    batch_norm : before the activation (True or "before"), or "after" it
    dropout : on the last `dropout_layers` hidden layers, never on the output; alpha dropout with SELU
    input_dropout : dropout on the inputs
    batch_norm_epsilon : what is added to the variance in batch norm
    batch_norm_momentum : the share of each batch in the moving averages of batch norm
    leaky_slope : the slope of leaky ReLU below zero
    generator : what draws the weights; without one, seed 0 is used

    Raises
    ------
    ModelError : where the sizes or settings make no network

    Examples
    --------
    >>> model = mlp([64, 128, 10], "selu", dropout=0.1)
    >>> [name for name, _ in model.named_children()]
    ['flatten', 'hidden0', 'activation0', 'dropout0', 'output']
    """
    sizes = [int(size) for size in sizes]
    if len(sizes) < 2 or min(sizes) < 1:
        raise ModelError(f"sizes must name inputs, hidden layers and classes, each at least 1; found {sizes}")
    arguments = {
        "activation": activation,
        "batch_norm": batch_norm,
        "dropout": dropout,
        "dropout_layers": dropout_layers,
        "input_dropout": input_dropout,
    }
    rarer = {
        "batch_norm_epsilon": batch_norm_epsilon,
        "batch_norm_momentum": batch_norm_momentum,
        "leaky_slope": leaky_slope,
    }
    try:
        settings = ModelSettings.model_validate(arguments | rarer)
    except SettingsError as error:
        raise ModelError(str(error).removeprefix("ModelSettings: ")) from error
    # Of these only what differs from the default is written, so that older versions can read most files.
    spec = {
        "family": "mlp",
        "sizes": sizes,
        **arguments,
        **settings.model_dump(include={*rarer}, exclude_defaults=True),
    }
    chosen = find_activation(activation, leaky_slope=settings.leaky_slope)
    return make_network(lambda: _layers(sizes, settings, chosen), spec, generator, chosen)


def make_network(
    make: Callable[[], OrderedDict[str, nn.Module]],
    spec: Spec,
    generator: torch.Generator | None,
    activation: Activation | None = None,
) -> nn.Sequential:
    """Build a network of named layers, draw its weights and give it its spec.

    Kernels are drawn as suits the activation (ReLU unless given), that of the last layer as Glorot; biases are zero.
    """
    random = named_generator(0, "initial weights") if generator is None else generator
    chosen = find_activation("relu") if activation is None else activation
    try:
        with isolated(0):  # what torch draws for its own initial weights is overwritten below
            model = nn.Sequential(make())
    except (RuntimeError, TypeError) as error:  # of torch, for want of memory
        asked = f"sizes {spec['sizes']}" if "sizes" in spec else f"{spec}"
        raise ModelError(f"cannot build a network of {asked}: {str(error).splitlines()[0]}") from error
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]
    for layer in layers:
        how = "glorot" if layer is layers[-1] else chosen.initialisation
        initialise(layer.weight, how, slope=chosen.slope, generator=random)
        assert layer.bias is not None
        nn.init.zeros_(layer.bias)
    attach(model, Card(spec=spec))
    return model


def _layers(sizes: list[int], settings: ModelSettings, activation: Activation) -> OrderedDict[str, nn.Module]:
    hidden = len(sizes) - 2
    layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
    if settings.input_dropout:
        layers["input_dropout"] = nn.Dropout(settings.input_dropout)
    for number, (inputs, units) in enumerate(pairwise(sizes[:-1])):
        layers[f"hidden{number}"] = nn.Linear(inputs, units)
        steps: dict[str, nn.Module] = {f"activation{number}": activation.make()}
        if settings.batch_norm:
            norm = nn.BatchNorm1d(units, eps=settings.batch_norm_epsilon, momentum=settings.batch_norm_momentum)
            normed = {f"norm{number}": norm}
            steps = {**steps, **normed} if settings.batch_norm == "after" else {**normed, **steps}
        layers.update(steps)
        if settings.dropout and number >= hidden - settings.dropout_layers:
            layers[f"dropout{number}"] = activation.dropout(settings.dropout)
    layers["output"] = nn.Linear(sizes[-2], sizes[-1])
    return layers
