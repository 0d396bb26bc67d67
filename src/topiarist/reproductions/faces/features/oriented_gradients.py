"""Pyramid of histograms of oriented gradients (PHOG), a descriptor of shape.

Bosch, Zisserman and Munoz, "Representing shape with a spatial pyramid kernel", CIVR 2007. What the paper leaves open:
the settings of Canny's method are in `edges.py`; each edge point votes for one bin, by the size of its gradient; the
bins are centred on the axes (bin 0 of 16 spans -11.25° to 11.25°), so that the frequent gradients along axes and
diagonals are never on a boundary; angles run from the right downwards; the border is replicated.
"""

import numpy
from numpy.typing import NDArray

from topiarist.errors import DataError
from topiarist.reproductions.faces.features.edges import find_edges, sobel
from topiarist.reproductions.faces.features.grids import Images, cell_histograms, check_images, with_sum_one


def oriented_gradients(images: Images, *, levels: int = 4, bins: int = 16) -> NDArray[numpy.float32]:
    """Describe grey images (n, height, width) by the orientations of their edges, 0° to 360°, over a pyramid of cells.

    Level k has 2ᵏ × 2ᵏ cells. Gives (n, bins · Σ 4ᵏ) for k = 0..levels: the levels one after the other, the cells of
    each row by row; of sum 1, or all zero for an image without edges.
    """
    if levels < 0 or bins < 1:
        raise DataError(f"levels must be 0 or more and bins 1 or more, found {levels} and {bins}")
    check_images(images)
    sizes, numbers = votes(images, bins=bins)
    grid = 2**levels
    cells = cell_histograms(numbers, grid=grid, n_values=bins, weights=sizes)
    pyramid = [cells.reshape(-1, grid, grid, bins)]
    for _ in range(levels):
        pyramid.append(halved(pyramid[-1]))
    joined = numpy.concatenate([level.reshape(len(images), -1) for level in reversed(pyramid)], axis=1)
    return with_sum_one(joined).astype(numpy.float32)


def votes(images: Images, *, bins: int) -> tuple[NDArray[numpy.float64], NDArray[numpy.int64]]:
    """Give the size of the gradient at edge points (0 elsewhere) and the number of its bin, each (n, height, width)."""
    across, down = sobel(images.astype(numpy.int64))
    sizes = numpy.where(find_edges(images), numpy.hypot(across, down), 0.0)
    turns = numpy.arctan2(down, across) / (2 * numpy.pi)
    return sizes, numpy.rint(turns * bins).astype(numpy.int64) % bins


def halved(cells: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """Add up two by two cells of a raster (n, grid, grid, bins)."""
    n_images, grid, _, bins = cells.shape
    coarser: NDArray[numpy.float64] = cells.reshape(n_images, grid // 2, 2, grid // 2, 2, bins).sum(axis=(2, 4))
    return coarser
