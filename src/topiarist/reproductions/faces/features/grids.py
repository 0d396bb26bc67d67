"""Histograms on a grid of cells, for a whole stack of images at once."""

from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.errors import DataError

Images = NDArray[numpy.uint8]


def check_images(images: NDArray[Any], *, smallest: int = 1) -> None:
    """Refuse what is no stack of 8-bit grey images (n, height, width) of at least `smallest` pixels a side."""
    if images.ndim != 3 or images.dtype != numpy.uint8:
        raise DataError(
            f"grey images must be an array (n, height, width) of uint8, found {images.dtype} of shape {images.shape}"
        )
    if not len(images):
        raise DataError("there are no images to describe")
    if min(images.shape[1:]) < smallest:
        height, width = images.shape[1:]
        raise DataError(f"images must have at least {smallest} × {smallest} pixels, found {height} × {width}")


def cell_numbers(height: int, width: int, *, grid: int) -> NDArray[numpy.intp]:
    """Give each pixel (height, width) the number of its cell in a grid × grid raster, row by row.

    Pixel row r lies in cell row ⌊r · grid / height⌋. Cells of a finer raster so lie within those of one half as fine,
    whatever the size; where an image has fewer pixels than cells, some cells are empty.
    """
    rows = numpy.arange(height, dtype=numpy.intp) * grid // height
    columns = numpy.arange(width, dtype=numpy.intp) * grid // width
    return rows[:, numpy.newaxis] * grid + columns


def cell_histograms(
    values: NDArray[Any], *, grid: int, n_values: int, weights: NDArray[numpy.float64] | None = None
) -> NDArray[numpy.float64]:
    """Count values 0..n_values-1 (n, height, width) by cell, each by its weight: (n, grid * grid, n_values)."""
    n_images, height, width = values.shape
    n_cells = grid * grid
    cells = cell_numbers(height, width, grid=grid) + n_cells * numpy.arange(n_images)[:, numpy.newaxis, numpy.newaxis]
    counts = numpy.bincount(
        (cells * n_values + values).ravel(),
        weights=None if weights is None else weights.ravel(),
        minlength=n_images * n_cells * n_values,
    )
    return counts.astype(numpy.float64).reshape(n_images, n_cells, n_values)


def with_sum_one(histograms: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """Scale the last axis to the sum 1; what is all zero stays so."""
    totals = histograms.sum(axis=-1, keepdims=True)
    scaled: NDArray[numpy.float64] = histograms / numpy.where(totals > 0, totals, 1)
    return scaled
