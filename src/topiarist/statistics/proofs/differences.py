"""Differences of a metric against an absolute margin: is the candidate's value at most the margin worse?

A value comes with the influence of every sample on it: of a mean over samples, w (x − x̄) / Σw; of areas, F1 and the
like, the derivative by the weights; of a user's own function, what it changes when samples are left out. Values and
influences of several networks are averaged; those of a metric that ranks samples are found within folds and averaged by
their size.

Decisions, probabilities and ranks go wrong seldom and then by much, so that few samples carry the variance. The largest
loss that one sample caused is counted once more, as if a next one were as bad; and where (Σψ²)² / Σψ⁴, the number of
samples that carry the variance, is below 10, p has a floor as in the test of accuracy: that of failures of which none
was seen.
"""

import math
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from topiarist.errors import SettingsError
from topiarist.randomness import array_generator
from topiarist.statistics.answers import PairedEvidence, effective_number
from topiarist.statistics.metrics.metric import Metric, Targets
from topiarist.statistics.proofs.evidence import FEW_CARRY, Floor, needed, power_of
from topiarist.statistics.proofs.studentised import FEWEST, studentise
from topiarist.statistics.samples import Floats

GROUPS = 100  # of samples that are left out together, of a metric whose derivative is not known
Folds = NDArray[numpy.int64]


@dataclass(frozen=True)
class Influenced:
    """A value, and the influences of samples, or groups of samples, on it."""

    value: float
    influences: Floats


def compare_values(
    metric: Metric,
    candidate: list[Floats],
    baseline: list[Floats],
    targets: Targets,
    weights: Floats | None,
    folds: Folds,
    *,
    margin: float,
    alpha: float,
    seed: int,
) -> PairedEvidence:
    """Return the evidence on a metric's difference; see `compare`."""
    each = numpy.ones(len(targets)) if weights is None else weights
    one, two = (influenced(metric, some, targets, weights, folds, seed) for some in (candidate, baseline))
    difference = metric.direction * (one.value - two.value)
    influences = metric.direction * (one.influences - two.influences)
    inflation, freedom = _small_groups(metric, influences, targets, each)
    found = studentise(influences, seed, inflation=inflation, freedom=freedom)
    floor = _floor(metric, influences, targets, each, margin)
    room = margin - _next_loss(metric, influences)
    notes: tuple[str, ...] = ()
    p = found.p(_over(difference + room, found.error))
    if floor is not None and floor.p > p:
        p, notes = floor.p, (floor.note,)
    if effective_number(each) < FEWEST:
        p, notes = 1.0, (f"fewer than {FEWEST} samples prove nothing",)
    reaches = [_finite(found.reach(alpha, below=below)) for below in (True, False)]
    return PairedEvidence(
        metric=metric.name,
        score=one.value,
        baseline_score=two.value,
        difference=difference,
        low=difference + room - margin - reaches[0] * found.error,
        high=difference + reaches[1] * found.error,
        p=p,
        proven=p <= alpha,
        margin=margin,
        samples=len(targets),
        power=power_of(found, room, alpha, floor) if effective_number(each) >= FEWEST else 0.0,
        samples_needed=needed(found, len(targets), margin, alpha, floor),
        notes=notes,
    )


def influenced(
    metric: Metric, networks: list[Floats], targets: Targets, weights: Floats | None, folds: Folds, seed: int
) -> Influenced:
    """Return a metric's value over several networks, and the influences of samples on it."""
    each = numpy.ones(len(targets)) if weights is None else weights
    if metric.per_sample is not None:
        values = numpy.mean([metric.per_sample(answers, targets) for answers in networks], axis=0)
        mean = float(each @ values / each.sum())
        return Influenced(mean, each * (values - mean) / each.sum())
    if metric.influence is None:
        return _left_out(metric, networks, targets, weights, folds, seed)
    parts = _parts(folds) if metric.within_folds else [numpy.arange(len(targets))]
    value, total, influences = 0.0, 0.0, numpy.zeros(len(targets))
    for rows in parts:
        found = [metric.influence(answers[rows], targets[rows], each[rows]) for answers in networks]
        mean = float(numpy.mean([one for one, _ in found]))
        if not math.isnan(mean):
            share = float(each[rows].sum())
            value, total = value + share * mean, total + share
            influences[rows] = share * numpy.mean([one for _, one in found], axis=0)
    if total == 0:
        raise SettingsError(f"{metric.name} is not defined: the samples are all of one class, or all alike")
    return Influenced(value / total, influences / total)


def _left_out(
    metric: Metric, networks: list[Floats], targets: Targets, weights: Floats | None, folds: Folds, seed: int
) -> Influenced:
    """Return influences of groups of samples, from values without them: (1 − 1/G) (mean of all − value without)."""
    samples, parts = len(targets), _parts(folds)

    def value(kept: NDArray[numpy.bool_]) -> float:
        found, total = 0.0, 0.0
        for rows in (part[kept[part]] for part in parts):
            if len(rows):
                some = None if weights is None else weights[rows]
                each = [metric.value(answers[rows], targets[rows], some) for answers in networks]
                found, total = found + len(rows) * float(numpy.mean(each)), total + len(rows)
        if not math.isfinite(found):
            raise SettingsError(f"metric '{metric.name}' is not finite for some of the samples: it cannot be compared")
        return found / total

    number = min(GROUPS, samples)
    group = array_generator(seed, "groups").permutation(samples) % number
    without = numpy.array([value(group != each) for each in range(number)])
    whole = value(numpy.ones(samples, dtype=bool))
    return Influenced(whole, (without.mean() - without) * (1 - 1 / number))


def _parts(folds: Folds) -> list[NDArray[numpy.int64]]:
    return [numpy.flatnonzero(folds == fold) for fold in numpy.unique(folds)]


def _small_groups(metric: Metric, influences: Floats, targets: Targets, weights: Floats) -> tuple[float, float | None]:
    """Return how much larger the error is for small classes, and its degrees of freedom (Satterthwaite, 1946).

    v_c = n_c / (n_c − 1) Σ ψ² over a class; freedom (Σ v)² / Σ v² / (n_c − 1).
    """
    if metric.kind != "classes" or metric.per_sample is not None or not influences.any():
        return 1.0, None
    squares = numpy.bincount(targets, influences**2)
    members = numpy.array([effective_number(weights[targets == name]) for name in numpy.flatnonzero(squares)])
    squares = squares[squares > 0]
    free = numpy.maximum(members - 1, 1.0)
    corrected = squares * (free + 1) / free
    freedom = float(corrected.sum() ** 2 / (corrected**2 / free).sum())
    return math.sqrt(float(corrected.sum() / squares.sum())), freedom


def _next_loss(metric: Metric, influences: Floats) -> float:
    """Return the largest loss that a sample caused, which counts once more; 0 for numbers, which need it not."""
    return 0.0 if metric.kind == "numbers" else max(float(-influences.min()), 0.0)


def _floor(metric: Metric, influences: Floats, targets: Targets, weights: Floats, margin: float) -> Floor | None:
    """Return the least p: always of a metric of decisions, of others while few samples carry the variance.

    With K classes or labels, failing in a share q of one of them costs q / K times the worst loss of a sample.
    """
    squares = influences**2
    same = not squares.any()
    carrying = 0.0 if same else float(squares.sum() ** 2 / (squares @ squares))
    if metric.kind == "numbers" or (not metric.decisions and carrying >= FEW_CARRY):
        return None
    groups, parts = _groups(metric, targets)
    members = [effective_number(weights[group]) for group in groups if weights[group].any()]
    return Floor(min(members), min(margin * parts / (1.0 if same else metric.worst_loss), 1.0))


def _groups(metric: Metric, targets: Targets) -> tuple[list[NDArray[numpy.bool_]], int]:
    """Return the groups of samples that a metric gives equal weight, and how many parts it is the mean of."""
    if metric.per_sample is not None or metric.kind == "any":
        return [numpy.ones(len(targets), dtype=bool)], 1
    if metric.kind == "classes":
        groups = [targets == name for name in numpy.unique(targets)]
        return groups, len(groups)
    labels = targets.shape[1]
    return [targets[:, k] == side for k in range(labels) for side in (0, 1)], labels


def _over(estimate: float, error: float) -> float:
    if error > 0:
        return estimate / error
    return math.inf if estimate > 0 else -math.inf


def _finite(reach: float) -> float:
    """Return a reach that JSON can hold."""
    return min(reach, 1e6)
