"""Errors of numbers against a relative margin: is the candidate's RMSE at most (1 + δ) times the baseline's?

For RMSE, x = (1 + δ)² e²(baseline) − e²(candidate) per sample, whose mean must be positive; for the mean absolute
error, x = (1 + δ) |e(baseline)| − |e(candidate)|. Errors of several targets are divided by the deviation of their
target, then averaged; those of several networks are averaged. The bounds are Fieller's (1954): those ratios that the
test would not reject.
"""

import math
from dataclasses import dataclass

import numpy

from topiarist.errors import SettingsError
from topiarist.statistics.answers import PairedEvidence, effective_number
from topiarist.statistics.metrics.metric import Metric, Targets
from topiarist.statistics.metrics.numbers import r2_each, variances
from topiarist.statistics.proofs.evidence import needed, power_of
from topiarist.statistics.proofs.studentised import FEWEST, Studentised, studentise
from topiarist.statistics.samples import Floats


@dataclass(frozen=True)
class Ratio:
    """Means of two errors and the influences of samples on them."""

    candidate: float
    baseline: float
    candidate_influences: Floats
    baseline_influences: Floats

    def influences(self, ratio: float) -> Floats:
        """Return the influences on ratio · baseline − candidate."""
        return ratio * self.baseline_influences - self.candidate_influences

    def bound(self, reach: float, side: int) -> float:
        """Return the ratio whose distance from the observed one is `reach` errors, above (1) or below (−1) it.

        The roots R of (R b − s)² = reach² (V_ss − 2 R V_sb + R² V_bb); ∞ where the baseline's own error is so uncertain
        that no ratio is excluded.
        """
        mixed = float(self.candidate_influences @ self.baseline_influences)
        own, base = (float(each @ each) for each in (self.candidate_influences, self.baseline_influences))
        square = self.baseline**2 - reach**2 * base
        if not math.isfinite(reach) or square <= 0:
            return math.inf if side > 0 else 0.0
        half = self.candidate * self.baseline - reach**2 * mixed
        root = max(half**2 - square * (self.candidate**2 - reach**2 * own), 0.0)
        return max((half + side * math.sqrt(root)) / square, 0.0)


def compare_errors(
    metric: Metric,
    candidate: list[Floats],
    baseline: list[Floats],
    targets: Targets,
    weights: Floats,
    *,
    margin: float,
    alpha: float,
    seed: int,
) -> PairedEvidence:
    """Return the evidence on errors of numbers; see `compare`."""
    scale = _scale(metric, targets, weights)
    one, two = (_mean_errors(metric, each, targets, scale) for each in (candidate, baseline))
    ratio = _ratio(one, two, weights)
    limit = (1 + margin) ** metric.exponent
    found = studentise(ratio.influences(limit), seed)
    estimate = limit * ratio.baseline - ratio.candidate
    notes: tuple[str, ...] = ()
    p = found.p(_over(estimate, found.error))
    if effective_number(weights) < FEWEST:
        p, notes = 1.0, (f"fewer than {FEWEST} samples prove nothing",)
    elif ratio.baseline == 0:
        p, notes = 1.0, ("the baseline makes no error: no share of it can be allowed",)
    low, high = (_change(ratio, found, alpha, metric.exponent, side) for side in (1, -1))
    shift = (limit - 1) * ratio.baseline
    refused = bool(notes)
    score, base = (mean_error(metric, each, targets, weights) for each in (candidate, baseline))
    return PairedEvidence(
        metric=metric.name,
        score=score,
        baseline_score=base,
        difference=1 - _root(ratio.candidate, ratio.baseline, metric.exponent),
        low=low,
        high=high,
        p=p,
        proven=p <= alpha,
        margin=margin,
        relative=True,
        samples=len(targets),
        power=0.0 if refused else power_of(found, shift, alpha),
        samples_needed=FEWEST if shift == 0 else needed(found, len(targets), shift, alpha),
        r2_difference=r2_difference(candidate, baseline, targets, weights),
        notes=notes,
    )


def r2_difference(candidate: list[Floats], baseline: list[Floats], targets: Targets, weights: Floats) -> float | None:
    """Return R² of the candidate minus that of the baseline, on average; None for a constant target."""
    one, two = (numpy.mean([r2_each(each, targets, weights) for each in some]) for some in (candidate, baseline))
    return None if math.isnan(one - two) else float(one - two)


def _scale(metric: Metric, targets: Targets, weights: Floats) -> Floats:
    """Return what errors of each target are divided by, so that they can be meaned: 1 where there is but one."""
    if targets.shape[1] == 1 or not metric.in_units:
        return numpy.ones(targets.shape[1])
    spread = variances(targets, weights)
    if not spread.all():
        raise SettingsError(f"target {int(numpy.argmin(spread)) + 1} of {len(spread)} does not vary: leave it out")
    scale: Floats = spread ** (metric.exponent / 2)
    return scale


def _mean_errors(metric: Metric, networks: list[Floats], targets: Targets, scale: Floats) -> Floats:
    """Return (n_samples,) errors, averaged over networks and targets."""
    assert metric.errors is not None
    errors = numpy.mean([metric.errors(each, targets) for each in networks], axis=0)
    if numpy.isnan(errors).any():
        raise SettingsError(f"{metric.name} is not defined where a target is 0: choose rmse or mae")
    found: Floats = (errors / scale).mean(axis=1)
    return found


def _ratio(candidate: Floats, baseline: Floats, weights: Floats) -> Ratio:
    total = weights.sum()
    one, two = (float(weights @ each / total) for each in (candidate, baseline))
    return Ratio(one, two, weights * (candidate - one) / total, weights * (baseline - two) / total)


def _over(estimate: float, error: float) -> float:
    if error > 0:
        return estimate / error
    return math.inf if estimate > 0 else -math.inf


def _root(candidate: float, baseline: float, exponent: int) -> float:
    """Return the ratio of errors, 1 where there are none; an error where the baseline makes none counts double."""
    if baseline == 0:
        return 1.0 if candidate == 0 else 2.0
    return float((candidate / baseline) ** (1 / exponent))


def _change(ratio: Ratio, found: Studentised, alpha: float, exponent: int, side: int) -> float:
    """Return a bound of the relative change, positive where the candidate is better; at worst −1, twice the error."""
    inflate = math.sqrt(len(ratio.baseline_influences) / (len(ratio.baseline_influences) - 1))
    limit = ratio.bound(found.reach(alpha, below=side > 0) * inflate, side)
    return max(1 - float(limit) ** (1 / exponent), -1.0) if ratio.baseline > 0 else -1.0


def mean_error(metric: Metric, networks: list[Floats], targets: Targets, weights: Floats) -> float:
    """Return the metric in the user's units, from errors that are averaged over networks."""
    assert metric.errors is not None
    errors = numpy.mean([metric.errors(each, targets) for each in networks], axis=0)
    means = weights @ errors / weights.sum()
    return float((means ** (1 / metric.exponent)).mean())
