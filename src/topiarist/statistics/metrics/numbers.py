"""Metrics of numbers, from predictions and targets (n_samples, n_targets) in the user's units.

Of several targets, a value is the mean over targets; `each` has one per target. R² is NaN where a target does not vary,
MAPE where one is 0.
"""

from collections.abc import Callable

import numpy

from topiarist.statistics.metrics.metric import Metric, RawEach, Targets, checked_each, checked_value
from topiarist.statistics.samples import Floats

ErrorFunction = Callable[[Floats, Targets], Floats]


def squared(answers: Floats, targets: Targets) -> Floats:
    """Return e², (n_samples, n_targets)."""
    found: Floats = (answers - targets) ** 2
    return found


def absolute(answers: Floats, targets: Targets) -> Floats:
    """Return |e|, (n_samples, n_targets)."""
    found: Floats = abs(answers - targets)
    return found


def percentage(answers: Floats, targets: Targets) -> Floats:
    """Return |e / target|; NaN where the target is 0."""
    found: Floats = abs(answers - targets) / numpy.where(targets == 0, numpy.nan, abs(targets))
    return found


def variances(targets: Targets, weights: Floats) -> Floats:
    """Return the mean squared distance of each target (n_targets,) from its mean."""
    means = weights @ targets / weights.sum()
    found: Floats = weights @ (targets - means) ** 2 / weights.sum()
    return numpy.where(numpy.ptp(targets[weights > 0], axis=0) > 0, found, 0.0)


def mean_errors(errors: ErrorFunction, root: bool = False) -> RawEach:
    """Return the function of a mean error per target, or of its root; weights of 0 leave a sample out."""

    def each(answers: Floats, targets: Targets, weights: Floats) -> Floats:
        counted = weights > 0
        means: Floats = weights[counted] @ errors(answers[counted], targets[counted]) / weights.sum()
        return numpy.sqrt(means) if root else means

    return each


def r2_each(answers: Floats, targets: Targets, weights: Floats) -> Floats:
    """Return R² = 1 − Σ w e² / Σ w (y − ȳ)² per target; NaN where the target does not vary."""
    spread = variances(targets, weights)
    share = weights @ squared(answers, targets) / weights.sum() / numpy.where(spread > 0, spread, numpy.nan)
    found: Floats = 1 - share
    return found


def r2_influence(answers: Floats, targets: Targets, weights: Floats) -> tuple[float, Floats]:
    """Return the mean R² of the targets, and influences w ((1 − R²) (y − ȳ)² − e²) / Σ w (y − ȳ)², on average."""
    each, total = r2_each(answers, targets, weights), weights.sum()
    distances = (targets - weights @ targets / total) ** 2
    parts = ((1 - each) * distances - squared(answers, targets)) / numpy.where(
        numpy.isnan(each), numpy.nan, variances(targets, weights)
    )
    return float(each.mean()), weights * parts.mean(axis=1) / total


def _error_metric(name: str, title: str, errors: ErrorFunction, *, root: bool = False) -> Metric:
    each = mean_errors(errors, root)
    return Metric(
        name=name,
        title=title,
        kind="numbers",
        higher_is_better=False,
        value=checked_value("numbers", lambda *arrays: each(*arrays).mean()),
        each=checked_each("numbers", each),
        margin=0.02,
        relative=True,
        errors=errors,
        exponent=2 if root else 1,
        in_units=errors is not percentage,
    )


NUMBER_METRICS = (
    _error_metric("rmse", "RMSE", squared, root=True),
    _error_metric("mae", "mean absolute error", absolute),
    Metric(
        name="r2",
        title="R²",
        kind="numbers",
        higher_is_better=True,
        value=checked_value("numbers", lambda *arrays: r2_each(*arrays).mean()),
        each=checked_each("numbers", r2_each),
        influence=r2_influence,
    ),
    _error_metric("mape", "mean absolute percentage error", percentage),
)
