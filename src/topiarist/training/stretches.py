"""A stretch of a training: some steps of one network from where it stands, and what its optimizer then remembers.

Stretch after stretch, a network is trained as `train` trains it at once: the order of samples, the rates and, where
stretches are whole epochs, the noise are the same. Between two of them its structure may change.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from torch import nn

from topiarist.data import Data
from topiarist.training.config import TrainConfig
from topiarist.training.engines import computing, make_engine
from topiarist.training.engines.batching import make_batches
from topiarist.training.engines.steps import Memory
from topiarist.training.history import TrainingRun
from topiarist.training.preparation import stack_key
from topiarist.training.sums import LossSums


@dataclass(frozen=True)
class Stretch:
    """The mean loss over the samples of a stretch (NaN if it diverged), and what the optimizer then remembers."""

    loss: float
    memory: Memory


def train_stretch(
    model: nn.Module, data: Data, config: TrainConfig, *, done: int, steps: int, memory: Memory | None = None
) -> Stretch:
    """Make some steps in place after those that are `done`; without a memory, the optimizer begins anew."""
    modes = {module: module.training for module in model.modules()}
    with computing([model], [data], [config]):
        engine = make_engine([model], [data], [config], stacked=stack_key(model, data, config) is not None)
        batches = make_batches([model], [data], [config])
        engine.load_memory(memory or {}, done)
        run = TrainingRun(config, batches.steps(0))
        sums = LossSums()
        for epoch, first, last in pieces(done, steps, run.steps_per_epoch):
            run.steps = epoch * run.steps_per_epoch
            rates = run.rates()[first:last]
            with engine.epoch(epoch + 1 if first == 0 else -(run.steps + first)):
                some = batches.epoch(epoch + 1, first, last)
                for batch, rate in zip(some, rates, strict=True):
                    sums.add(*engine.step(batch, [rate]))
        engine.write_back()
        for module, mode in modes.items():
            module.training = mode
        loss = 0.0 if not steps else sums.means()[0]
        return Stretch(loss if engine.finite()[0] else math.nan, engine.memory())


def steps_per_epoch(model: nn.Module, data: Data, config: TrainConfig) -> int:
    """Return how many steps a network makes in an epoch."""
    return make_batches([model], [data], [config]).steps(0)


def pieces(done: int, steps: int, per_epoch: int) -> Iterator[tuple[int, int, int]]:
    """Yield epochs, counted from 0, with the first and the last of the steps that a stretch makes in each.

    After 8 steps of epochs of 10, 5 more are (0, 8, 10) and (1, 0, 3).
    """
    end = done + steps
    while done < end:
        epoch, first = divmod(done, per_epoch)
        last = min(per_epoch, first + end - done)
        yield epoch, first, last
        done += last - first
