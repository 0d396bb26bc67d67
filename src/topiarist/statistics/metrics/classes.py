"""Metrics of classes, from probabilities (n_samples, n_classes) and class numbers (n_samples,).

The answer is the most probable class, the first of equals. Means over classes are over those that have samples (of some
weight) among the targets: a class that has none can neither be found nor missed.
"""

from collections.abc import Callable
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.statistics.metrics.metric import (
    Metric,
    Raw,
    RawEach,
    RawInfluence,
    RawPerSample,
    Targets,
    checked_each,
    checked_per_sample,
    checked_value,
    weighted_mean,
)
from topiarist.statistics.metrics.ranking import Truths, average_precision, roc_auc
from topiarist.statistics.samples import Floats

BINS = 15  # Guo et al. (2017)
SMALLEST = float(numpy.finfo(numpy.float64).eps)  # probability whose logarithm is taken, as in scikit-learn
BinaryMetric = Callable[[NDArray[Any], Truths, Floats], tuple[float, Floats]]


def right(answers: Floats, targets: Targets) -> Floats:
    """Return 1 where the most probable class is the target."""
    found: Floats = (answers.argmax(axis=1) == targets).astype(numpy.float64)
    return found


def log_losses(answers: Floats, targets: Targets) -> Floats:
    """Return −ln p(target), p being at least 2.2e-16."""
    found: Floats = -numpy.log(answers[numpy.arange(len(targets)), targets].clip(SMALLEST, 1 - SMALLEST))
    return found


def brier_scores(answers: Floats, targets: Targets) -> Floats:
    """Return Σ (p − y)² over classes; for two, the square of one, as is usual."""
    squares = (answers - one_hot(targets, answers.shape[1])) ** 2
    found: Floats = squares.sum(axis=1) / (2 if answers.shape[1] == 2 else 1)
    return found


def one_hot(targets: Targets, classes: int) -> Floats:
    """Return 1 at each sample's class."""
    found: Floats = numpy.eye(classes)[targets]
    return found


def recalls(answers: Floats, targets: Targets, weights: Floats) -> Floats:
    """Return the share of each class's samples that are right; NaN for a class without samples."""
    hits = numpy.bincount(targets, weights * right(answers, targets), minlength=answers.shape[1])
    return hits / _members(targets, weights, answers.shape[1])


def _members(targets: Targets, weights: Floats, classes: int) -> Floats:
    members = numpy.bincount(targets, weights, minlength=classes)
    return numpy.where(members > 0, members, numpy.nan)


def balanced_accuracy(answers: Floats, targets: Targets, weights: Floats) -> tuple[float, Floats]:
    """Return the mean of recalls, and influences w (right − recall) / (members · classes)."""
    found = recalls(answers, targets, weights)
    members = _members(targets, weights, answers.shape[1])
    scale = 1 / (members * numpy.isfinite(found).sum())
    influences = weights * (right(answers, targets) - found[targets]) * scale[targets]
    return float(numpy.nanmean(found)), numpy.nan_to_num(influences)


def f1_scores(decided: Truths, positive: Truths, weights: Floats) -> tuple[float, Floats]:
    """Return F1 = 2 TP / (decided + positive) of one class, and influences; NaN where no sample is positive."""
    if not (weights * positive).any():
        return numpy.nan, numpy.zeros(len(weights))
    hits = decided & positive
    both = decided.astype(numpy.float64) + positive
    total = weights @ both
    value = float(2 * (weights @ hits) / total)
    return value, weights * (2 * hits - value * both) / total


def per_class(metric: BinaryMetric, *, decided: bool = False) -> tuple[RawEach, RawInfluence]:
    """Return a metric of two classes for many, one against the rest: its values, and its mean with influences."""

    def found(answers: Floats, targets: Targets, weights: Floats) -> list[tuple[float, Floats]]:
        columns: NDArray[Any] = answers
        if decided:
            columns = answers.argmax(axis=1)[:, None] == numpy.arange(answers.shape[1])
        return [metric(columns[:, name], targets == name, weights) for name in range(answers.shape[1])]

    def each(answers: Floats, targets: Targets, weights: Floats) -> Floats:
        return numpy.array([value for value, _ in found(answers, targets, weights)])

    def mean(answers: Floats, targets: Targets, weights: Floats) -> tuple[float, Floats]:
        return mean_defined(found(answers, targets, weights))

    return each, mean


def mean_defined(found: list[tuple[float, Floats]]) -> tuple[float, Floats]:
    """Return the mean of those values that are defined, and the mean of their influences."""
    defined = [pair for pair in found if not numpy.isnan(pair[0])]
    if not defined:
        return numpy.nan, found[0][1]
    return float(numpy.mean([value for value, _ in defined])), numpy.mean([each for _, each in defined], axis=0)


def calibration_error(answers: Floats, targets: Targets, weights: Floats) -> float:
    """Return Σ |Σ w (right − top probability)| / Σ w over 15 bins of equal width of the top probability."""
    top = answers.max(axis=1)
    bins = bin_of(top)
    gaps = numpy.bincount(bins, weights * (right(answers, targets) - top), minlength=BINS)
    return float(abs(gaps).sum() / weights.sum())


def bin_of(top: Floats) -> NDArray[numpy.int64]:
    """Return the bin of each top probability: bin b holds b/15 up to, but without, (b + 1)/15; the last holds 1 too."""
    return numpy.minimum((top * BINS).astype(numpy.int64), BINS - 1)


def _mean_of(per_sample: RawPerSample) -> Raw:
    return lambda answers, targets, weights: weighted_mean(per_sample(answers, targets), weights)


def _mean_metric(name: str, title: str, per_sample: RawPerSample, **traits: float | bool) -> Metric:
    return Metric(
        name=name,
        title=title,
        kind="classes",
        value=checked_value("classes", _mean_of(per_sample)),
        per_sample=checked_per_sample("classes", per_sample),
        each=checked_each("classes", _by_class(per_sample)),
        **traits,  # type: ignore[arg-type]
    )


def _by_class(per_sample: RawPerSample) -> RawEach:
    def each(answers: Floats, targets: Targets, weights: Floats) -> Floats:
        sums = numpy.bincount(targets, weights * per_sample(answers, targets), minlength=answers.shape[1])
        return sums / _members(targets, weights, answers.shape[1])

    return each


def _class_metric(name: str, title: str, each: RawEach, influence: RawInfluence, **traits: float | bool) -> Metric:
    return Metric(
        name=name,
        title=title,
        kind="classes",
        higher_is_better=True,
        value=checked_value("classes", lambda *arrays: influence(*arrays)[0]),
        each=checked_each("classes", each),
        influence=influence,
        **traits,  # type: ignore[arg-type]
    )


CLASS_METRICS = (
    _mean_metric("accuracy", "accuracy", right, higher_is_better=True, decisions=True, share=True),
    _class_metric(
        "macro_accuracy", "accuracy, mean over the classes", recalls, balanced_accuracy, decisions=True, share=True
    ),
    _class_metric("roc_auc", "ROC AUC", *per_class(roc_auc), within_folds=True),
    _class_metric(
        "average_precision", "average precision", *per_class(average_precision), within_folds=True, worst_loss=numpy.inf
    ),
    _class_metric("f1", "F1", *per_class(f1_scores, decided=True), decisions=True),
    _mean_metric("log_loss", "log loss", log_losses, higher_is_better=False, margin=0.01),
    _mean_metric("brier", "Brier score", brier_scores, higher_is_better=False, margin=0.005),
    Metric(
        name="calibration_error",
        title="calibration error",
        kind="classes",
        higher_is_better=False,
        value=checked_value("classes", calibration_error),
        testable=False,  # the fewer samples in a bin, the larger it is: no difference of two is centred at the true one
    ),
)
