"""Mixtures of calibration samples, with the answers of the whole network to them, where samples are few.

A mixture is λ·x + (1 − λ)·x', λ drawn evenly from 0 to 1 for each pair of samples (after Zhang and others, mixup,
2018). The whole network answers to any input, so mixtures tell how it answers between the samples that there are. What
is learnt from them is its function, not the samples by heart (Beyer and others, Knowledge distillation: a good teacher
is patient and consistent, 2022).

Where the whole network runs at every step anyway, because layers inside are compared, mixtures are made anew at each
step; elsewhere, each is made and answered once.
"""

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from topiarist.errors import ModelError
from topiarist.randomness import generator
from topiarist.surgery.settling.macs import rough_macs, uses_weights_once
from topiarist.surgery.settling.pool import AnsweredBatch, SamplePool, answers_of

# Digits, perceptrons of 3,411 and 2,067 parameters, 1,258 samples, points below the whole network: without mixtures 0.9
# and 1.7 (mean of four), three of each sample 0.5 and 0.7 (six), seven of each 0.4 for the first (ten). With 10,000
# samples of Fashion-MNIST, LeNet-300-100 with a tenth of its units, with as many parameters allotted freely, and with a
# fifth of its units comes to 0.120, 0.093 and 0.048 of the answers for new samples, and with three mixtures of each to
# 0.089, 0.078 and 0.039.
ENOUGH_SAMPLES, ENOUGH_FOR_PERCEPTRONS, MOST_MIXTURES = 10_000, 40_000, 7
MIXING_WORK = 2e10  # multiply-accumulates of the whole network: a second of one core
ANSWERED_TOGETHER = 512  # mixtures that are run at a time


def suited_mixtures(pool: SamplePool, whole: nn.Module) -> int:
    """Return how many mixtures to make of each sample: none where samples are many, or the network answers slowly.

    Mixtures vary less than samples, and batch norms that followed them would have the wrong statistics.
    """
    count = len(pool)
    if not pool.is_of_numbers or any(isinstance(module, _BatchNorm) for module in whole.modules()):
        return 0
    few = pool.rows(torch.arange(min(count, ANSWERED_TOGETHER)))
    affordable = MIXING_WORK * few.samples / (rough_macs(whole, few) * count)
    enough = ENOUGH_FOR_PERCEPTRONS if uses_weights_once(whole, few) else ENOUGH_SAMPLES
    return max(min(enough // count - 1, MOST_MIXTURES, int(affordable)), 0)


def with_mixtures(found: SamplePool, whole: nn.Module, count: int, seed: int) -> SamplePool:
    """Return samples with mixtures written in the room behind the first ones, so many as they are at a time.

    The first samples alone, where the network cannot read mixtures, or gives answers that are not finite.
    """
    pool, times = found.first(count), len(found) // count - 1
    for number in range(times):
        random = generator(seed, "settling", "mixture", number)
        partners, shares = torch.randperm(count, generator=random), torch.rand(count, generator=random)
        for rows in _pieces(count):
            mixed = _mixed(pool, rows, partners[rows], shares[rows])
            try:
                answers = answers_of(whole, (mixed.args, mixed.kwargs))
            except ModelError:
                return pool
            alike = [each.shape[1:] for each in answers] == [each.shape[1:] for each in pool.answers]
            if not alike or not all(bool(each.isfinite().all()) for each in answers):
                return pool
            found.put((number + 1) * count + int(rows[0]), SamplePool(mixed.args, mixed.kwargs, answers))
    return found


def fresh_mixtures(pool: SamplePool, numbers: Tensor, random: torch.Generator) -> AnsweredBatch:
    """Return samples by their numbers, which count on behind the pool for mixtures of the same samples; no answers.

    A ViT on Fashion-MNIST with half of its heads and hidden units keeps 88.39 % of new images of 89.86 with mixtures
    made once, and 88.64 % with fresh ones, in as many steps.
    """
    count = len(pool)
    partners, shares = torch.randint(count, numbers.shape, generator=random), torch.rand(len(numbers), generator=random)
    mixed = _mixed(pool, numbers % count, partners, torch.where(numbers < count, 1.0, shares))
    return AnsweredBatch((mixed.args, mixed.kwargs), (), len(numbers))


def _pieces(count: int) -> tuple[Tensor, ...]:
    return torch.split(torch.arange(count), ANSWERED_TOGETHER)


def _mixed(pool: SamplePool, numbers: Tensor, partners: Tensor, shares: Tensor) -> SamplePool:
    """Return mixtures of samples with their partners; there are no answers yet."""

    def mix(value: object) -> object:
        if not isinstance(value, Tensor):
            return value
        own = shares.to(value.device, value.dtype).view(-1, *[1] * (value.ndim - 1))
        return torch.lerp(value[partners.to(value.device)], value[numbers.to(value.device)], own)

    return SamplePool(tuple(map(mix, pool.args)), {name: mix(value) for name, value in pool.kwargs.items()}, [])
