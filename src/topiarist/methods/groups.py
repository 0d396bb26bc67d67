"""Groups of units: a unit is not needed where it lies near the span of others, not only near one of them.

The angle between a unit and the span of those kept has sin² = the share of its variation that they do not explain.
"""

import math
from collections.abc import Sequence

import numpy
from numpy.typing import NDArray

from topiarist.surgery import Merge
from topiarist.surgery.choice.evidence import Activity

SAME_DEGREES = 0.1
SMALLEST_SHARE = 1e-12
Floats = NDArray[numpy.float64]


def spanning_units(activity: Activity, angle_degrees: float) -> list[int]:
    """Give units such that every other lies within an angle of their span, by pivoted Cholesky decomposition.

    The first is the one that varies most, the next always the one at the widest angle to those so far.
    """
    products, varies = activity.varied, ~activity.constant
    variances = products.diagonal().clip(min=0)
    scale = numpy.where(varies, numpy.sqrt(numpy.where(varies, variances, 1)), numpy.inf)
    correlations = products / numpy.outer(scale, scale)
    left = varies.astype(float)
    factors = numpy.zeros_like(products)
    kept: list[int] = []
    limit = max(math.sin(math.radians(angle_degrees)) ** 2, SMALLEST_SHARE)
    while len(kept) < len(products):
        unit = int(variances.argmax()) if not kept else int(left.argmax())
        if kept and left[unit] <= limit:
            break
        so_far = factors[: len(kept)]
        row = correlations[unit] - so_far[:, unit] @ so_far
        factors[len(kept)] = row / math.sqrt(left[unit]) if left[unit] > 0 else 0.0
        left = (left - factors[len(kept)] ** 2).clip(min=0)
        kept.append(unit)
        left[kept] = 0
    return sorted(kept)


def different_units(activity: Activity) -> list[int]:
    """Give units of which no one is constant, or a multiple of another plus a constant; the first of equals stays."""
    kept: list[int] = []
    for unit in numpy.flatnonzero(~activity.constant).tolist():
        if same_as_one(activity, kept, unit) is None:
            kept.append(unit)
    return kept or [0]


def same_as_one(activity: Activity, kept: Sequence[int], unit: int) -> Merge | None:
    """Give what a unit merges into: one of those kept of which it is a multiple plus a constant, or any if constant."""
    if not kept:
        return None
    means = activity.means if activity.shiftable else numpy.zeros_like(activity.means)
    if activity.constant[unit]:
        return Merge(unit=unit, into=kept[0], scale=0.0, shift=float(means[unit]))
    variances = activity.varied.diagonal()
    products, others = activity.varied[unit, kept], numpy.where(activity.constant[kept], numpy.inf, variances[kept])
    explained = products**2 / others
    best = int(explained.argmax())
    if variances[unit] - explained[best] > math.sin(math.radians(SAME_DEGREES)) ** 2 * variances[unit]:
        return None
    scale = products[best] / others[best]
    return Merge(unit=unit, into=kept[best], scale=float(scale), shift=float(means[unit] - scale * means[kept[best]]))
