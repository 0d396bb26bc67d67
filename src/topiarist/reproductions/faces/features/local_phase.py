"""Local phase quantisation (LPQ), a texture descriptor that a symmetric blur hardly changes.

Ojansivu and Heikkilä, "Blur insensitive texture classification using local phase quantization", ICISP 2008. What the
paper leaves open: only windows that lie within the image are used; a coefficient counts as non-negative from -1e-9
on, so that the rounding of flat regions does not decide their codes (they get 255); two coefficients of the
covariance model have equal variances by symmetry, which leaves the rotation of the decorrelation open, so distances
along x are stretched by 1e-6 and each component's largest weight is made positive.
"""

from functools import cache
from typing import Literal

import numpy
from numpy.typing import NDArray
from scipy import ndimage

from topiarist.errors import DataError
from topiarist.reproductions.faces.features.grids import Images, cell_histograms, check_images, with_sum_one

Taper = Literal["uniform", "gaussian"]
Array = NDArray[numpy.float64]

N_CODES = 256
ROUNDING = 1e-9
STRETCH = 1e-6
IMAGES_AT_ONCE = 4


def local_phase_histograms(
    images: Images, *, grid: int = 4, window: int = 7, taper: Taper = "uniform", correlation: float | None = 0.9
) -> NDArray[numpy.float32]:
    """Describe grey images (n, height, width) by the histograms of their codes in grid × grid blocks, each of sum 1.

    Gives (n, grid² · 256): the blocks row by row, 256 shares in each; the arguments are those of `local_phase_codes`.
    """
    if grid < 1:
        raise DataError(f"the grid must have at least 1 block a side, found {grid}")
    codes = local_phase_codes(images, window=window, taper=taper, correlation=correlation)
    histograms = with_sum_one(cell_histograms(codes, grid=grid, n_values=N_CODES))
    return histograms.reshape(len(images), -1).astype(numpy.float32)


def local_phase_codes(
    images: Images, *, window: int = 7, taper: Taper = "uniform", correlation: float | None = 0.9
) -> NDArray[numpy.uint8]:
    """Give the codes (n, height - window + 1, width - window + 1) of grey images (n, height, width).

    Bit j is the sign of coefficient j, in the order of the paper: the real parts of the four frequencies, then the
    imaginary parts. With `correlation` (rho, of two neighbouring pixels) the coefficients are decorrelated first.
    """
    check_window(window, correlation)
    check_images(images, smallest=window)
    n_images, height, width = images.shape
    codes = numpy.empty((n_images, height - window + 1, width - window + 1), dtype=numpy.uint8)
    for start in range(0, n_images, IMAGES_AT_ONCE):  # few enough for the cache of a processor
        some = slice(start, start + IMAGES_AT_ONCE)
        values = coefficients(images[some], window=window, taper=taper)
        if correlation is not None:
            values = numpy.tensordot(decorrelation(window, taper, correlation), values, axes=1)
        codes[some] = numpy.packbits(values >= -ROUNDING, axis=0, bitorder="little")[0]
    return codes


def check_window(window: int, correlation: float | None) -> None:
    """Refuse a window without a middle pixel, and a correlation that is none."""
    if window < 3 or window % 2 == 0:
        raise DataError(f"the window must be an odd number of pixels, 3 or more, found {window}")
    if correlation is not None and not 0 < correlation < 1:
        raise DataError(f"the correlation of neighbouring pixels must lie between 0 and 1, found {correlation}")


def coefficients(images: Images, *, window: int, taper: Taper) -> Array:
    """Give the short-term Fourier transform (8, n, height - window + 1, width - window + 1).

    F(u, x) = Σ_y f(x - y) exp(-2πi u·y) at u = (a, 0), (0, a), (a, a), (a, -a) with a = 1 / window, y over the window.
    """
    flat, cosine, sine = waves(window, taper)
    pixels = images.astype(numpy.float64)
    inside = slice(window // 2, -(window // 2))

    def along_x(wave: Array) -> Array:
        return ndimage.convolve1d(pixels, wave, axis=2)[:, :, inside]

    def along_y(values: Array, wave: Array) -> Array:
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


def waves(window: int, taper: Taper) -> tuple[Array, Array, Array]:
    """Give the taper, and cosine and sine of the lowest frequency under it, each (window,).

    The Gaussian has a standard deviation of a quarter of the window's width (less one pixel); its cosine is freed of
    the mean, so that brightness does not count.
    """
    places = numpy.arange(window) - window // 2
    angles = 2 * numpy.pi * places / window
    flat = numpy.ones(window) if taper == "uniform" else numpy.exp(-((places / ((window - 1) / 4)) ** 2) / 2)
    cosine = flat * numpy.cos(angles)
    return flat, cosine - flat * (cosine.sum() / flat.sum()), flat * numpy.sin(angles)


@cache
def decorrelation(window: int, taper: Taper, correlation: float) -> Array:
    """Give the rotation (8, 8) that decorrelates the coefficients, largest variance first.

    The pixels of a window are taken to have the covariance C = rho^distance, the coefficients W C Wᵀ.
    """
    transform = kernels(window, taper)
    places = numpy.arange(window, dtype=numpy.float64)
    rows, columns = (values.ravel() for values in numpy.meshgrid(places, places * (1 + STRETCH), indexing="ij"))
    distances = numpy.hypot(rows[:, numpy.newaxis] - rows, columns[:, numpy.newaxis] - columns)
    _, vectors = numpy.linalg.eigh(transform @ correlation**distances @ transform.T)
    components = vectors.T[::-1]
    sizes = numpy.abs(components)
    leading = (sizes > sizes.max(axis=1, keepdims=True) - STRETCH**0.5).argmax(axis=1)
    rotation: Array = components * numpy.sign(components[numpy.arange(8), leading])[:, numpy.newaxis]
    return rotation


def kernels(window: int, taper: Taper) -> Array:
    """Give the transform of one window as a matrix (8, window²): its answers to single bright pixels."""
    pixels = numpy.eye(window * window, dtype=numpy.uint8).reshape(-1, window, window)
    return coefficients(pixels, window=window, taper=taper).reshape(8, -1)
