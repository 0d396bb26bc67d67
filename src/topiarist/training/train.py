"""`train` and `train_many`: from a network, data and a configuration to a trained network and its history."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from topiarist.data import Data
from topiarist.errors import SettingsError, TopiaristWarning
from topiarist.models import attach, card_for
from topiarist.parallel import torch_threads
from topiarist.training.autograd_engine import AutogradEngine
from topiarist.training.checkpoint import Checkpoint
from topiarist.training.config import TrainConfig
from topiarist.training.engine import Engine
from topiarist.training.history import History
from topiarist.training.inference import numbers_of, suited_threads
from topiarist.training.loop import Loop, OnEpoch, Score
from topiarist.training.run import Run
from topiarist.training.stacked_engine import StackedEngine
from topiarist.training.tasks import (
    can_stack,
    check_task,
    class_weights,
    fingerprint,
    make_batches,
    validations,
)


def train(
    model: nn.Module,
    data: Data,
    config: TrainConfig | None = None,
    *,
    score: Score | None = None,
    checkpoint: Path | str | None = None,
    on_epoch: OnEpoch | None = None,
) -> History:
    """Train a network in place on the training part and say what happened; it ends in eval mode.

    `score(model)`, larger is better, takes the place of the monitored metric. `checkpoint` is a file that is written
    while training and taken up again by the same call after an interruption; it is removed at the end.
    """
    settled = TrainConfig() if config is None else config
    return train_many([model], [data], [settled], score=score, checkpoint=checkpoint, on_epoch=on_epoch)[0]


def train_many(
    models: Sequence[nn.Module],
    data: Data | Sequence[Data],
    config: TrainConfig | Sequence[TrainConfig],
    *,
    score: Score | None = None,
    checkpoint: Path | str | None = None,
    on_epoch: OnEpoch | None = None,
    stacked: bool = True,
) -> list[History]:
    """Train several networks in place, each on its own data: folds, seeds or members of an ensemble.

    Networks of one shape, made of linear layers, activations, dropout and batch norm, are trained as one batched
    computation; the configurations may then differ in seed and learning rate. All others, and all where `stacked` is
    False, are trained one after the other.
    """
    datas = [data] * len(models) if isinstance(data, Data) else list(data)
    configs = [config] * len(models) if isinstance(config, TrainConfig) else list(config)
    if not models or not len(models) == len(datas) == len(configs):
        found = f"{len(models)} networks, {len(datas)} data sets, {len(configs)} configurations"
        raise SettingsError(f"give one data set and one configuration a network; found {found}")
    for model, task, settings in zip(models, datas, configs, strict=True):
        check_task(model, task, settings, scored=score is not None)
    together = stacked and can_stack(models, datas, configs)
    groups = [range(len(models))] if together else [range(i, i + 1) for i in range(len(models))]
    histories: list[History] = []
    for group in groups:
        path = None if checkpoint is None else Path(f"{checkpoint}" if len(groups) == 1 else f"{checkpoint}.{group[0]}")
        chosen = [models[i] for i in group], [datas[i] for i in group], [configs[i] for i in group]
        histories += train_group(*chosen, stacked=together, score=score, path=path, on_epoch=on_epoch)
    for model, task, history in zip(models, datas, histories, strict=True):
        attach(model, card_for(model, task))
        if history.diverged_epoch is not None:
            warnings.warn(history.stopped, TopiaristWarning, stacklevel=2)
    return histories


def train_group(
    models: Sequence[nn.Module],
    datas: Sequence[Data],
    configs: Sequence[TrainConfig],
    *,
    stacked: bool,
    score: Score | None,
    path: Path | None,
    on_epoch: OnEpoch | None,
) -> list[History]:
    """Train networks that one engine can take, going on from the checkpoint where there is one."""
    config = configs[0]
    checkpoint = None if path is None else Checkpoint(path, fingerprint=fingerprint(models, datas, configs))
    snapshot = None if checkpoint is None else checkpoint.read()
    if snapshot is not None:
        for model, state in zip(models, snapshot.weights, strict=True):
            model.load_state_dict(state)
    threads = suited_threads(models[0]) if config.threads is None else config.threads
    with torch_threads(threads):
        for model in models:
            model.to(config.device)
        like = numbers_of(models[0])
        weights = class_weights(datas, configs, like)
        engine: Engine
        if stacked:
            engine = StackedEngine(models, configs, class_weights=None if weights is None else torch.stack(weights))
        else:
            engine = AutogradEngine(models[0], config, class_weights=None if weights is None else weights[0])
        batches = make_batches(models[0], datas, configs, like)
        if snapshot is None:
            runs = [Run(settings, batches.steps(member)) for member, settings in enumerate(configs)]
        else:
            runs = [Run.from_json(run, settings) for run, settings in zip(snapshot.runs, configs, strict=True)]
        loop = Loop(engine, batches, validations(datas), runs, score)
        if snapshot is not None:
            loop.resume(snapshot)
        histories = loop.fit(checkpoint=checkpoint, on_epoch=on_epoch)
    if checkpoint is not None:
        checkpoint.remove()
    return histories
