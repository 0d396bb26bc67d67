"""A stretch of a training: some steps of one network from where it stands, and what its optimizer then remembers.

Stretch after stretch, a network is trained as `train` trains it at once: the order of samples, the rates and, where
stretches are whole epochs, the noise are the same. Between two of them its structure may change.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from topiarist.data import Data
from topiarist.models.evaluation import numbers_of
from topiarist.models.memory_format import channels_last
from topiarist.threads import torch_threads, without_denormals
from topiarist.training.config import TrainConfig
from topiarist.training.engine import Memory
from topiarist.training.inference import suited_threads
from topiarist.training.run import Run
from topiarist.training.tasks import make_batches, stack_key
from topiarist.training.train import examples_for, make_engine


@dataclass(frozen=True)
class Stretch:
    """What a stretch came to: the mean loss over its samples, and what the optimizer remembers of each parameter.

    The loss is no number where the training diverged.
    """

    loss: float
    memory: Memory


def train_stretch(
    model: nn.Module, data: Data, config: TrainConfig, *, done: int, steps: int, memory: Memory | None = None
) -> Stretch:
    """Make some steps in place after those that are `done`; without a memory, the optimizer begins anew."""
    threads = suited_threads(model) if config.threads is None else config.threads
    modes = {module: module.training for module in model.modules()}
    with torch_threads(threads), without_denormals(), channels_last([model], examples_for(model, data)):
        engine = make_engine([model], [data], [config], stacked=stack_key(model, data, config) is not None)
        batches = make_batches(model, [data], [config], numbers_of(model))
        engine.remind(memory or {}, done)
        run = Run(config, batches.steps(0))
        sums = []
        for epoch, first, last in pieces(done, steps, run.steps_per_epoch):
            run.steps = epoch * run.steps_per_epoch
            rates = run.rates()[first:last]
            with engine.epoch(epoch + 1 if first == 0 else -(run.steps + first)):
                some = batches.epoch(epoch + 1, first, last)
                sums += [engine.step(batch, [rate]) for batch, rate in zip(some, rates, strict=True)]
        engine.write_back()
        for module, mode in modes.items():
            module.training = mode
        return Stretch(mean_loss(sums) if engine.finite()[0] else math.nan, engine.memory())


def steps_per_epoch(model: nn.Module, data: Data, config: TrainConfig) -> int:
    """Give how many steps a network makes in an epoch."""
    return make_batches(model, [data], [config], numbers_of(model)).steps(0)


def pieces(done: int, steps: int, per_epoch: int) -> Iterator[tuple[int, int, int]]:
    """Give epochs, counted from 0, with the first and the last of the steps that a stretch makes in each."""
    end = done + steps
    while done < end:
        epoch, first = divmod(done, per_epoch)
        last = min(per_epoch, first + end - done)
        yield epoch, first, last
        done += last - first


def mean_loss(sums: list[tuple[torch.Tensor, torch.Tensor]]) -> float:
    """Give the mean of weighted losses over all samples; 0 of none."""
    if not sums:
        return 0.0
    totals, weights = (torch.cat(column, dim=1).double().sum() for column in zip(*sums, strict=True))
    return float(totals / weights)
