"""Training with topology optimisation against plain training, from three topologies, as published and as we do it.

After Schiessler, Aydin, Linka and Cyron, Neural network surgery: Combining training with topology optimization (2021).
The paper chooses by the part that it reports. Here a validation part is held back from training, by which the Surgeon
chooses, and the test part is never seen; the figures of both are given. Beside each Surgeon stand plain training with
SGD and with Adam, all three from the same first weights, and plain training, from new weights, of the topology that the
Surgeon ended with: studies of their own, declared from the networks that the first one kept.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from typing import Any, Literal, NamedTuple

import torch
from torch import nn

from topiarist.data.source import Scaling
from topiarist.methods import Surgeon, published
from topiarist.methods.surgeon.surgeon import SurgeonMethod
from topiarist.models.activations import initialise
from topiarist.reproductions.surgeon.options import TOPOLOGIES, Setting, SurgeonScope, Topology
from topiarist.study.study import Study

Kind = Literal["sgd", "adam", "surgeon", "final"]
StudyTable = dict[str, Any]
METHODS: dict[Setting, type[SurgeonMethod]] = {"published": published.Surgeon, "ours": Surgeon}
PLAIN: tuple[Kind, ...] = ("sgd", "adam")
FIRST: tuple[Kind, ...] = (*PLAIN, "surgeon")
KINDS: tuple[Kind, ...] = (*FIRST, "final")  # "final": plain training of the Surgeon's last topology
RATES: dict[Kind, float] = {"sgd": 0.005, "adam": 0.001}  # the paper's appendix; what Adam's authors recommend
SCALINGS: dict[Setting, Scaling] = {"published": "minmax", "ours": "pixels"}  # section 4.1: pixels in [0, 1]
PAPER_DECISIONS = 10  # in a training: one every 10 of 100 epochs


def surgeon_of(scope: SurgeonScope, setting: Setting) -> SurgeonMethod:
    """Return the Surgeon of a setting; that of the paper decides ten times, however long the training."""
    training = METHODS[setting]().usual_training
    if scope.epochs is not None:
        training = training.model_copy(update={"epochs": scope.epochs})
    interval = max(1, round(training.epochs / PAPER_DECISIONS)) if setting == "published" else None
    return METHODS[setting](training=training, interval=interval)


def first_study(scope: SurgeonScope, data: str, *, seed: int) -> Study:
    """Declare plain training with SGD and Adam and the Surgeon, from every topology in every setting."""
    variants = [
        _variant(scope, topology, setting, kind, {"hidden": list(TOPOLOGIES[topology])})
        for topology, setting, kind in product(scope.topologies, scope.settings, FIRST)
    ]
    return _study(scope, data, variants, scope.seeds_from(seed), split_seed=seed)


def label_of(topology: Topology, setting: Setting, kind: Kind) -> str:
    """Name a configuration of the studies."""
    return f"{topology}, {setting}, {kind}"


def _variant(scope: SurgeonScope, topology: Topology, setting: Setting, kind: Kind, model: StudyTable) -> StudyTable:
    """Return the settings of a configuration; the Surgeon gets an untrained network, and trains it itself."""
    surgeon = surgeon_of(scope, setting)
    table = surgeon.model_dump(mode="json", exclude_unset=True)
    plain = {"optimizer": kind, "learning_rate": RATES[kind]} if kind in PLAIN else {}
    training = {"epochs": 0} if kind == "surgeon" else {**table["training"], **plain}
    method = {"method": {"name": surgeon.name, **table}} if kind == "surgeon" else {}
    data = {"scaling": SCALINGS[setting]}
    return {"name": label_of(topology, setting, kind), "data": data, "model": model, "training": training, **method}


def _study(scope: SurgeonScope, data: str, variants: list[StudyTable], seeds: list[int], *, split_seed: int) -> Study:
    limit = {} if scope.samples is None else {"samples": scope.samples}
    return Study(
        name=f"surgeon, {data}",
        data={"location": data, "seed": split_seed, **limit},
        variants=variants,
        seeds=seeds,
        stack=1,  # every network alone, so that its seconds are its own
    )


class LayerShape(NamedTuple):
    """A hidden layer: its units, whether it has a bias, and whether a ReLU follows; a truncated SVD leaves neither."""

    units: int
    bias: bool
    activated: bool


Start = tuple[Topology, Setting]
Ends = Mapping[Start, tuple[LayerShape, ...]]  # the hidden layers that the Surgeon of each start ended with


def hidden_layers(network: nn.Module) -> tuple[LayerShape, ...]:
    """Return the hidden layers of a network as the Surgeon left it."""
    parts = [part for part in network.modules() if isinstance(part, nn.Linear | nn.ReLU)]
    return tuple(
        LayerShape(part.out_features, part.bias is not None, isinstance(after, nn.ReLU))
        for part, after in pairwise(parts)
        if isinstance(part, nn.Linear)
    )


def fresh_network(*, input_shape: Sequence[int], classes: int, layers: Sequence[Sequence[Any]]) -> nn.Module:
    """Build a network of `LayerShape`s, with weights from torch's global generator, which a study seeds.

    They are those of `mlp`: He's where a ReLU follows, otherwise Glorot's; biases begin at 0.
    """
    modules: list[nn.Module] = [nn.Flatten()]
    width = torch.Size(input_shape).numel()
    for units, bias, activated in (*(LayerShape(*layer) for layer in layers), LayerShape(classes, True, False)):
        linear = nn.Linear(width, units, bias=bias)
        initialise(linear.weight, "he" if activated else "glorot", generator=torch.default_generator)
        if bias:
            nn.init.zeros_(linear.bias)
        modules += [linear, nn.ReLU()] if activated else [linear]
        width = units
    return nn.Sequential(*modules)


def final_study(scope: SurgeonScope, data: str, ends: Ends, *, seed: int, split_seed: int) -> Study:
    """Declare plain training of the topologies that the Surgeons of a seed ended with.

    There is one study per seed: a study runs every configuration with every seed, and these differ from seed to seed.
    """
    code = f"{__name__}:{fresh_network.__name__}"
    variants = [
        _variant(scope, *start, "final", {"code": code, "options": {"layers": list(layers)}})
        for start, layers in ends.items()
        if final_labels(ends)[start] == label_of(*start, "final")
    ]
    return _study(scope, data, variants, [seed], split_seed=split_seed)


def final_labels(ends: Ends) -> dict[Start, str]:
    """Name the configuration that trains each final topology: Surgeons that ended with the same one share it."""
    names: dict[tuple[Setting, tuple[LayerShape, ...]], str] = {}
    return {start: names.setdefault((start[1], layers), label_of(*start, "final")) for start, layers in ends.items()}
