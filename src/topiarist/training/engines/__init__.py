"""What runs networks in training: `AutogradEngine` one of any kind, `StackedEngine` many of one shape.

The loop asks the same of both. Members are numbered as they are now, from 0; dropout draws from the seed and the
epoch's number alone.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from topiarist.data import Data
from topiarist.devices import find_device
from topiarist.models.evaluation import numbers_of
from topiarist.models.memory_format import channels_last
from topiarist.threads import torch_threads, without_denormals
from topiarist.training.config import TrainConfig
from topiarist.training.engines.autograd import AutogradEngine
from topiarist.training.engines.batching import class_weights
from topiarist.training.engines.pruner import Pruner
from topiarist.training.engines.stacked import StackedEngine
from topiarist.training.inference import example_input, suited_threads

Engine = AutogradEngine | StackedEngine


@contextmanager
def computing(models: Sequence[nn.Module], datas: Sequence[Data], configs: Sequence[TrainConfig]) -> Iterator[None]:
    """Let torch compute inside the block as suits the training of these networks, which are put on their device."""
    for model, config in zip(models, configs, strict=True):
        if config.device is not None:
            model.to(find_device(config.device))
    threads = suited_threads(models[0]) if configs[0].threads is None else configs[0].threads
    with torch_threads(threads), without_denormals(), channels_last(models, example_input(models[0], datas[0])):
        yield


def make_engine(
    models: Sequence[nn.Module],
    datas: Sequence[Data],
    configs: Sequence[TrainConfig],
    teachers: Sequence[nn.Module] = (),
    *,
    stacked: bool,
) -> Engine:
    """Return what runs networks in training, where they lie; a teacher answers where it lies."""
    weights, task = class_weights(datas, configs, numbers_of(models[0])), datas[0].task.with_loss(configs[0].loss)
    if stacked:
        return StackedEngine(models, configs, task, class_weights=None if weights is None else torch.stack(weights))
    model, config, pruner = models[0], configs[0], None
    if config.pruning is not None:
        pruner = Pruner(model, config.pruning, config.prunings, example_input=example_input(model, datas[0]))
    own, teacher = None if weights is None else weights[0], next(iter(teachers), None)
    return AutogradEngine(model, config, task, class_weights=own, teacher=teacher, pruner=pruner)
