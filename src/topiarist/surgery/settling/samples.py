"""Calibration data with the answers of the whole network: all to learn from, and a part of them to judge by.

The part that judges is learnt from too. The refit before has seen it, so that a network which learns from the other
samples alone looks worse on it than it is. On digits (perceptrons of 15 to 50 % of their units, 20 to 1,000 samples),
such a judge refused 8 of 15 networks, while all 15 that learnt from all samples were nearer to the answers for new
ones. On Fashion-MNIST, 2 of 16 were further away, by 2 %. What bounds learning by heart is the number of steps.

Where a network treats each sample by itself, samples are drawn one by one. Otherwise, as where batches hold sequences
along their first axis or differ in shape, the batches stay as they came.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from topiarist.models.buffers import keeping_buffers
from topiarist.models.evaluation import evaluating
from topiarist.randomness import generator, isolated
from topiarist.surgery.calibration import CalibrationBatches, unreadable
from topiarist.surgery.settling.divergence import Answers
from topiarist.tracing.running import Args, Kwargs
from topiarist.tracing.trace import wanted_outputs

Inputs = tuple[Args, Kwargs]
JUDGING = 5  # one of so many samples
FEWEST_JUDGING, MOST_JUDGING = 64, 2048  # but so many; more judge no better
FEWEST_SAMPLES = 6  # fewer show nothing
LARGEST_BATCH, SMALLEST_BATCH = 512, 32
STEPS_PER_PASS = 16  # batches are that small a part of the samples
JUDGED_TOGETHER = 512  # samples that are run at a time to judge by
CHECKED_ROWS = 8  # in two orders: enough to tell whether a network treats samples by themselves


@dataclass(frozen=True)
class AnsweredBatch:
    """Inputs of a call with the answers of the whole network, and for how many samples."""

    inputs: Inputs
    answers: Answers
    samples: int


@dataclass(frozen=True)
class SettlingSamples:
    """How many samples to learn from, and the numbers of those to judge by; `batch` returns samples by their numbers.

    `batch_size` and `judged_size` are how many to take at a time, `batch_samples` is the least that a batch holds.
    """

    count: int
    judging: Tensor
    batch: Callable[[Tensor], AnsweredBatch]
    wanted: Sequence[Answers]
    batch_size: int
    judged_size: int
    batch_samples: int

    def drawn(self, seed: int) -> Iterator[AnsweredBatch]:
        """Yield batches to learn from without end, in a new order in each pass."""
        random = generator(seed, "settling")
        while True:
            order = torch.randperm(self.count, generator=random)
            for numbers in torch.split(order, self.batch_size)[: max(len(order) // self.batch_size, 1)]:
                yield self.batch(numbers)

    def judged(self) -> Iterator[AnsweredBatch]:
        """Yield the part to judge by."""
        return map(self.batch, torch.split(self.judging, self.judged_size))


def answered(whole: nn.Module, batches: CalibrationBatches, seed: int) -> SettlingSamples | None:
    """Return calibration data with the answers of a network; None where there is too little, or it answers nothing."""
    inputs = list(batches)
    answers = [answers_of(whole, each) for each in inputs]
    if not answers[0] or len({len(each) for each in answers}) > 1:
        return None
    pooled = _Pool.of(inputs, answers)
    if pooled is not None and pooled.is_row_by_row(whole):
        count = len(pooled.answers[0])
        if count < FEWEST_SAMPLES:
            return None
        size = suited_batch(count)
        judging = _judging(count, FEWEST_JUDGING, seed)
        return SettlingSamples(
            count, judging, pooled.rows, [pooled.answers], size, max(size, JUDGED_TOGETHER), batch_samples=size
        )
    samples = [samples_in(each) for each in inputs]

    def batch(numbers: Tensor) -> AnsweredBatch:
        number = int(numbers)
        return AnsweredBatch(_cloned(inputs[number]), answers[number], samples[number])

    return SettlingSamples(len(inputs), _judging(len(inputs), 1, seed), batch, answers, 1, 1, min(samples))


def suited_batch(count: int) -> int:
    """Return how many of so many samples to take at a time: a power of two, or all of a few."""
    size = LARGEST_BATCH
    while size > SMALLEST_BATCH and size * STEPS_PER_PASS > 1.1 * count:
        size //= 2
    return min(size, count)


def answers_of(model: nn.Module, inputs: Inputs) -> list[Tensor]:
    """Return what a network answers: the tensors of real numbers that it is run for."""
    args, kwargs = _cloned(inputs)
    try:
        with evaluating(model), isolated(0), keeping_buffers(model):
            return real_outputs(model(*args, **kwargs))
    except (RuntimeError, ValueError, TypeError) as error:
        raise unreadable(error) from error


def real_outputs(given: Any) -> list[Tensor]:
    """Return the tensors of real numbers among what a network returned."""
    return [tensor for tensor in wanted_outputs(given) if tensor.is_floating_point() and tensor.numel()]


def _judging(count: int, fewest: int, seed: int) -> Tensor:
    """Return which of so many samples, or batches, to judge by."""
    judging = min(max(count // JUDGING, min(count, fewest)), MOST_JUDGING)
    return torch.randperm(count, generator=generator(seed, "settling", "judging"))[:judging]


@dataclass(frozen=True)
class _Pool:
    """Samples of all batches in one tensor for each argument; other arguments are the same for all."""

    args: Args
    kwargs: Kwargs
    answers: list[Tensor]

    @classmethod
    def of(cls, inputs: Sequence[Inputs], answers: Sequence[Answers]) -> "_Pool | None":
        """Put batches together; None where they do not go together."""
        counts = [
            _rows_of([*args, *kwargs.values(), *found]) for (args, kwargs), found in zip(inputs, answers, strict=True)
        ]
        if None in counts or len({(len(args), tuple(kwargs)) for args, kwargs in inputs}) > 1:
            return None
        first = inputs[0]
        columns = [_joined([args[place] for args, _ in inputs]) for place in range(len(first[0]))]
        named = {name: _joined([kwargs[name] for _, kwargs in inputs]) for name in first[1]}
        given = [_joined([found[place] for found in answers]) for place in range(len(answers[0]))]
        everything = [*columns, *named.values(), *given]
        if any(each is NotImplemented for each in everything):
            return None
        return cls(tuple(columns), named, given)

    def rows(self, numbers: Tensor) -> AnsweredBatch:
        """Return some of the samples."""
        args = tuple(_picked(value, numbers) for value in self.args)
        kwargs = {name: _picked(value, numbers) for name, value in self.kwargs.items()}
        return AnsweredBatch((args, kwargs), [_picked(value, numbers) for value in self.answers], len(numbers))

    def is_row_by_row(self, model: nn.Module) -> bool:
        """Return whether a network answers each sample by itself: in another order, it answers the same."""
        forward = torch.arange(min(CHECKED_ROWS, len(self.answers[0])))
        there = answers_of(model, self.rows(forward).inputs)
        back = answers_of(model, self.rows(forward.flip(0)).inputs)
        return len(there) == len(back) and all(
            one.shape == other.shape and len(one) == len(forward) and _near(one, other.flip(0))
            for one, other in zip(there, back, strict=True)
        )


def _near(one: Tensor, other: Tensor) -> bool:
    finite = one.isfinite()
    if not torch.equal(finite, other.isfinite()):
        return False
    one, other = one[finite], other[finite]
    return not one.numel() or bool((one - other).abs().max() <= 1e-3 * one.abs().max())


def _rows_of(values: Sequence[Any]) -> int | None:
    """Return how many rows all tensors have; None where they differ, or there is none."""
    rows = {len(value) if value.ndim else None for value in values if isinstance(value, Tensor)}
    return rows.pop() if len(rows) == 1 else None


def _joined(values: Sequence[Any]) -> Any:
    """Return tensors one below the other, or the one value that all are; NotImplemented where neither can be."""
    first = values[0]
    if isinstance(first, Tensor):
        alike = all(isinstance(each, Tensor) and each.shape[1:] == first.shape[1:] for each in values)
        if not alike:
            return NotImplemented
        return first if len(values) == 1 else torch.cat(list(values))
    plain = isinstance(first, (bool, int, float, str, type(None)))
    return first if plain and all(each == first for each in values) else NotImplemented


def _picked(value: Any, numbers: Tensor) -> Any:
    return value.index_select(0, numbers.to(value.device)) if isinstance(value, Tensor) else value


def samples_in(inputs: Inputs) -> int:
    """Return how many samples the arguments of a call hold."""
    args, kwargs = inputs
    tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor) and value.ndim]
    return len(tensors[0]) if tensors else 1


def _cloned(inputs: Inputs) -> Inputs:
    """Return inputs that forward may write into."""
    args, kwargs = inputs
    return (
        tuple(value.clone() if isinstance(value, Tensor) else value for value in args),
        {name: value.clone() if isinstance(value, Tensor) else value for name, value in kwargs.items()},
    )
