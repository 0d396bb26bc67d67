"""The baseline: a network that suits the data, well trained, of several seeds at once."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from torch import nn

from topiarist.data import Data
from topiarist.devices import find_device
from topiarist.methods.job import calibration_inputs
from topiarist.models import Ensemble, card_of, mlp, vgg
from topiarist.models.copying import copied
from topiarist.models.stacked import stackable
from topiarist.randomness import child_seed, generator, isolated
from topiarist.rightsizing.backbone import Backbone
from topiarist.rightsizing.folds import Fold
from topiarist.tasks import TaskKind
from topiarist.training import History, TrainConfig
from topiarist.training.inference import part_logits, weights_of
from topiarist.training.loop import OnEpoch
from topiarist.training.rescue import train_with_rescue
from topiarist.training.tables.distilling import ACTIVATION

HIDDEN = (128, 64)
BLOCKS = (2, 2, 3, 3)  # of the scenes' VGG, the strongest of the paper's small networks
SMALLEST_IMAGE = 8  # pixels: four poolings need as many
DROPOUT = 0.2
STEADY = {"optimizer": "adam", "learning_rate": 0.003}
DECAYING = {"optimizer": "adamw", "learning_rate": 0.02, "weight_decay": 0.3}
# How networks of a stack are trained. Numbers and labels, 40 epochs, 4 folds with 2 seeds each, STEADY → DECAYING:
# RMSE of diabetes 61.9 → 58.5, of friedman1 2.15 → 1.30; mean ROC AUC of five labels 0.962 → 0.965.
RECIPES: Mapping[TaskKind, Mapping[str, Any]] = {"classes": STEADY, "numbers": DECAYING, "labels": DECAYING}
# From so many training samples on. A stack of ten on 319 rows takes 0.9 of the time with 32 instead of 16. With 32 and
# the plan of few rows, scores on 4,000 other rows of three generated tables were 0.798, 0.944 and 0.845; with 16, four
# folds and 30 epochs of fine-tuning 0.797, 0.945 and 0.844.
BATCH_SIZES = {True: {20_000: 128, 200: 32, 0: 8}, False: {20_000: 128, 600: 32, 200: 16, 0: 8}}

Model = nn.Module | Callable[[], nn.Module] | Backbone
Build = Callable[[int], nn.Module]


class BaselineTraining(Protocol):
    """Trains networks in place and returns their histories, and notes: as `train_with_rescue` does."""

    def __call__(
        self,
        models: Sequence[nn.Module],
        datas: Sequence[Data],
        configs: Sequence[TrainConfig],
        *,
        on_epoch: OnEpoch | None = None,
    ) -> tuple[list[History], tuple[str, ...]]:
        """Train them."""
        ...


def fold_with(data: Data, members: Sequence[nn.Module], best: nn.Module, seed: int) -> Fold:
    """Return a fold with its baselines; those of all seeds together teach."""
    teacher = best if len(members) == 1 else Ensemble(members, kind=data.task.kind)
    return Fold(data=data, whole=best, members=members, teacher=teacher, seed=seed)


def folds_with(datas: Sequence[Data], members: Sequence[nn.Module], best: nn.Module, seed: int) -> list[Fold]:
    """Return folds that train on the same samples, with the same baselines and one copy of what units are seen with."""
    shared = calibration_inputs(best, datas[-1].train, seed)
    return [replace(fold_with(data, members, best, seed), inputs=shared) for data in datas]


def builder(model: Model | None, data: Data, device: str | None = None, *, hidden: Sequence[int] = HIDDEN) -> Build:
    """Return what builds a fresh baseline for a seed, on a device; a network that is given is copied, weights and all,
    a backbone gets a new last layer.

    Without a device, a network stays where it is built. `hidden` are the widths of a perceptron, where that suits.
    """
    if device is not None:
        place, build_anywhere = find_device(device), builder(model, data, hidden=hidden)
        return lambda seed: build_anywhere(seed).to(place)
    if model is None:
        return lambda seed: _suited_network(data, seed, hidden)
    if isinstance(model, Backbone):
        backbone = model
        return lambda seed: backbone.start(data.task.outputs, seed)
    if isinstance(model, nn.Module):
        given = model
        return lambda seed: copied(given)
    make = model

    def build(seed: int) -> nn.Module:
        with isolated(seed):
            return make()

    return build


def _suited_network(data: Data, seed: int, hidden: Sequence[int]) -> nn.Module:
    """Build the network to start from where the user names none: with convolutions for images."""
    shape, outputs, random = data.input_shape, data.task.outputs, generator(seed, "initial weights")
    if len(shape) == 3 and min(shape[1:]) >= SMALLEST_IMAGE:
        return vgg(*BLOCKS, input_shape=shape, classes=outputs, dropout=DROPOUT, generator=random)
    return mlp([math.prod(shape), *hidden, outputs], ACTIVATION, generator=random)


def describe(model: nn.Module) -> str:
    """Return a network's name: one of ours by its sizes, another by its class."""
    spec = card_of(model).spec or {}
    if "sizes" in spec:
        return f"mlp {'-'.join(map(str, spec['sizes']))}"
    return str(spec.get("family", type(model).__name__))


def baseline_training(data: Data, epochs: int, seed: int, network: nn.Module) -> TrainConfig:
    """Return how such a baseline is trained."""
    together = stackable(network)
    recipe = RECIPES[data.task.kind] if together else STEADY
    return TrainConfig(
        epochs=epochs,
        batch_size=next(size for fewest, size in BATCH_SIZES[together].items() if len(data.train) >= fewest),
        schedule="cosine",
        early_stopping=max(5, epochs // 4),
        precise_norms=True,
        seed=seed,
        **recipe,
    )


def train_baselines(
    build: Build,
    datas: Sequence[Data],
    *,
    seeds: int,
    epochs: int,
    seed: int,
    on_epoch: OnEpoch | None = None,
    fit: BaselineTraining = train_with_rescue,
) -> tuple[list[Fold], History, tuple[str, ...]]:
    """Train networks of several seeds on each of several data sets, those of one shape as one computation.

    `fit` trains them in place. Return a fold for each data set, the history of the last one's best network, and notes
    on networks that had to be trained again.
    """
    numbers = [
        [child_seed(seed, "baseline", fold, member) % 2**32 for member in range(seeds)] for fold in range(len(datas))
    ]
    networks = [[build(number) for number in row] for row in numbers]
    configs = [
        baseline_training(data, epochs, number, networks[0][0])
        for data, row in zip(datas, numbers, strict=True)
        for number in row
    ]
    histories, notes = fit(
        [network for row in networks for network in row],
        [data for data in datas for _ in range(seeds)],
        configs,
        on_epoch=on_epoch,
    )
    folds = []
    for data, row in zip(datas, networks, strict=True):
        weights = weights_of(data.validation)
        losses = [data.task.loss_of(*part_logits(network, data.validation), weights=weights) for network in row]
        best = min(range(seeds), key=lambda member: losses[member] if math.isfinite(losses[member]) else math.inf)
        folds.append(fold_with(data, row, row[best], seed))
    return folds, histories[(len(datas) - 1) * seeds + best], notes
