"""What a network is judged by: a number from its answers, in which direction it is better, and what a proof needs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy
from numpy.typing import ArrayLike, NDArray

from topiarist.statistics.metrics.judged import Kind, judged
from topiarist.statistics.samples import Floats

Targets = NDArray[Any]
Raw = Callable[[Floats, Targets, Floats], float]  # of checked arrays
RawEach = Callable[[Floats, Targets, Floats], Floats]
RawInfluence = Callable[[Floats, Targets, Floats], tuple[float, Floats]]
RawPerSample = Callable[[Floats, Targets], Floats]


class ValueFunction(Protocol):
    """A metric's value."""

    def __call__(self, answers: ArrayLike, targets: ArrayLike, weights: ArrayLike | None = None) -> float:
        """Return one number for a network's answers."""


class EachFunction(Protocol):
    """A metric's values, one per class, target or label."""

    def __call__(self, answers: ArrayLike, targets: ArrayLike, weights: ArrayLike | None = None) -> Floats:
        """Return (n,) values; NaN where there is none."""


class PerSampleFunction(Protocol):
    """What each sample contributes to a metric that is a mean over samples."""

    def __call__(self, answers: ArrayLike, targets: ArrayLike) -> Floats:
        """Return (n_samples,) values."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A measure of quality. Undefined values are NaN.

    Parameters
    ----------
    name, title
        What options call it, and what tables do.
    kind
        The tasks that it is for.
    higher_is_better
        Its direction.
    value
        One number from answers, targets and weights.
    per_sample
        (n_samples,) what it is the mean of; None where it is no mean over samples.
    each
        Its values per class, target or label; None where it has none.
    margin
        The loss that may be shown to be excluded unless the user says otherwise; see `default_margin`.
    relative
        Whether the margin is a share of the baseline's value.
    within_folds
        Whether answers of different networks must not be pooled, as their scores rank only their own samples.
    decisions
        Whether it is made of right and wrong decisions, which mostly agree: then p has a floor.
    influence
        Its value and how it changes with each sample's weight w: w · ∂value/∂w, (n_samples,), for the proof.
    errors
        (n_samples, n_targets) what a relative margin compares the means of: |e|, e² or |e / target|.
    exponent, in_units
        1 or 2 for |e| or e²; whether they are in the units of the targets, which may differ between targets.
    testable
        Whether there is a test for it.
    share
        Whether it is a share of samples, which is shown in per cent, and differences of it in points.
    worst_loss
        What a sample that fails may cost, as a share of its group's weight in the value: see `proofs.differences`.
    """

    name: str
    title: str
    kind: Kind
    higher_is_better: bool
    value: ValueFunction
    per_sample: PerSampleFunction | None = None
    each: EachFunction | None = None
    margin: float = 0.01
    relative: bool = False
    within_folds: bool = False
    decisions: bool = False
    influence: RawInfluence | None = None
    errors: RawPerSample | None = None
    exponent: int = 1
    in_units: bool = True
    testable: bool = True
    share: bool = False
    worst_loss: float = 1.0

    @property
    def direction(self) -> int:
        """1 where more is better, −1 where less is."""
        return 1 if self.higher_is_better else -1


def checked_value(kind: Kind, function: Raw) -> ValueFunction:
    """Return a value function that checks its arguments."""

    def value(answers: ArrayLike, targets: ArrayLike, weights: ArrayLike | None = None) -> float:
        found = judged(kind, answers, targets, weights)
        return float(function(found.answers, found.targets, found.weights))

    return value


def checked_each(kind: Kind, function: RawEach) -> EachFunction:
    """Return a function of values per class, target or label that checks its arguments."""

    def each(answers: ArrayLike, targets: ArrayLike, weights: ArrayLike | None = None) -> Floats:
        found = judged(kind, answers, targets, weights)
        return function(found.answers, found.targets, found.weights)

    return each


def checked_per_sample(kind: Kind, function: RawPerSample) -> PerSampleFunction:
    """Return a per-sample function that checks its arguments."""

    def per_sample(answers: ArrayLike, targets: ArrayLike) -> Floats:
        found = judged(kind, answers, targets)
        return numpy.asarray(function(found.answers, found.targets), dtype=numpy.float64)

    return per_sample


def weighted_mean(values: Floats, weights: Floats) -> float:
    """Return Σ w x / Σ w."""
    return float(weights @ values / weights.sum())
