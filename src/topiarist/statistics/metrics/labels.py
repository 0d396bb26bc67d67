"""Metrics of several labels, from probabilities (n_samples, n_labels) and 0 or 1: means over labels.

A label is given where its probability is above ½. Means over labels leave out those for which a metric is not defined:
for F1 and average precision, labels that no sample has; for ROC AUC, also those that all have.
"""

from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.statistics.metrics.classes import SMALLEST, BinaryMetric, f1_scores, mean_defined
from topiarist.statistics.metrics.metric import (
    Metric,
    RawEach,
    RawInfluence,
    RawPerSample,
    Targets,
    checked_each,
    checked_per_sample,
    checked_value,
    weighted_mean,
)
from topiarist.statistics.metrics.ranking import average_precision, roc_auc
from topiarist.statistics.samples import Floats

THRESHOLD = 0.5  # a label is answered where it is more probable than not, as scikit-learn decides


def label_right(answers: Floats, targets: Targets) -> Floats:
    """Return 1 where a label is given as it should be, (n_samples, n_labels)."""
    found: Floats = ((answers > THRESHOLD) == (targets > THRESHOLD)).astype(numpy.float64)
    return found


def all_right(answers: Floats, targets: Targets) -> Floats:
    """Return 1 where every label is given as it should be, (n_samples,)."""
    found: Floats = label_right(answers, targets).min(axis=1)
    return found


def label_log_losses(answers: Floats, targets: Targets) -> Floats:
    """Return −ln of the probability of what is true of each label, at least 2.2e-16."""
    found: Floats = -numpy.log(numpy.where(targets > THRESHOLD, answers, 1 - answers).clip(SMALLEST, 1 - SMALLEST))
    return found


def label_brier_scores(answers: Floats, targets: Targets) -> Floats:
    """Return (p − y)² of each label."""
    found: Floats = (answers - targets) ** 2
    return found


def per_label(metric: BinaryMetric, *, decided: bool = False) -> tuple[RawEach, RawInfluence]:
    """Return a metric of one label for many: its values, and its mean with influences."""

    def found(answers: Floats, targets: Targets, weights: Floats) -> list[tuple[float, Floats]]:
        columns: NDArray[Any] = answers > THRESHOLD if decided else answers
        return [metric(columns[:, k], targets[:, k] > THRESHOLD, weights) for k in range(answers.shape[1])]

    def each(answers: Floats, targets: Targets, weights: Floats) -> Floats:
        return numpy.array([value for value, _ in found(answers, targets, weights)])

    def mean(answers: Floats, targets: Targets, weights: Floats) -> tuple[float, Floats]:
        return mean_defined(found(answers, targets, weights))

    return each, mean


def _mean_metric(name: str, title: str, values: RawPerSample, **traits: float | bool) -> Metric:
    """Return a metric that is the mean over samples and labels of values (n_samples, n_labels)."""

    def per_sample(answers: Floats, targets: Targets) -> Floats:
        found: Floats = values(answers, targets).mean(axis=1)
        return found

    return Metric(
        name=name,
        title=title,
        kind="labels",
        value=checked_value("labels", lambda answers, targets, w: weighted_mean(per_sample(answers, targets), w)),
        per_sample=checked_per_sample("labels", per_sample),
        each=checked_each("labels", lambda answers, targets, w: w @ values(answers, targets) / w.sum()),
        **traits,  # type: ignore[arg-type]
    )


def _label_metric(name: str, title: str, each: RawEach, influence: RawInfluence, **traits: float | bool) -> Metric:
    return Metric(
        name=name,
        title=title,
        kind="labels",
        higher_is_better=True,
        value=checked_value("labels", lambda *arrays: influence(*arrays)[0]),
        each=checked_each("labels", each),
        influence=influence,
        **traits,  # type: ignore[arg-type]
    )


LABEL_METRICS = (
    _mean_metric("accuracy", "accuracy per label", label_right, higher_is_better=True, decisions=True, share=True),
    Metric(
        name="exact_match",
        title="samples with every label right",
        kind="labels",
        higher_is_better=True,
        value=checked_value("labels", lambda answers, targets, w: weighted_mean(all_right(answers, targets), w)),
        per_sample=checked_per_sample("labels", all_right),
        decisions=True,
        share=True,
    ),
    _label_metric("f1", "F1", *per_label(f1_scores, decided=True), decisions=True),
    _label_metric("roc_auc", "ROC AUC", *per_label(roc_auc), within_folds=True),
    _label_metric(
        "average_precision", "average precision", *per_label(average_precision), within_folds=True, worst_loss=numpy.inf
    ),
    _mean_metric("log_loss", "log loss", label_log_losses, higher_is_better=False, margin=0.01),
    _mean_metric("brier", "Brier score", label_brier_scores, higher_is_better=False, margin=0.005),
)
