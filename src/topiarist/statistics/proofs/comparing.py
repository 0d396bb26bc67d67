"""`compare`: is a candidate not worse than the baseline by more than a margin, by any metric that has a test?"""

import math
from dataclasses import replace

import numpy
from numpy.typing import ArrayLike

from topiarist.errors import SettingsError
from topiarist.statistics.answers import PairedEvidence, compare_answers
from topiarist.statistics.metrics.judged import as_columns, judged, sample_weights
from topiarist.statistics.metrics.metric import Metric
from topiarist.statistics.noninferiority import holm
from topiarist.statistics.proofs.differences import Folds, compare_values
from topiarist.statistics.proofs.relative import compare_errors, mean_error, r2_difference
from topiarist.statistics.samples import Floats, check_between_0_and_1, finite_array

FEWEST_COMPARED = 2  # samples: one has no spread
AGREE = 1e-6  # a user's metric and the mean of its per-sample values, relatively


def default_margin(metric: Metric) -> float:
    """Return the loss that is allowed unless the user says otherwise.

    | metric | margin | means |
    |---|---|---|
    | accuracy, balanced accuracy, ROC AUC, average precision, F1 | 0.01 | one point |
    | RMSE, MAE, MAPE | 0.02 | the error grows by at most 2 % of the baseline's |
    | R² | 0.01 | one point of the variance explained |
    | log loss | 0.01 | nats: the geometric mean of the probabilities of what is true falls by at most 1 % |
    | Brier score | 0.005 | as if one answer in 200 turned from surely right to surely wrong (of two classes) |

    Examples
    --------
    >>> from topiarist.statistics.metrics import find_metric
    >>> default_margin(find_metric("numbers", "rmse")), default_margin(find_metric("classes", "accuracy"))
    (0.02, 0.01)
    """
    return metric.margin


def compare(
    metric: Metric,
    candidate: ArrayLike,
    baseline: ArrayLike,
    targets: ArrayLike,
    *,
    margin: float,
    alpha: float = 0.05,
    weights: ArrayLike | None = None,
    folds: ArrayLike | None = None,
    seed: int = 0,
) -> PairedEvidence:
    """Test whether a candidate is not worse than the baseline by more than a margin, from answers to the same samples.

    Parameters
    ----------
    metric
        What they are compared by: see `find_metric` and `own_metric`.
    candidate, baseline
        Answers of one network, (n_samples, …) as the metric takes them; or of several, (n_networks, n_samples, …):
        then values are averaged over networks, so that the luck of one seed decides nothing.
    targets
        What is true: class numbers (n_samples,), numbers (n_samples, n_targets), or 0 and 1 (n_samples, n_labels).
    margin
        The loss that would matter, above 0: in units of the metric; for RMSE, MAE and MAPE a share of the baseline's.
    alpha
        Probability to call a candidate proven that is worse by just the margin.
    weights
        (n_samples,) 0 or more; None counts every sample once.
    folds
        (n_samples,) number of the fold of each sample, where the networks of different folds differ: areas under curves
        are then found within folds, and averaged by their weight. All else is pooled.
    seed
        Of the resamples.

    Returns
    -------
    PairedEvidence
        With p = 1 and a note where there are too few samples to prove anything.

    Raises
    ------
    SettingsError
        If answers, targets and metric do not fit together, the metric is not defined for them or has no test, or a
        setting is out of range.

    Examples
    --------
    >>> from topiarist.statistics.metrics import find_metric
    >>> wanted = numpy.linspace(0, 9, 300)[:, None]
    >>> base, small = wanted + numpy.sin(7 * wanted), wanted + numpy.sin(7 * wanted + 0.1)
    >>> found = compare(find_metric("numbers", "rmse"), small, base, wanted, margin=0.02)
    >>> found.proven, abs(found.difference) < 0.001
    (True, True)
    """
    _check(metric, margin, alpha)
    one, two = (_networks(metric, each, targets) for each in (candidate, baseline))
    wanted = judged(metric.kind, one[0], targets, weights).targets
    if len(wanted) < FEWEST_COMPARED:
        raise SettingsError(f"networks are compared over {FEWEST_COMPARED} samples or more; found {len(wanted)}")
    _check_targets(metric, [*one[1:], *two], targets)
    each = None if weights is None else sample_weights(weights, len(wanted))
    parts = _folds(folds, len(wanted))
    settings = {"margin": margin, "alpha": alpha}
    if metric.decisions and metric.per_sample is not None:
        right = [numpy.mean([metric.per_sample(answers, wanted) for answers in some], axis=0) for some in (one, two)]
        return replace(compare_answers(right[0], right[1], weights=each, **settings), metric=metric.name)
    counted = numpy.ones(len(wanted)) if each is None else each
    if metric.errors is not None:
        return compare_errors(metric, one, two, wanted, counted, **settings, seed=seed)
    found = compare_values(metric, one, two, wanted, each, parts, **settings, seed=seed)
    if metric.kind == "numbers":
        found = replace(found, r2_difference=r2_difference(one, two, wanted, counted))
    return found


def pooled_value(
    metric: Metric,
    answers: ArrayLike,
    targets: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    folds: ArrayLike | None = None,
) -> float:
    """Return a metric's value over several networks and folds, as `compare` finds it; NaN where it is not defined.

    Parameters are those of `compare`.
    """
    networks = _networks(metric, answers, targets)
    wanted = judged(metric.kind, networks[0], targets, weights).targets
    each = None if weights is None else sample_weights(weights, len(wanted))
    if metric.errors is not None:
        return mean_error(metric, networks, wanted, numpy.ones(len(wanted)) if each is None else each)
    if metric.per_sample is not None:
        values = numpy.mean([metric.per_sample(one, wanted) for one in networks], axis=0)
        return float(numpy.average(values, weights=each))
    parts = _folds(folds, len(wanted)) if metric.within_folds else numpy.zeros(len(wanted), dtype=numpy.int64)
    found, total = 0.0, 0.0
    for rows in (numpy.flatnonzero(parts == part) for part in numpy.unique(parts)):
        some = None if each is None else each[rows]
        value = float(numpy.mean([metric.value(one[rows], wanted[rows], some) for one in networks]))
        if not math.isnan(value):
            share = float(len(rows)) if some is None else float(some.sum())
            found, total = found + share * value, total + share
    return found / total if total else math.nan


def describe_test(metric: Metric) -> str:
    """Return the test that `compare` makes of a metric, in words."""
    if metric.decisions and metric.per_sample is not None:
        return "Tango's score test on paired right answers, one-sided"
    if metric.errors is not None:
        error = "squared errors" if metric.exponent == 2 else "absolute errors"
        return f"studentised test on paired {error}, one-sided; the margin is a share of the baseline's {metric.title}"
    return f"studentised test on paired differences of the {metric.title}, one-sided"


def compare_each(
    metric: Metric,
    candidate: ArrayLike,
    baseline: ArrayLike,
    targets: ArrayLike,
    *,
    margin: float,
    alpha: float = 0.05,
    weights: ArrayLike | None = None,
    folds: ArrayLike | None = None,
    seed: int = 0,
) -> tuple[PairedEvidence, ...]:
    """Test every target or label by itself, with Holm's correction: all that are proven are so together at alpha.

    Parameters and errors are those of `compare`; `p` and `proven` are Holm's, the bounds those of each test alone.
    """
    if metric.kind not in ("numbers", "labels"):
        raise SettingsError(f"targets or labels can be compared one by one; '{metric.name}' is for {metric.kind}")
    wanted = as_columns(finite_array(targets, "targets"))
    one, two = (_networks(metric, each, wanted) for each in (candidate, baseline))
    _check_targets(metric, [*one, *two], wanted)
    found = [
        compare(
            metric,
            numpy.stack([answers[:, [k]] for answers in one]),
            numpy.stack([answers[:, [k]] for answers in two]),
            wanted[:, [k]],
            margin=margin,
            alpha=alpha,
            weights=weights,
            folds=folds,
            seed=seed,
        )
        for k in range(wanted.shape[1])
    ]
    adjusted = holm([each.p for each in found])
    return tuple(replace(each, p=p, proven=p <= alpha) for each, p in zip(found, adjusted, strict=True))


def _check(metric: Metric, margin: float, alpha: float) -> None:
    check_between_0_and_1(alpha=alpha)
    if not 0 < margin < math.inf:
        raise SettingsError(f"margin must be above 0; found {margin}")
    if not metric.testable:
        why = "has no test that holds its level: choose log_loss or brier"
        raise SettingsError(f"{metric.name} {why}", setting="metric")


def _networks(metric: Metric, answers: ArrayLike, targets: ArrayLike) -> list[Floats]:
    """Return the answers of each network."""
    found = finite_array(answers, "answers")
    wanted = numpy.asarray(targets)
    if metric.kind == "any":
        several = found.ndim > 1 and len(found) != len(wanted)
    else:
        found = as_columns(found) if metric.kind == "numbers" else found
        several = found.ndim > 2
    if several and not len(found):
        raise SettingsError("there are no networks to compare")
    return list(found) if several else [found]


def _check_targets(metric: Metric, networks: list[Floats], targets: ArrayLike) -> None:
    for answers in networks:
        wanted = judged(metric.kind, answers, targets).targets
        if metric.kind == "any" and metric.per_sample is not None:
            mean, value = float(metric.per_sample(answers, wanted).mean()), metric.value(answers, wanted)
            if abs(mean - value) > AGREE * max(abs(mean), abs(value), AGREE):
                raise SettingsError(
                    f"metric '{metric.name}' is {value:g}, but the mean of its per-sample values is {mean:g}"
                )


def _folds(folds: ArrayLike | None, samples: int) -> Folds:
    if folds is None:
        return numpy.zeros(samples, dtype=numpy.int64)
    numbers = finite_array(folds, "folds")
    if numbers.shape != (samples,):
        raise SettingsError(f"folds must be one number per sample; found shape {numbers.shape} for {samples} samples")
    return numbers.astype(numpy.int64)
