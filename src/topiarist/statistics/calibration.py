"""Temperature scaling (Guo et al., 2017): logits are divided by one number, so that probabilities mean what they say.

Log loss is convex in the inverse temperature β: its slope is the mean of E[z] − z(target), its curvature that of
Var[z], both under the probabilities at β. Newton's steps are kept between bounds that close in.
"""

from dataclasses import dataclass

import numpy
from numpy.typing import ArrayLike, NDArray

from topiarist.errors import SettingsError
from topiarist.statistics.metrics.classes import BINS, bin_of, right
from topiarist.statistics.metrics.judged import class_numbers, judged, sample_weights, zeros_and_ones
from topiarist.statistics.metrics.labels import label_right
from topiarist.statistics.metrics.registry import find_metric
from topiarist.statistics.samples import Floats, finite_array

COLDEST, HOTTEST = 0.01, 100.0  # temperatures beyond turn any logits into certainty, or into none
STEPS = 100  # of Newton, or of halving: halving alone comes from these bounds to CLOSE in fewer
CLOSE = 1e-12  # of β, relatively


@dataclass(frozen=True)
class Calibration:
    """How far probabilities can be believed: log loss, Brier score, and calibration error (None for labels)."""

    log_loss: float
    brier: float
    calibration_error: float | None


@dataclass(frozen=True)
class ReliabilityBin:
    """The samples whose top probability lies in a bin: their share, mean top probability, and accuracy."""

    share: float
    confidence: float
    accuracy: float


def fit_temperature(logits: ArrayLike, targets: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Return the temperature at which log loss is least.

    It is 1, which changes nothing, where the samples do not tell: all are right, so that log loss falls for ever as the
    temperature does, or the logits of each are all equal. Otherwise it lies between 0.01 and 100.

    Parameters
    ----------
    logits
        (n_samples, n_classes), or (n_samples, n_labels) where targets are labels.
    targets
        (n_samples,) class numbers, or (n_samples, n_labels) 0 and 1.
    weights
        (n_samples,) 0 or more; None counts every sample once.

    Raises
    ------
    SettingsError
        If logits, targets and weights do not fit together.

    Examples
    --------
    >>> round(fit_temperature([[4.0, 0.0]] * 4, [0, 0, 0, 1]), 3)  # sure to 98 %, right in 75 %: 4 / ln 3
    3.641
    """
    scores, wanted, each = _two_or_more(logits, targets, weights)
    own = scores[numpy.arange(len(wanted)), wanted]
    others = numpy.where(numpy.arange(scores.shape[1]) == wanted[:, None], -numpy.inf, scores).max(axis=1)
    counted = each > 0
    if (own[counted] > others[counted]).all() or not numpy.ptp(scores[counted], axis=1).any():
        return 1.0
    shifted = scores - scores.max(axis=1, keepdims=True)
    low, high, beta = 1 / HOTTEST, 1 / COLDEST, 1.0
    for _ in range(STEPS):
        slope, curvature = _derivatives(shifted, wanted, each, beta)
        low, high = (beta, high) if slope < 0 else (low, beta)
        proposed = beta - slope / curvature if curvature > 0 else numpy.inf
        proposed = proposed if low < proposed < high else (low + high) / 2
        done = abs(proposed - beta) <= CLOSE * beta or high - low <= CLOSE * high
        beta = proposed
        if done:
            break
    return 1 / beta


def calibration_of(
    logits: ArrayLike, targets: ArrayLike, *, temperature: float = 1.0, weights: ArrayLike | None = None
) -> Calibration:
    """Return how far probabilities at a temperature can be believed: at 1 before scaling, at the fitted one after.

    Parameters are those of `fit_temperature`.
    """
    kind, answers = _probabilities(logits, targets, temperature)
    names = ("log_loss", "brier") + (("calibration_error",) if kind == "classes" else ())
    values = {name: find_metric(kind, name).value(answers, targets, weights) for name in names}  # type: ignore[arg-type]
    return Calibration(values["log_loss"], values["brier"], values.get("calibration_error"))


def reliability(
    logits: ArrayLike, targets: ArrayLike, *, temperature: float = 1.0, weights: ArrayLike | None = None
) -> tuple[ReliabilityBin, ...]:
    """Return the bins of a reliability diagram that have samples, those of the calibration error.

    Labels are taken one by one, the probability of what is more probable of each being the top one.
    """
    kind, answers = _probabilities(logits, targets, temperature)
    found = judged(kind, answers, targets, weights)  # type: ignore[arg-type]
    if kind == "classes":
        top, hits, each = found.answers.max(axis=1), right(found.answers, found.targets), found.weights
    else:
        top = numpy.maximum(found.answers, 1 - found.answers).ravel()
        hits = label_right(found.answers, found.targets).ravel()
        each = found.weights.repeat(found.answers.shape[1])
    sums = [numpy.bincount(bin_of(top), each * values, minlength=BINS) for values in (numpy.ones(len(top)), top, hits)]
    total = float(each.sum())
    return tuple(
        ReliabilityBin(float(weight) / total, float(sure / weight), float(hit / weight))
        for weight, sure, hit in zip(*sums, strict=True)
        if weight > 0
    )


def _two_or_more(
    logits: ArrayLike, targets: ArrayLike, weights: ArrayLike | None
) -> tuple[Floats, NDArray[numpy.int64], Floats]:
    """Return logits of two or more classes, class numbers and weights; each label is a sample of two classes."""
    scores, wanted = finite_array(logits, "logits"), finite_array(targets, "targets")
    if scores.ndim != 2 or wanted.ndim not in (1, 2) or len(scores) != len(wanted) or not len(scores):
        raise SettingsError(
            f"logits must be (n_samples, n_classes), with a target each; found {scores.shape}, {wanted.shape}"
        )
    each = sample_weights(weights, len(scores))
    if wanted.ndim == 1:
        return scores, class_numbers(wanted, scores.shape[1]), each
    if wanted.shape != scores.shape:
        raise SettingsError(f"logits and targets must be (n_samples, n_labels); found {scores.shape}, {wanted.shape}")
    flat = scores.ravel()
    both = numpy.stack([numpy.zeros_like(flat), flat], axis=1)
    return both, zeros_and_ones(wanted).ravel().astype(numpy.int64), each.repeat(scores.shape[1])


def _derivatives(scores: Floats, targets: NDArray[numpy.int64], weights: Floats, beta: float) -> tuple[float, float]:
    """Return the slope and the curvature of the mean log loss by β."""
    powers = numpy.exp(beta * scores)
    shares = powers / powers.sum(axis=1, keepdims=True)
    means = (shares * scores).sum(axis=1)
    spreads = (shares * scores**2).sum(axis=1) - means**2
    slopes = means - scores[numpy.arange(len(targets)), targets]
    return float(weights @ slopes / weights.sum()), float(weights @ spreads / weights.sum())


def _probabilities(logits: ArrayLike, targets: ArrayLike, temperature: float) -> tuple[str, Floats]:
    """Return the kind of task that the targets are of, and the probabilities of logits at a temperature."""
    if not 0 < temperature < numpy.inf:
        raise SettingsError(f"temperature must be above 0; found {temperature}")
    scores = finite_array(logits, "logits") / temperature
    if numpy.asarray(targets).ndim == 2:
        answers: Floats = 1 / (1 + numpy.exp(-scores.clip(-500, 500)))
        return "labels", answers
    powers = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
    return "classes", powers / powers.sum(axis=-1, keepdims=True)
