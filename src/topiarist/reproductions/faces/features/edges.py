"""Edges of grey images by Canny's method, in whole numbers: a turned or mirrored image has the same edges, turned.

Canny, "A computational approach to edge detection", PAMI 1986. Choices: smoothing with the binomial filter of nine
taps, whose variance is 2, as that of the Gaussian that MATLAB uses; gradient by Sobel's masks; a point is a ridge if no
neighbour along its gradient (to the nearest 45°) is steeper; strong is what is steeper than 70 % of the image's pixels,
weak what is steeper than 0.4 of that, both as in MATLAB; a weak point stays if it is connected to a strong one by any
of its 8 neighbours. The border is replicated, and beyond it nothing is steep.
"""

import numpy
from numpy.typing import NDArray
from scipy import ndimage

from topiarist.reproductions.faces.features.grids import Images

Whole = NDArray[numpy.int64]

BINOMIAL = numpy.array([1, 8, 28, 56, 70, 56, 28, 8, 1])
SHARE_NO_EDGE = 0.7
TANGENT = 2**0.5 - 1  # of 22.5°, where the horizontal sector meets the diagonal one


def find_edges(images: Images) -> NDArray[numpy.bool_]:
    """Mark the edge points of grey images (n, height, width)."""
    smooth = images.astype(numpy.int64)
    for axis in (1, 2):
        smooth = ndimage.correlate1d(smooth, BINOMIAL, axis=axis, mode="nearest")
    across, down = sobel(smooth)
    steepness = across * across + down * down
    strong_from = numpy.quantile(
        steepness.reshape(len(images), -1), SHARE_NO_EDGE, axis=1, method="inverted_cdf"
    ).astype(numpy.int64)[:, numpy.newaxis, numpy.newaxis]
    ridge = is_ridge(across, down, steepness)
    weak = ridge & (25 * steepness > 4 * strong_from)  # squared, as 0.4² = 4 / 25
    return connected(weak, ridge & (steepness > strong_from))


def sobel(images: NDArray[numpy.int64]) -> tuple[Whole, Whole]:
    """Give 8 times the gradient of images (n, height, width) to the right and downwards, each of that shape."""
    across = ndimage.correlate1d(images, [-1, 0, 1], axis=2, mode="nearest")
    down = ndimage.correlate1d(images, [-1, 0, 1], axis=1, mode="nearest")
    return (
        ndimage.correlate1d(across, [1, 2, 1], axis=1, mode="nearest"),
        ndimage.correlate1d(down, [1, 2, 1], axis=2, mode="nearest"),
    )


def is_ridge(across: Whole, down: Whole, steepness: Whole) -> NDArray[numpy.bool_]:
    """Tell where neither neighbour along the gradient is steeper, all (n, height, width)."""
    padded = numpy.pad(steepness, ((0, 0), (1, 1), (1, 1)))
    height, width = steepness.shape[1:]

    def highest(rows: int, columns: int) -> NDArray[numpy.bool_]:
        ahead = padded[:, 1 + rows : 1 + rows + height, 1 + columns : 1 + columns + width]
        behind = padded[:, 1 - rows : 1 - rows + height, 1 - columns : 1 - columns + width]
        return (steepness >= ahead) & (steepness >= behind)

    horizontal = numpy.abs(down) < TANGENT * numpy.abs(across)
    vertical = numpy.abs(across) < TANGENT * numpy.abs(down)
    falling = (across > 0) == (down > 0)
    diagonal = numpy.where(falling, highest(1, 1), highest(1, -1))
    return numpy.where(horizontal, highest(0, 1), numpy.where(vertical, highest(1, 0), diagonal))


def connected(weak: NDArray[numpy.bool_], strong: NDArray[numpy.bool_]) -> NDArray[numpy.bool_]:
    """Keep the connected regions of weak points that hold a strong one, in each image by itself."""
    within_image = numpy.zeros((3, 3, 3), dtype=bool)
    within_image[1] = True
    regions, n_regions = ndimage.label(weak, structure=within_image)
    kept = numpy.zeros(n_regions + 1, dtype=bool)
    kept[regions[strong]] = True
    kept[0] = False
    return kept[regions]
