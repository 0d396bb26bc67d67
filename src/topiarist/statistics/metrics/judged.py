"""Checked input of metrics: answers, targets and weights of the same samples."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy
from numpy.typing import ArrayLike, NDArray

from topiarist.errors import SettingsError
from topiarist.statistics.samples import Floats, finite_array

Kind = Literal["classes", "numbers", "labels", "any"]
BEYOND = 1e-6  # outside [0, 1], by rounding in float32
SUM_BEYOND = 1e-2  # of a row of probabilities: rounding in float16 over a thousand classes


@dataclass(frozen=True)
class Judged:
    """Answers, targets and weights as arrays that fit together; weights are 1 where none are given."""

    answers: Floats
    targets: NDArray[Any]
    weights: Floats


def judged(kind: Kind, answers: ArrayLike, targets: ArrayLike, weights: ArrayLike | None = None) -> Judged:
    """Return answers and targets of one network as the kind of task has them; refuse what does not fit.

    Parameters
    ----------
    kind
        "classes": probabilities (n_samples, n_classes) and class numbers (n_samples,). "numbers": predictions and
        targets (n_samples, n_targets), or (n_samples,) for one. "labels": probabilities and 0 or 1, both
        (n_samples, n_labels). "any": as a metric of the user's wants them.
    weights
        (n_samples,) 0 or more, not all 0; None counts every sample once.

    Raises
    ------
    SettingsError
        If shapes do not fit together, or a value is not what it must be.
    """
    check = {"classes": _classes, "numbers": _numbers, "labels": _labels, "any": _anything}[kind]
    found, wanted = check(answers, targets)
    if not len(wanted):
        raise SettingsError("there are no samples to judge by")
    if len(found) != len(wanted):
        raise SettingsError(f"answers and targets must be of the same samples; found {len(found)} and {len(wanted)}")
    return Judged(found, wanted, sample_weights(weights, len(wanted)))


def sample_weights(weights: ArrayLike | None, samples: int) -> Floats:
    """Return one weight per sample, 1 where none are given."""
    if weights is None:
        return numpy.ones(samples)
    array = finite_array(weights, "weights")
    if array.shape != (samples,):
        raise SettingsError(f"weights must be one number per sample; found shape {array.shape} for {samples} samples")
    if array.min() < 0:
        raise SettingsError(f"weights must be 0 or more; found {array.min():g}")
    if not array.any():
        raise SettingsError("weights must not all be 0")
    return array


def class_numbers(targets: ArrayLike, classes: int) -> NDArray[numpy.int64]:
    """Return class numbers (n_samples,) from 0 to `classes` − 1."""
    array = finite_array(targets, "targets")
    numbers = array.astype(numpy.int64)
    if array.ndim != 1 or (numbers != array).any():
        raise SettingsError(f"targets of classes must be whole numbers (n_samples,); found shape {array.shape}")
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= classes):
        raise SettingsError(f"targets must be 0 to {classes - 1}; found {numbers.min()} to {numbers.max()}")
    return numbers


def zeros_and_ones(targets: ArrayLike) -> Floats:
    """Return targets of labels; refuse what is neither 0 nor 1."""
    array = finite_array(targets, "targets")
    outside = array[(array != 0) & (array != 1)]
    if len(outside):
        raise SettingsError(f"targets of labels must be 0 or 1; found {outside[0]:g}")
    return array


def _classes(answers: ArrayLike, targets: ArrayLike) -> tuple[Floats, NDArray[Any]]:
    array = _probabilities(answers)
    if array.ndim != 2 or not array.shape[1]:
        raise SettingsError(f"answers for classes must be (n_samples, n_classes); found {array.shape}")
    if len(array) and (abs(array.sum(axis=1) - 1) > SUM_BEYOND).any():
        raise SettingsError("probabilities of the classes must add up to 1 for each sample; are these logits?")
    return array, class_numbers(targets, array.shape[1])


def _numbers(answers: ArrayLike, targets: ArrayLike) -> tuple[Floats, NDArray[Any]]:
    found, wanted = (
        as_columns(finite_array(each, what)) for each, what in ((answers, "answers"), (targets, "targets"))
    )
    if found.ndim != 2 or wanted.ndim != 2 or found.shape[1] != wanted.shape[1]:
        raise SettingsError(f"answers and targets must be (n_samples, n_targets); found {found.shape}, {wanted.shape}")
    return found, wanted


def _labels(answers: ArrayLike, targets: ArrayLike) -> tuple[Floats, NDArray[Any]]:
    found, wanted = _probabilities(answers), zeros_and_ones(targets)
    if found.ndim != 2 or wanted.ndim != 2 or found.shape[1] != wanted.shape[1]:
        raise SettingsError(f"answers and targets must be (n_samples, n_labels); found {found.shape}, {wanted.shape}")
    return found, wanted


def _anything(answers: ArrayLike, targets: ArrayLike) -> tuple[Floats, NDArray[Any]]:
    return finite_array(answers, "answers"), numpy.asarray(targets)


def _probabilities(answers: ArrayLike) -> Floats:
    array = finite_array(answers, "answers")
    if array.size and (array.min() < -BEYOND or array.max() > 1 + BEYOND):
        raise SettingsError(f"probabilities must lie between 0 and 1; found {array.min():g} to {array.max():g}")
    return array.clip(0, 1)


def as_columns(array: Floats) -> Floats:
    """Return (n_samples,) as (n_samples, 1)."""
    return array[:, None] if array.ndim == 1 else array
