"""`train` and `train_many`: from a network, data and a configuration to a trained network and its history."""

import copy
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from torch import nn

from topiarist.data import Data
from topiarist.errors import ModelError, SettingsError, TopiaristWarning
from topiarist.models.card import attach, card_for
from topiarist.tasks import OwnLoss
from topiarist.training.checkpoint import Checkpoint, fingerprint
from topiarist.training.config import TrainConfig
from topiarist.training.engines import computing
from topiarist.training.history import History
from topiarist.training.inference import settle_norms
from topiarist.training.loop import Loop, OnEpoch, Score
from topiarist.training.preparation import Teacher, check_teacher, check_trainable, stacks

OWN_LOSS = "own"  # in the record of a training whose loss is code of the user, which is not saved


def train(
    model: nn.Module,
    data: Data,
    config: TrainConfig | None = None,
    *,
    teacher: Teacher | None = None,
    score: Score | None = None,
    loss: OwnLoss | None = None,
    checkpoint: Path | str | None = None,
    on_epoch: OnEpoch | None = None,
) -> History:
    """Train a network in place on the training part; it ends in eval mode.

    Parameters
    ----------
    model : any network that returns logits (n_samples, n_classes), or as many numbers as the data's task needs
    data : what to train on; early stopping watches its validation part
    config : how to train; 100 epochs of Adam unless given
    teacher : a network to learn from, as `config.distillation` says, or its outputs for every training sample
        (n_samples, n_outputs): logits, or standardised numbers. So the teacher may be any model
    score : `score(model)`, larger is better, takes the place of the monitored metric
    loss : `loss(outputs, targets)`, one number or one per sample, takes the place of the task's loss. It is not saved
        with the network, and such networks are trained one by one
    checkpoint : a file that is written every few seconds; the same call resumes from it, and removes it at the end
    on_epoch : called after every epoch with its number and a list of one `Epoch`

    Returns
    -------
    History : all epochs, the one whose weights are kept, and why training stopped

    Raises
    ------
    DataError, ModelError, SettingsError : where the network cannot be trained on this data in this way

    Examples
    --------
    >>> from topiarist import TrainConfig, load_data, models
    >>> history = train(models.mlp([4, 8, 3]), load_data("iris"), TrainConfig(epochs=5))
    >>> history.stopped
    'all 5 epochs done'
    """
    settings = TrainConfig() if config is None else config
    teachers = None if teacher is None else [teacher]
    (history,) = train_many(
        [model], data, settings, teachers=teachers, score=score, loss=loss, checkpoint=checkpoint, on_epoch=on_epoch
    )
    return history


def train_many(
    models: Sequence[nn.Module],
    data: Data | Sequence[Data],
    config: TrainConfig | Sequence[TrainConfig],
    *,
    teachers: Sequence[Teacher] | None = None,
    score: Score | None = None,
    loss: OwnLoss | None = None,
    checkpoint: Path | str | None = None,
    on_epoch: OnEpoch | None = None,
    stacked: bool = True,
    padded: bool = False,
) -> list[History]:
    """Train several networks in place, each on its own data: folds, seeds or members of an ensemble.

    Networks of one shape, of linear layers, activations, dropout and batch norm, whose configurations differ at most in
    seed and learning rate, are trained as one batched computation, a stack. Others are trained one after the other.

    Parameters
    ----------
    models : networks, none of which share a parameter
    data, config : one for all, or one per network
    teachers : one per network, as in `train`; so are `score`, `loss`, `checkpoint` and `on_epoch`
    stacked : False trains every network by itself
    padded : True also stacks networks without dropout or norms that differ in their widths alone

    Returns
    -------
    list of History : one per network

    Raises
    ------
    DataError, ModelError, SettingsError : where a network cannot be trained on its data in this way

    Examples
    --------
    >>> from topiarist import TrainConfig, load_data, models
    >>> folds = load_data("iris").folds(3)
    >>> len(train_many([models.mlp([4, 8, 3]) for _ in folds], folds, TrainConfig(epochs=5)))
    3
    """
    datas = [data] * len(models) if isinstance(data, Data) else list(data)
    configs = [config] * len(models) if isinstance(config, TrainConfig) else list(config)
    if loss is not None:
        datas = [replace(each, task=replace(each.task, own_loss=loss)) for each in datas]
    taught = [None] * len(models) if teachers is None else list(teachers)
    _check(models, datas, configs, taught, scored=score is not None)
    alone = [([number], False) for number in range(len(models))]
    groups = stacks(models, datas, configs, padded=padded) if stacked else alone
    histories: dict[int, History] = {}
    files: list[Checkpoint] = []
    with _unchanged_if_interrupted(models if checkpoint is not None else ()):
        for members, together in groups:
            own = [models[i] for i in members], [datas[i] for i in members], [configs[i] for i in members]
            own_teachers = [teacher for teacher in (taught[i] for i in members) if teacher is not None]
            if checkpoint is not None:
                path = Path(checkpoint) if len(groups) == 1 else Path(f"{checkpoint}.{members[0]}")
                files.append(Checkpoint(path, fingerprint=fingerprint(*own, own_teachers, stacked=together)))
            with computing(*own):
                file = files[-1] if files else None
                trained = Loop(*own, own_teachers, stacked=together, score=score, checkpoint=file).fit(on_epoch)
            histories |= dict(zip(members, trained, strict=True))
    for number, model in enumerate(models):
        _finish(model, datas[number], configs[number], histories[number])
    for file in files:
        file.remove()
    return [histories[number] for number in range(len(models))]


def _check(
    models: Sequence[nn.Module],
    datas: Sequence[Data],
    configs: Sequence[TrainConfig],
    teachers: Sequence[Teacher | None],
    *,
    scored: bool,
) -> None:
    if not models or not len(models) == len(datas) == len(configs):
        found = f"{len(models)} networks, {len(datas)} data sets, {len(configs)} configurations"
        raise SettingsError(f"give one data set and one configuration per network; found {found}")
    if len(teachers) != len(models):
        raise SettingsError(f"give one teacher per network; found {len(teachers)} for {len(models)}")
    for model, data, config, teacher in zip(models, datas, configs, teachers, strict=True):
        check_trainable(model, data, config, scored=scored)
        check_teacher(model, teacher, data, config)
    owners = [id(parameter) for model in models for parameter in model.parameters()]
    if len(set(owners)) < len(owners):
        raise ModelError("two of the networks share a parameter: give each network its own")


def _finish(model: nn.Module, data: Data, config: TrainConfig, history: History) -> None:
    """Settle batch norm where asked, write the card, and warn of a training that diverged."""
    if config.precise_norms:
        settle_norms(model, data.train)
    settings = config.repeatable
    if data.task.own_loss is not None:
        settings["loss"] = OWN_LOSS
    known = card_for(model, data)
    task = None if known.task is None else known.task.uncalibrated()  # a temperature of before is stale
    card = replace(known, task=task, training=settings)
    attach(model, card if config.pruning is None else replace(card, bits=card.bits or 32))
    if history.diverged_epoch is not None:
        text = f"{history.stopped}: the weights of epoch {history.kept_epoch} are kept"
        warnings.warn(text, TopiaristWarning, stacklevel=3)


@contextmanager
def _unchanged_if_interrupted(models: Sequence[nn.Module]) -> Iterator[None]:
    """Restore the weights of networks where the block does not end, so that the same call can resume."""
    states = [copy.deepcopy(model.state_dict()) for model in models]
    try:
        yield
    except BaseException:
        for model, state in zip(models, states, strict=True):
            model.load_state_dict(state)
        raise
