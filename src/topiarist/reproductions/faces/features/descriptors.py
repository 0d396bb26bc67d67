"""Descriptors of grey images: local phase quantisation (LPQ) and a pyramid of oriented gradients (PHOG).

LPQ is a texture descriptor that a symmetric blur hardly changes: Ojansivu and Heikkilä, "Blur insensitive texture
classification using local phase quantization", ICISP 2008. What the paper leaves open: only windows that lie within the
image are used; a coefficient counts as non-negative from -1e-9 on, so that the rounding of flat regions does not decide
their codes (they get 255); two coefficients of the covariance model have equal variances by symmetry, which leaves the
rotation of the decorrelation open, so distances along x are stretched by 1e-6 and each component's largest weight is
made positive.

PHOG describes shape: Bosch, Zisserman and Munoz, "Representing shape with a spatial pyramid kernel", CIVR 2007. What
the paper leaves open: each edge point votes for one bin, by the size of its gradient; the bins are centred on the axes
(bin 0 of 16 spans -11.25° to 11.25°), so that the frequent gradients along axes and diagonals are never on a boundary;
angles run from the right downwards; the border is replicated.

Edges are Canny's ("A computational approach to edge detection", PAMI 1986), in whole numbers, so that a turned or
mirrored image has the same edges, turned: smoothing with the binomial filter of nine taps; gradient by Sobel's masks; a
point is a ridge if no neighbour along its gradient (to the nearest 45°) is steeper; a weak point stays if it is
connected to a strong one by any of its 8 neighbours. The border is replicated, and beyond it nothing is steep.
"""

from functools import cache
from typing import Any, Literal

import numpy
from numpy.typing import NDArray
from scipy import ndimage
from sklearn.preprocessing import normalize

from topiarist.errors import DataError

Taper = Literal["uniform", "gaussian"]
GreyImages = NDArray[numpy.uint8]  # (n, height, width)
Floats = NDArray[numpy.float64]
Whole = NDArray[numpy.int64]
Marks = NDArray[numpy.bool_]

N_CODES = 256  # 8 signs
ROUNDING = 1e-9
STRETCH = 1e-6
IMAGES_AT_ONCE = 4  # few enough for the cache of a processor
BINOMIAL = numpy.array(
    [1, 8, 28, 56, 70, 56, 28, 8, 1]
)  # its variance is 2, as that of the Gaussian of MATLAB's `edge`
SHARE_NO_EDGE = 0.7  # MATLAB's: strong is what is steeper than 70 % of the image's pixels, weak than 0.4 of that
SOBEL = numpy.array([[[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]])
TANGENT = 2**0.5 - 1  # of 22.5°, where the horizontal sector meets the diagonal one


def local_phase_histograms(
    images: GreyImages, *, grid: int = 4, window: int = 7, taper: Taper = "uniform", correlation: float | None = 0.9
) -> NDArray[numpy.float32]:
    """Describe grey images (n, height, width) by the histograms of their codes in grid × grid blocks, each of sum 1.

    Returns (n, grid² · 256): the blocks row by row, 256 shares in each; the arguments are those of `local_phase_codes`.
    """
    if grid < 1:
        raise DataError(f"the grid must have at least 1 block per side; found {grid}")
    codes = local_phase_codes(images, window=window, taper=taper, correlation=correlation)
    counts = cell_histograms(codes, grid=grid, n_values=N_CODES).reshape(-1, N_CODES)
    histograms: Floats = normalize(counts, norm="l1")
    return histograms.reshape(len(images), -1).astype(numpy.float32)


def local_phase_codes(
    images: GreyImages, *, window: int = 7, taper: Taper = "uniform", correlation: float | None = 0.9
) -> NDArray[numpy.uint8]:
    """Return the codes (n, height - window + 1, width - window + 1) of grey images (n, height, width).

    Bit j is the sign of coefficient j, in the order of the paper: the real parts of the four frequencies, then the
    imaginary parts. With `correlation` (rho, of two neighbouring pixels) the coefficients are decorrelated first.
    """
    if window < 3 or window % 2 == 0:
        raise DataError(f"the window must be an odd number of pixels, 3 or more; found {window}")
    if correlation is not None and not 0 < correlation < 1:
        raise DataError(f"the correlation of neighbouring pixels must lie between 0 and 1; found {correlation}")
    check_images(images, smallest=window)
    n_images, height, width = images.shape
    codes = numpy.empty((n_images, height - window + 1, width - window + 1), dtype=numpy.uint8)
    for start in range(0, n_images, IMAGES_AT_ONCE):
        some = slice(start, start + IMAGES_AT_ONCE)
        values = _coefficients(images[some], window=window, taper=taper)
        if correlation is not None:
            values = numpy.tensordot(decorrelation(window, taper, correlation), values, axes=1)
        codes[some] = numpy.packbits(values >= -ROUNDING, axis=0, bitorder="little")[0]
    return codes


def _coefficients(images: GreyImages, *, window: int, taper: Taper) -> Floats:
    """Return the short-term Fourier transform (8, n, height - window + 1, width - window + 1).

    F(u, x) = Σ_y f(x - y) exp(-2πi u·y) at u = (a, 0), (0, a), (a, a), (a, -a) with a = 1 / window, y over the window.
    """
    flat, cosine, sine = _waves(window, taper)
    pixels = images.astype(numpy.float64)
    inside = slice(window // 2, -(window // 2))

    def along_x(wave: Floats) -> Floats:
        return ndimage.convolve1d(pixels, wave, axis=2)[:, :, inside]

    def along_y(values: Floats, wave: Floats) -> Floats:
        return ndimage.convolve1d(values, wave, axis=1)[:, inside]

    mean_x, cosine_x, sine_x = along_x(flat), along_x(cosine), along_x(sine)
    both_cosines, both_sines = along_y(cosine_x, cosine), along_y(sine_x, sine)
    cosine_y_sine_x, sine_y_cosine_x = along_y(sine_x, cosine), along_y(cosine_x, sine)
    return numpy.stack(
        [
            along_y(cosine_x, flat),
            along_y(mean_x, cosine),
            both_cosines - both_sines,
            both_cosines + both_sines,
            -along_y(sine_x, flat),
            -along_y(mean_x, sine),
            -cosine_y_sine_x - sine_y_cosine_x,
            -cosine_y_sine_x + sine_y_cosine_x,
        ]
    )


def _waves(window: int, taper: Taper) -> tuple[Floats, Floats, Floats]:
    """Return the taper, and cosine and sine of the lowest frequency under it, each (window,).

    The Gaussian has a standard deviation of a quarter of the window's width (less one pixel); its cosine is freed of
    the mean, so that brightness does not count.
    """
    places = numpy.arange(window) - window // 2
    angles = 2 * numpy.pi * places / window
    flat = numpy.ones(window) if taper == "uniform" else numpy.exp(-((places / ((window - 1) / 4)) ** 2) / 2)
    cosine = flat * numpy.cos(angles)
    return flat, cosine - flat * (cosine.sum() / flat.sum()), flat * numpy.sin(angles)


@cache
def decorrelation(window: int, taper: Taper, correlation: float) -> Floats:
    """Return the rotation (8, 8) that decorrelates the coefficients, largest variance first.

    The pixels of a window are taken to have the covariance C = rho^distance, the coefficients W C Wᵀ, where the columns
    of W (8, window²) are the answers to single bright pixels.
    """
    single_pixels = numpy.eye(window * window, dtype=numpy.uint8).reshape(-1, window, window)
    transform = _coefficients(single_pixels, window=window, taper=taper).reshape(8, -1)
    places = numpy.arange(window, dtype=numpy.float64)
    rows, columns = (values.ravel() for values in numpy.meshgrid(places, places * (1 + STRETCH), indexing="ij"))
    distances = numpy.hypot(rows[:, numpy.newaxis] - rows, columns[:, numpy.newaxis] - columns)
    _, vectors = numpy.linalg.eigh(transform @ correlation**distances @ transform.T)
    components = vectors.T[::-1]
    sizes = numpy.abs(components)
    leading = (sizes > sizes.max(axis=1, keepdims=True) - STRETCH**0.5).argmax(axis=1)
    rotation: Floats = components * numpy.sign(components[numpy.arange(8), leading])[:, numpy.newaxis]
    return rotation


def oriented_gradients(images: GreyImages, *, levels: int = 4, bins: int = 16) -> NDArray[numpy.float32]:
    """Describe grey images (n, height, width) by the orientations of their edges, 0° to 360°, over a pyramid of cells.

    Level k has 2ᵏ × 2ᵏ cells. Returns (n, bins · Σ 4ᵏ) for k = 0..levels: the levels one after the other, the cells of
    each row by row; of sum 1, or all zero for an image without edges.
    """
    if levels < 0 or bins < 1:
        raise DataError(f"levels must be 0 or more and bins 1 or more; found {levels} and {bins}")
    check_images(images)
    across, down = _sobel(images.astype(numpy.int64))
    sizes = numpy.where(find_edges(images), numpy.hypot(across, down), 0.0)
    turns = numpy.arctan2(down, across) / (2 * numpy.pi)
    numbers = numpy.rint(turns * bins).astype(numpy.int64) % bins
    n_images, grid = len(images), 2**levels
    pyramid = [cell_histograms(numbers, grid=grid, n_values=bins, weights=sizes).reshape(n_images, grid, grid, bins)]
    while grid > 1:  # a cell of a coarser level is the sum of two by two finer ones
        grid //= 2
        pyramid.append(pyramid[-1].reshape(n_images, grid, 2, grid, 2, bins).sum(axis=(2, 4)))
    joined = numpy.concatenate([level.reshape(n_images, -1) for level in reversed(pyramid)], axis=1)
    shares: Floats = normalize(joined, norm="l1")
    return shares.astype(numpy.float32)


def find_edges(images: GreyImages) -> Marks:
    """Mark the edge points of grey images (n, height, width)."""
    smooth = images.astype(numpy.int64)
    for axis in (1, 2):
        smooth = ndimage.correlate1d(smooth, BINOMIAL, axis=axis, mode="nearest")
    across, down = _sobel(smooth)
    steepness = across * across + down * down
    strong_from = numpy.quantile(
        steepness.reshape(len(images), -1), SHARE_NO_EDGE, axis=1, method="inverted_cdf"
    ).astype(numpy.int64)[:, numpy.newaxis, numpy.newaxis]
    ridge = _is_ridge(across, down, steepness)
    weak = ridge & (25 * steepness > 4 * strong_from)  # squared, as 0.4² = 4 / 25
    within_image = numpy.zeros((3, 3, 3), dtype=bool)
    within_image[1] = True
    return ndimage.binary_propagation(ridge & (steepness > strong_from), structure=within_image, mask=weak)


def _sobel(images: Whole) -> tuple[Whole, Whole]:
    """Return 8 times the gradient of images (n, height, width) to the right and downwards, each of that shape."""
    across, down = (ndimage.correlate(images, mask, mode="nearest") for mask in (SOBEL, SOBEL.swapaxes(1, 2)))
    return across, down


def _is_ridge(across: Whole, down: Whole, steepness: Whole) -> Marks:
    """Return where neither neighbour along the gradient is steeper, all (n, height, width)."""
    padded = numpy.pad(steepness, ((0, 0), (1, 1), (1, 1)))
    height, width = steepness.shape[1:]

    def highest(rows: int, columns: int) -> Marks:
        ahead = padded[:, 1 + rows : 1 + rows + height, 1 + columns : 1 + columns + width]
        behind = padded[:, 1 - rows : 1 - rows + height, 1 - columns : 1 - columns + width]
        return (steepness >= ahead) & (steepness >= behind)

    horizontal = numpy.abs(down) < TANGENT * numpy.abs(across)
    vertical = numpy.abs(across) < TANGENT * numpy.abs(down)
    falling = (across > 0) == (down > 0)
    diagonal = numpy.where(falling, highest(1, 1), highest(1, -1))
    return numpy.where(horizontal, highest(0, 1), numpy.where(vertical, highest(1, 0), diagonal))


def check_images(images: NDArray[Any], *, smallest: int = 1) -> None:
    """Raise DataError for what is no stack of 8-bit grey images (n, height, width), `smallest` pixels per side."""
    if images.ndim != 3 or images.dtype != numpy.uint8:
        raise DataError(
            f"grey images must be an array (n, height, width) of uint8; found {images.dtype} of shape {images.shape}"
        )
    if not len(images):
        raise DataError("there are no images to describe")
    if min(images.shape[1:]) < smallest:
        height, width = images.shape[1:]
        raise DataError(f"images must have at least {smallest} × {smallest} pixels; found {height} × {width}")


def cell_histograms(values: NDArray[Any], *, grid: int, n_values: int, weights: Floats | None = None) -> Floats:
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


def cell_numbers(height: int, width: int, *, grid: int) -> NDArray[numpy.intp]:
    """Return for each pixel (height, width) the number of its cell in a grid × grid raster, row by row.

    Pixel row r lies in cell row ⌊r · grid / height⌋. Cells of a finer raster so lie within those of one half as fine,
    whatever the size; where an image has fewer pixels than cells, some cells are empty.
    """
    rows = numpy.arange(height, dtype=numpy.intp) * grid // height
    columns = numpy.arange(width, dtype=numpy.intp) * grid // width
    return rows[:, numpy.newaxis] * grid + columns
