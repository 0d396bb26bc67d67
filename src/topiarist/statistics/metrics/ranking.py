"""Area under the ROC curve and average precision of one score, with the influence of every sample.

The influence of sample k on a value is w_k · ∂value/∂w_k, w being the weights: the infinitesimal jackknife (Jaeckel,
1972). Influences add up to 0, and their squares to the variance. For the area they are the placements of DeLong, DeLong
and Clarke-Pearson (1988). Both are NaN where they are not defined.
"""

import numpy
from numpy.typing import NDArray

from topiarist.statistics.samples import Floats

Truths = NDArray[numpy.bool_]


def roc_auc(scores: Floats, positive: Truths, weights: Floats) -> tuple[float, Floats]:
    """Return the probability that a positive sample scores above a negative one, ties counting half; and influences.

    Worked example: positives 0.9, 0.4 and negatives 0.6, 0.1. 0.9 is above both, 0.4 above one: (1 + ½) / 2 = 0.75.
    The placements of positives are 1 and ½, their influences (1 − 0.75) / 2 and (½ − 0.75) / 2.
    """
    influences = numpy.zeros(len(scores))
    above, below = weights * positive, weights * ~positive
    if not above.any() or not below.any():
        return numpy.nan, influences
    order = numpy.argsort(scores, kind="stable")
    first, last = _ties(scores[order])
    lower = numpy.concatenate([[0.0], numpy.cumsum(below[order])])
    upper = numpy.concatenate([[0.0], numpy.cumsum(above[order])])
    beaten = (lower[first] + lower[last]) / (2 * lower[-1])  # share of negatives below, of each sample
    beating = 1 - (upper[first] + upper[last]) / (2 * upper[-1])  # share of positives above
    value = float(above[order] @ beaten / upper[-1])
    influences[order] = above[order] * (beaten - value) / upper[-1] + below[order] * (beating - value) / lower[-1]
    return value, influences


def average_precision(scores: Floats, positive: Truths, weights: Floats) -> tuple[float, Floats]:
    """Return the mean over positive samples of the precision among samples that score as much or more; and influences.

    With T and A the weights of positives and of all samples at or above each sample i, and P that of all positives,

        value = Σ_i w_i T_i / A_i / P over positives,
        P ∂value/∂w_k = [k positive] (T_k / A_k − value + Σ_{i ≤ k} w_i / A_i) − Σ_{i ≤ k} w_i T_i / A_i²,

    i ≤ k being the positives that score as much as k or less.
    """
    influences = numpy.zeros(len(scores))
    above = weights * positive
    if not above.any():
        return numpy.nan, influences
    order = numpy.argsort(-scores, kind="stable")
    first, last = _ties(-scores[order])
    w, p = weights[order], above[order]
    right = numpy.cumsum(p)[last - 1]
    every = numpy.cumsum(w)[last - 1]
    every[every == 0] = 1.0  # the first samples weigh nothing: nor does their precision
    total = right[-1]
    precision = right / every
    value = float(p @ precision / total)
    gained, lost = _from_here(p / every, first), _from_here(p * right / every**2, first)
    influences[order] = w * (positive[order] * (precision - value + gained) - lost) / total
    return value, influences


def _ties(ordered: Floats) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64]]:
    """Return where the run of equal scores of each sample begins, and where the next one does."""
    starts = numpy.flatnonzero(numpy.concatenate([[True], ordered[1:] != ordered[:-1]]))
    run = numpy.cumsum(numpy.concatenate([[0], ordered[1:] != ordered[:-1]]))
    ends = numpy.append(starts[1:], len(ordered))
    return starts[run], ends[run]


def _from_here(values: Floats, first: NDArray[numpy.int64]) -> Floats:
    """Return the sums of values from the beginning of each sample's run of ties to the end."""
    sums: Floats = numpy.cumsum(values[::-1])[::-1][first]
    return sums
