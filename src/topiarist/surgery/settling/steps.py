"""The steps of settling: Adam on a cosine, at a rate that short trials find, judged on a part of the samples.

What is best on that part is kept, and what a network begins with counts as well: it never ends worse.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from torch import Tensor, nn

from topiarist.errors import first_line
from topiarist.surgery.settling.adam import Adam
from topiarist.surgery.settling.divergence import Divergence
from topiarist.surgery.settling.inner import InnerAnswers
from topiarist.surgery.settling.pool import AnsweredBatch, real_outputs
from topiarist.surgery.settling.samples import SettlingSamples
from topiarist.surgery.settling.state import Settleable

FIRST_RATE, LADDER = 1e-3, math.sqrt(10)  # Adam's usual rate, and the ratio of a rate to the next lower one
LOWEST, HIGHEST = -4, 2  # rungs of the ladder: 1e-5 and 1e-2
# A trial takes one of 20 steps; where that is below 20 steps, which tell too little, up to one of 8.
TRIAL_SHARE, LARGEST_TRIAL_SHARE, TRIAL_STEPS = 20, 8, 20
WARM_UP = 5  # steps on which the rate rises: Adam's first steps are as long as all others, and know least
MOST_TRIALS = 2  # all trials together take at most one of so many steps
# Long descents like higher rates than short ones. Fashion-MNIST, cut perceptrons and ResNets: the higher rate was the
# better one after 150 and 400 steps where its trial had gained half as much as the best trial, and not elsewhere.
ENOUGH_GAIN = 0.5
EXACT = 1e-8  # below that, answers differ by rounding
CHECKS = 8  # on the way
SMALLEST_NORM_BATCH = 8  # samples, from which batch norms can take their statistics


class NoGradientError(Exception):
    """A network whose answers do not tell how its parameters would have to change."""


@dataclass(frozen=True)
class RateTrial:
    """How far a network came at a rate, with batch norms that follow or do not, and with which values."""

    rate: float
    following: bool
    loss: float
    values: list[Tensor] = field(repr=False)


class SettlingDescent:
    """One network on its way to the answers of another; `best` and `best_loss` are what it has found so far."""

    def __init__(
        self, network: Settleable, samples: SettlingSamples, divergence: Divergence, inner: InnerAnswers, seed: int
    ) -> None:
        self.network, self.samples, self.divergence, self.seed = network, samples, divergence, seed
        self.inner = inner
        self.first = self.best = network.values()
        self.first_loss = self.best_loss = self.judged()
        self.steps_left = 0

    @property
    def has_improved(self) -> bool:
        """Return whether something better than the first values was found."""
        return self.best is not self.first

    def run(self, steps: int) -> None:
        """Find a rate, and go on at it; the network ends with the best values."""
        self.steps_left = steps
        if self.first_loss > EXACT:
            trials = _Trials(self, steps)
            trials.run()
            if trials.best.loss < self.first_loss:
                self.network.put(trials.best.values)
                self._descend(trials.suited_rate, trials.best.following)
        self.network.put(self.best)

    def try_out(self, rate: float, steps: int, *, following: bool) -> RateTrial:
        """Make a short descent from the first values; all trials see the same batches."""
        self.network.put(self.first)
        optimizer = self._optimizer()
        self._step(optimizer, rate, range(steps), steps, following, self._drawn(self.seed))
        loss, values = self.judged(), self.network.values()
        self._keep(loss, values)
        return RateTrial(rate, following, loss, values)

    def _descend(self, rate: float, following: bool) -> None:
        """Make all steps that are left; where they lead above the beginning, go back to the best, and on slower."""
        steps, batches, optimizer = self.steps_left, self._drawn(self.seed + 1), self._optimizer()
        ends = [steps * number // CHECKS for number in range(CHECKS + 1)]
        for begin, end in pairwise(ends):
            self._step(optimizer, rate, range(begin, end), steps, following, batches)
            loss = self.judged()
            if loss < self.first_loss:
                self._keep(loss, self.network.values())
            else:
                self.network.put(self.best)
                rate, optimizer = rate / LADDER, self._optimizer()

    def _keep(self, loss: float, values: list[Tensor]) -> None:
        if loss < self.best_loss:
            self.best, self.best_loss = values, loss

    def _drawn(self, seed: int) -> Iterator[AnsweredBatch]:
        return self.samples.drawn(seed, unanswered=bool(self.inner.paths))

    def _optimizer(self) -> Adam:
        return Adam(list(self.network.parameters.values()))

    def _step(
        self, optimizer: Adam, rate: float, numbers: range, of: int, following: bool, batches: Iterator[AnsweredBatch]
    ) -> None:
        """Make the steps of these numbers, of so many on a cosine from the rate to zero."""
        self.network.learn(following=following)
        parameters = list(self.network.parameters.values())
        for number in numbers:
            risen = min((number + 1) / (WARM_UP + 1), 1.0)
            now = risen * rate * (1 + math.cos(math.pi * number / of)) / 2
            optimizer.step(self._gradients(next(batches), parameters), now)
        self.steps_left -= len(numbers)

    def _gradients(self, batch: AnsweredBatch, parameters: list[nn.Parameter]) -> tuple[Tensor | None, ...]:
        given, wanted, missed = self.inner.run(batch)
        loss = self.divergence(real_outputs(given), wanted)
        loss = loss if missed is None else loss + missed
        if not loss.requires_grad:
            raise NoGradientError("its answers have no gradient")
        try:
            return torch.autograd.grad(loss, parameters, allow_unused=True)
        except (RuntimeError, NotImplementedError) as error:  # some operations have none, or are undone by later ones
            raise NoGradientError(first_line(error)) from error

    def judged(self) -> float:
        """Return how far the network is from the answers wanted, on the samples to judge by."""
        self.network.judge()
        total, count = 0.0, 0
        with torch.no_grad():
            for batch in self.samples.judged():
                args, kwargs = batch.inputs
                found = real_outputs(self.network.model(*args, **kwargs))
                total += float(self.divergence(found, batch.answers)) * batch.samples
                count += batch.samples
        return total / count if math.isfinite(total) else math.inf


class _Trials:
    """Short descents at rates of a ladder: up from Adam's usual rate while that helps, and otherwise down.

    Batch norms follow what they read, or stay as they are at a rate one lower, whichever comes nearer: fixed ones
    stand lower rates only, and those that follow take their statistics from small batches.
    """

    def __init__(self, descent: SettlingDescent, steps: int) -> None:
        self.descent = descent
        self.length = max(steps // TRIAL_SHARE, min(TRIAL_STEPS, steps // LARGEST_TRIAL_SHARE), 1)
        self.count = max(steps // MOST_TRIALS // self.length, 1)
        self.following = bool(descent.network.norms) and descent.samples.batch_samples >= SMALLEST_NORM_BATCH
        self.start = 0  # the rung that the ladder begins at
        self.made: list[RateTrial] = []

    @property
    def best(self) -> RateTrial:
        """Return the trial that came nearest."""
        return min(self.made, key=lambda trial: trial.loss)

    @property
    def suited_rate(self) -> float:
        """Return the highest rate that gained enough."""
        first, best = self.descent.first_loss, self.best
        enough = first - ENOUGH_GAIN * (first - best.loss)
        alike = (trial for trial in self.made if trial.following == best.following)
        return max(trial.rate for trial in alike if trial.loss <= enough)

    def run(self) -> None:
        """Make the trials."""
        first = self._first()
        if first.loss < self.descent.first_loss:
            self._walk(first, 1)
        if self.best is first:
            self._walk(first, -1)

    def _first(self) -> RateTrial:
        """Return the trial at which the ladder begins, with batch norms in the better way."""
        first = self._try(0)
        if not self.following or self.count < 2:
            return first
        self.following = False
        fixed = self._try(-1)
        if fixed.loss < first.loss:
            self.start = -1
            return fixed
        self.following = True
        return first

    def _walk(self, before: RateTrial, direction: int) -> None:
        """Try rates in one direction for as long as none has helped yet, or the last one helped more than before."""
        rung = self.start + direction
        while LOWEST <= rung <= HIGHEST and len(self.made) < self.count:
            trial = self._try(rung)
            if trial.loss >= before.loss and before.loss < self.descent.first_loss:
                break
            before, rung = trial, rung + direction

    def _try(self, rung: int) -> RateTrial:
        rate = FIRST_RATE * LADDER**rung
        self.made.append(self.descent.try_out(rate, self.length, following=self.following))
        return self.made[-1]
