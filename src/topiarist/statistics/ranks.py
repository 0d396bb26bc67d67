"""Midranks of samples with ties, doubled, so that they are whole numbers.

Differences that agree but for rounding are ties: 0.92 − 0.91 and 0.82 − 0.81 get the same rank.
"""

import numpy
from numpy.typing import NDArray
from scipy.stats import rankdata

from topiarist.statistics.samples import Floats, rounding_error

Whole = NDArray[numpy.int64]


def doubled_midranks(values: Floats, tolerance: float = 0.0) -> Whole:
    """Give twice the midranks (n,); neighbours at most `tolerance` apart are tied."""
    order = numpy.argsort(values, kind="stable")
    levels = numpy.zeros(len(values), dtype=numpy.int64)
    levels[order[1:]] = numpy.cumsum(numpy.diff(values[order]) > tolerance)
    return numpy.rint(2 * rankdata(levels)).astype(numpy.int64)


def signed_ranks(first: Floats, second: Floats) -> tuple[Whole, NDArray[numpy.bool_]]:
    """Give, of the pairs that differ, twice the midranks of |first − second| and whether first is the greater."""
    tolerance = rounding_error(first, second)
    differences = first - second
    differences = differences[numpy.abs(differences) > tolerance]
    return doubled_midranks(numpy.abs(differences), tolerance), differences > 0


def pooled_ranks(first: Floats, second: Floats) -> Whole:
    """Give twice the midranks (n + m,) of both samples together, the first sample's first."""
    return doubled_midranks(numpy.concatenate([first, second]), rounding_error(first, second))
