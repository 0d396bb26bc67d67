"""`train` and `train_many`: from a network, data and a configuration to a trained network and its history."""

import copy
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from topiarist.data import Data
from topiarist.errors import ModelError, SettingsError, TopiaristWarning
from topiarist.models import attach, card_for
from topiarist.models.evaluation import numbers_of, placed
from topiarist.models.memory_format import channels_last
from topiarist.threads import torch_threads, without_denormals
from topiarist.training.autograd_engine import AutogradEngine
from topiarist.training.checkpoint import Checkpoint, Snapshot
from topiarist.training.config import TrainConfig
from topiarist.training.engine import Engine
from topiarist.training.history import History
from topiarist.training.inference import first_sample, suited_threads
from topiarist.training.loop import Loop, OnEpoch, Score
from topiarist.training.norms import settle_norms
from topiarist.training.pruner import Pruner
from topiarist.training.run import Run
from topiarist.training.stacked_engine import StackedEngine
from topiarist.training.tasks import (
    answers_beforehand,
    check_task,
    check_teacher,
    class_weights,
    fingerprint,
    make_batches,
    stacks,
    validations,
)


def train(
    model: nn.Module,
    data: Data,
    config: TrainConfig | None = None,
    *,
    teacher: nn.Module | None = None,
    score: Score | None = None,
    checkpoint: Path | str | None = None,
    on_epoch: OnEpoch | None = None,
) -> History:
    """Train a network in place on the training part and say what happened; it ends in eval mode.

    `teacher` is a network to learn from, as `config.distillation` says. `score(model)`, larger is better, takes the
    place of the monitored metric. `checkpoint` is a file that is written every few seconds while training, taken up
    again by the same call after an interruption, and removed at the end.
    """
    settled = TrainConfig() if config is None else config
    teachers = None if teacher is None else [teacher]
    return train_many(
        [model], [data], [settled], teachers=teachers, score=score, checkpoint=checkpoint, on_epoch=on_epoch
    )[0]


def train_many(
    models: Sequence[nn.Module],
    data: Data | Sequence[Data],
    config: TrainConfig | Sequence[TrainConfig],
    *,
    teachers: Sequence[nn.Module] | None = None,
    score: Score | None = None,
    checkpoint: Path | str | None = None,
    on_epoch: OnEpoch | None = None,
    stacked: bool = True,
) -> list[History]:
    """Train several networks in place, each on its own data: folds, seeds or members of an ensemble.

    Networks of one shape, made of linear layers, activations, dropout and batch norm, whose configurations differ at
    most in seed and learning rate, are trained as one batched computation; so are others of another shape. What cannot
    be stacked, and everything where `stacked` is False, is trained one after the other.
    """
    datas = [data] * len(models) if isinstance(data, Data) else list(data)
    configs = [config] * len(models) if isinstance(config, TrainConfig) else list(config)
    if not models or not len(models) == len(datas) == len(configs):
        found = f"{len(models)} networks, {len(datas)} data sets, {len(configs)} configurations"
        raise SettingsError(f"give one data set and one configuration a network; found {found}")
    taught = [None] * len(models) if teachers is None else list(teachers)
    if len(taught) != len(models):
        raise SettingsError(f"give one teacher a network; found {len(taught)} for {len(models)}")
    for model, task, settings, teacher in zip(models, datas, configs, taught, strict=True):
        check_task(model, task, settings, scored=score is not None)
        check_teacher(model, teacher, task, settings)
    check_apart(models)
    groups = stacks(models, datas, configs) if stacked else [([number], False) for number in range(len(models))]
    histories: dict[int, History] = {}
    checkpoints: list[Checkpoint] = []
    with untouched_if_interrupted(models if checkpoint is not None else ()):
        for group, together in groups:
            chosen = [models[i] for i in group], [datas[i] for i in group], [configs[i] for i in group]
            learned_from = [teacher for teacher in (taught[i] for i in group) if teacher is not None]
            if checkpoint is not None:
                path = Path(checkpoint) if len(groups) == 1 else Path(f"{checkpoint}.{group[0]}")
                checkpoints.append(Checkpoint(path, fingerprint=fingerprint(*chosen, learned_from, stacked=together)))
            kept = checkpoints[-1] if checkpoints else None
            trained = train_group(
                *chosen, learned_from, stacked=together, score=score, checkpoint=kept, on_epoch=on_epoch
            )
            histories |= dict(zip(group, trained, strict=True))
    for number, (model, task, settings) in enumerate(zip(models, datas, configs, strict=True)):
        if settings.precise_norms:
            settle_norms(model, task.train)
        training = settings.model_dump(mode="json", exclude_defaults=True)
        card = replace(card_for(model, task), training=training)
        attach(model, card if settings.pruning is None else replace(card, bits=card.bits or 32))
        if histories[number].diverged_epoch is not None:
            said = f"{histories[number].stopped}: the weights of epoch {histories[number].kept_epoch} are kept"
            warnings.warn(said, TopiaristWarning, stacklevel=2)
    for done in checkpoints:
        done.remove()
    return [histories[number] for number in range(len(models))]


def train_group(
    models: Sequence[nn.Module],
    datas: Sequence[Data],
    configs: Sequence[TrainConfig],
    teachers: Sequence[nn.Module],
    *,
    stacked: bool,
    score: Score | None,
    checkpoint: Checkpoint | None,
    on_epoch: OnEpoch | None,
) -> list[History]:
    """Train networks that one engine can take, going on from the checkpoint where there is one."""
    snapshot = None if checkpoint is None else checkpoint.read()
    if snapshot is not None:
        for model, state in zip(models, snapshot.weights, strict=True):
            model.load_state_dict(state)
    threads = suited_threads(models[0]) if configs[0].threads is None else configs[0].threads
    with torch_threads(threads), without_denormals(), channels_last(models, examples_for(models[0], datas[0])):
        loop = make_loop(models, datas, configs, teachers, stacked=stacked, score=score, snapshot=snapshot)
        histories = loop.fit(checkpoint=checkpoint, on_epoch=on_epoch)
    if checkpoint is not None:
        checkpoint.write(loop.snapshot())
    return histories


def make_loop(
    models: Sequence[nn.Module],
    datas: Sequence[Data],
    configs: Sequence[TrainConfig],
    teachers: Sequence[nn.Module],
    *,
    stacked: bool,
    score: Score | None,
    snapshot: Snapshot | None,
) -> Loop:
    """Put engine, batches and runs together, at the beginning or where a snapshot was made."""
    answers = answers_beforehand(teachers, datas, configs)
    engine = make_engine(models, datas, configs, () if answers else teachers, stacked=stacked)
    batches = make_batches(models[0], datas, configs, numbers_of(models[0]), answers)
    if snapshot is None:
        runs = [begin(settings, batches.steps(member)) for member, settings in enumerate(configs)]
    else:
        runs = [Run.from_json(run, settings) for run, settings in zip(snapshot.runs, configs, strict=True)]
    watched = [data.train for data in datas] if configs[0].watch_training else []
    loop = Loop(engine, batches, validations(datas), runs, score, watched)
    if snapshot is not None:
        loop.resume(snapshot)
    return loop


def make_engine(
    models: Sequence[nn.Module],
    datas: Sequence[Data],
    configs: Sequence[TrainConfig],
    teachers: Sequence[nn.Module] = (),
    *,
    stacked: bool,
) -> Engine:
    """Give what runs networks in training, and put them on their device."""
    for model in (*models, *teachers):
        model.to(configs[0].device)
    weights = class_weights(datas, configs, numbers_of(models[0]))
    if stacked:
        joint = None if weights is None else torch.stack(weights)
        return StackedEngine(models, configs, class_weights=joint)
    own, teacher = None if weights is None else weights[0], next(iter(teachers), None)
    pruner = pruner_for(models[0], datas[0], configs[0])
    return AutogradEngine(models[0], configs[0], class_weights=own, teacher=teacher, pruner=pruner)


def pruner_for(model: nn.Module, data: Data, config: TrainConfig) -> Pruner | None:
    """Give what prunes a network while it is trained; None where nothing does."""
    if config.pruning is None:
        return None
    return Pruner(model, config.pruning, config.prunings, example_input=examples_for(model, data))


def examples_for(model: nn.Module, data: Data) -> Tensor:
    """Give two samples as a network reads them."""
    return placed(torch.cat([first_sample(data.train)] * 2), numbers_of(model))


def begin(config: TrainConfig, steps_per_epoch: int) -> Run:
    """Return a run that has made the steps of the epochs before the first."""
    begun, total = config.after_epoch * steps_per_epoch, config.total_epochs(steps_per_epoch)
    if config.steps is not None and (begun >= config.steps or (config.until_epoch or 0) > total):
        asked = f"after_epoch {config.after_epoch}" if begun >= config.steps else f"until_epoch {config.until_epoch}"
        found = f"{config.steps} steps are {config.steps / steps_per_epoch:.4g} epochs of {steps_per_epoch} steps"
        raise SettingsError(f"{asked} is beyond the end of the training: {found}")
    return Run(config, steps_per_epoch, steps=config.after_epoch * steps_per_epoch)


@contextmanager
def untouched_if_interrupted(models: Sequence[nn.Module]) -> Iterator[None]:
    """Give networks back their weights where the block does not end, so that the same call can go on."""
    states = [copy.deepcopy(model.state_dict()) for model in models]
    try:
        yield
    except BaseException:
        for model, state in zip(models, states, strict=True):
            model.load_state_dict(state)
        raise


def check_apart(models: Sequence[nn.Module]) -> None:
    """Refuse networks that have a parameter in common, or are one and the same."""
    owners = [id(parameter) for model in models for parameter in model.parameters()]
    if len(set(owners)) < len(owners):
        raise ModelError("two of the networks share a parameter: give each network its own")
