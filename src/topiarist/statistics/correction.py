"""Correction of p for several comparisons (Holm, 1979)."""

import numpy

from topiarist.errors import SettingsError
from topiarist.statistics.samples import Values, sample


def holm(p_values: Values) -> tuple[float, ...]:
    """Give p adjusted, in the order given: the i-th smallest becomes max over j ≤ i of min(1, (m − j + 1) p₍ⱼ₎)."""
    p = sample(p_values, "p_values", fewest=0)
    if ((p < 0) | (p > 1)).any():
        raise SettingsError(f"p_values must lie between 0 and 1; found {p[(p < 0) | (p > 1)][0]:g}")
    order = numpy.argsort(p, kind="stable")
    adjusted = numpy.empty_like(p)
    adjusted[order] = numpy.maximum.accumulate(numpy.minimum(p[order] * numpy.arange(len(p), 0, -1), 1.0))
    return tuple(adjusted.tolist())
