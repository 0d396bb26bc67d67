"""Calibration data with the answers of the whole network: all to learn from, and a part of them to judge by.

The part that judges is learnt from too. The refit before has seen it, so that a network which learns from the other
samples alone looks worse on it than it is. On digits (perceptrons of 15 to 50 % of their units, 20 to 1,000 samples),
such a judge refused 8 of 15 networks, while all 15 that learnt from all samples were nearer to the answers for new
ones. On Fashion-MNIST, 2 of 16 were further away, by 2 %. What bounds learning by heart is the number of steps.

Where a network treats each sample by itself, samples are drawn one by one, and where they are few, mixtures of them are
samples too: `mixtures.py`. Otherwise, as where batches hold sequences
along their first axis or differ in shape, the batches stay as they came.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from topiarist.memory import return_freed
from topiarist.randomness import generator
from topiarist.surgery.calibration import CalibrationBatches
from topiarist.surgery.settling.divergence import Answers
from topiarist.surgery.settling.macs import uses_weights_once
from topiarist.surgery.settling.mixtures import fresh_mixtures, suited_mixtures, with_mixtures
from topiarist.surgery.settling.pool import AnsweredBatch, SamplePool, answers_of, cloned, samples_in

JUDGING = 5  # one of so many samples
FEWEST_JUDGING, MOST_JUDGING = 64, 2048  # but so many; more judge no better
FEWEST_SAMPLES = 6  # fewer show nothing
# A tenth of the units, 10,000 samples, as many passes over them: in batches of 512, 256 and 128, LeNet-300-100 on
# Fashion-MNIST ends at 86.9, 86.8 and 86.6 %, the convolutional LeNet on MNIST at 94.7, 94.9 and 95.1 %.
LARGEST_BATCH, LARGEST_IMAGE_BATCH, SMALLEST_BATCH = 512, 128, 32
# Few parameters cannot learn many samples by heart, and like more and smaller steps still. The convolutional LeNet with
# 286 parameters and 10,000 images agrees on 88.4 % of 10,000 new ones after 2,930 steps of 128, on 89.6 % after 5,860
# of 64, in the same time.
FEW_PARAMETERS = 0.1  # per sample
FEW_PARAMETERS_IMAGE_BATCH = 64  # the comparison above
STEPS_PER_PASS = 16  # batches are that small a part of the samples
JUDGED_TOGETHER = 512  # samples that are run at a time to judge by
LARGE_BYTES = 2**24  # 16 MB of samples, beside which what copies of them left behind is worth giving back


@dataclass(frozen=True)
class SettlingSamples:
    """How many samples to learn from, and the numbers of those to judge by; `batch` returns samples by their numbers.

    `batch_size` and `judged_size` are how many to take at a time, `batch_samples` is the least that a batch holds.
    `originals` are the samples, or batches, that are no mixtures of others. `fresh` returns samples too, with mixtures
    made anew and no answers; None where there are no mixtures.
    """

    count: int
    judging: Tensor
    batch: Callable[[Tensor], AnsweredBatch]
    wanted: Sequence[Answers]
    batch_size: int
    judged_size: int
    batch_samples: int
    originals: int
    fresh: Callable[[Tensor, torch.Generator], AnsweredBatch] | None = None

    def drawn(self, seed: int, *, unanswered: bool = False) -> Iterator[AnsweredBatch]:
        """Yield batches to learn from without end, in a new order in each pass; if allowed, unanswered ones."""
        random = generator(seed, "settling")
        fresh = self.fresh if unanswered else None
        while True:
            order = torch.randperm(self.count, generator=random)
            for numbers in torch.split(order, self.batch_size)[: max(len(order) // self.batch_size, 1)]:
                yield self.batch(numbers) if fresh is None else fresh(numbers, random)

    def judged(self) -> Iterator[AnsweredBatch]:
        """Yield the part to judge by."""
        return map(self.batch, torch.split(self.judging, self.judged_size))


def answered(
    whole: nn.Module, batches: CalibrationBatches, seed: int, *, parameters: int | None = None
) -> SettlingSamples | None:
    """Return calibration data with the answers of a network; None where there is too little, or it answers nothing.

    `parameters` are those of the network that learns from them; without, they are not few.
    """
    inputs = list(batches)
    answers = [answers_of(whole, each) for each in inputs]
    if not answers[0] or len({len(each) for each in answers}) > 1:
        return None
    pooled = SamplePool.of(inputs, answers)
    if pooled is not None and pooled.is_row_by_row(whole):
        inputs.clear()  # the pool holds copies of them
        if len(pooled) < FEWEST_SAMPLES:
            return None
        originals = len(pooled)
        size = suited_batch(originals, _largest_batch(pooled, whole, are_few(parameters, originals)))
        pooled = pooled.with_room(suited_mixtures(pooled, whole))  # there is one copy of the samples from here on
        if pooled.nbytes > LARGE_BYTES:
            return_freed()
        mixed = with_mixtures(pooled, whole, originals, seed)
        count = len(mixed)
        judging, judged = _judging(count, FEWEST_JUDGING, seed), max(size, JUDGED_TOGETHER)
        fresh = partial(fresh_mixtures, mixed.first(originals)) if count > originals else None
        return SettlingSamples(count, judging, mixed.rows, [mixed.answers], size, judged, size, originals, fresh)
    samples = [samples_in(each) for each in inputs]

    def batch(numbers: Tensor) -> AnsweredBatch:
        number = int(numbers)
        return AnsweredBatch(cloned(inputs[number]), answers[number], samples[number])

    count = len(inputs)
    return SettlingSamples(count, _judging(count, 1, seed), batch, answers, 1, 1, min(samples), count)


def are_few(parameters: int | None, samples: int) -> bool:
    """Return whether so many parameters, None for very many, are too few to learn the samples by heart."""
    return parameters is not None and parameters < FEW_PARAMETERS * samples


def suited_batch(count: int, largest: int) -> int:
    """Return how many of so many samples to take at a time: a power of two, or all of a few."""
    size = largest
    while size > SMALLEST_BATCH and size * STEPS_PER_PASS > 1.1 * count:
        size //= 2
    return min(size, count)


def _largest_batch(pooled: SamplePool, whole: nn.Module, few_parameters: bool) -> int:
    """Return how many samples to take at a time at most: fewer where weights meet many places of an image."""
    if not pooled.is_of_images or uses_weights_once(whole, pooled.rows(torch.arange(1))):
        return LARGEST_BATCH
    return FEW_PARAMETERS_IMAGE_BATCH if few_parameters else LARGEST_IMAGE_BATCH


def _judging(count: int, fewest: int, seed: int) -> Tensor:
    """Return which of so many samples, or batches, to judge by."""
    judging = min(max(count // JUDGING, min(count, fewest)), MOST_JUDGING)
    return torch.randperm(count, generator=generator(seed, "settling", "judging"))[:judging]
