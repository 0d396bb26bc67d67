"""Scaling learned from large arrays and tables, some samples at a time, in two passes over them."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.data.preprocessing import Preprocessing, chunks, scale_of, seen_as, with_scales
from topiarist.data.source import RawFeatures, Rows, Scaling, take_rows

Numbers = NDArray[Any]


def fit_in_chunks(
    plain: Preprocessing,
    features: RawFeatures,
    rows: Rows,
    scaling: Scaling,
    input_shape: tuple[int, ...] | None,
) -> Preprocessing:
    """Learn what `fit_preprocessing` learns, to rounding; samples that are not finite are refused.

    `plain` fills what is missing, and scales nothing.
    """
    plain = seen_as(plain, input_shape)
    shape = plain.input_shape
    flat = scaling == "pixels" and len(shape) == 1
    axes = (0, 1) if flat else (0, *range(2, 1 + len(shape)))
    count = len(rows) * math.prod(shape) / (1 if flat else shape[0])

    def over_chunks(of: Callable[[Numbers], Numbers], joined: Callable[..., Any]) -> Numbers:
        found = [
            numpy.atleast_1d(of(plain.numbers(take_rows(features, rows[some])))) for some in chunks(features, rows)
        ]
        result: Numbers = joined(found, axis=0)
        return result

    if scaling == "minmax":
        shift = over_chunks(lambda values: values.min(axis=axes), numpy.min).astype(float)
        spread = over_chunks(lambda values: values.max(axis=axes), numpy.max).astype(float) - shift
    elif scaling in ("zscore", "pixels"):
        shift = over_chunks(lambda values: values.sum(axis=axes, dtype=float), numpy.sum) / count
        wide = shift.reshape(-1, *[1] * (len(shape) - 1))
        squares = over_chunks(lambda values: numpy.square(values - wide).sum(axis=axes), numpy.sum)
        spread = numpy.sqrt(squares / count)
    else:
        over_chunks(lambda values: numpy.zeros(1), numpy.sum)  # they are looked at, and refused where one is not finite
        return replace(plain, scaling=scaling)
    return with_scales(plain, scaling, shift, scale_of(shift, spread))
