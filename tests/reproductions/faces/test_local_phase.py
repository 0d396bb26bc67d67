"""Local phase quantisation against the formulas of the paper, written out pixel by pixel."""

import cmath
import math
from itertools import product

import numpy
import pytest
from numpy.typing import NDArray
from scipy import ndimage

from topiarist.errors import DataError
from topiarist.reproductions.faces.features.descriptors import (
    GreyImages,
    Taper,
    decorrelation,
    local_phase_codes,
    local_phase_histograms,
)


def random_images(*shape: int, seed: int = 0) -> GreyImages:
    return numpy.random.default_rng(seed).integers(0, 256, size=shape, dtype=numpy.uint8)


def smooth_images(n_images: int, size: int, *, seed: int) -> GreyImages:
    noise = numpy.random.default_rng(seed).normal(size=(n_images, size, size))
    smooth = ndimage.gaussian_filter(noise, sigma=(0, 2, 2), mode="wrap")
    images: GreyImages = numpy.rint(128 + 50 * smooth / smooth.std()).clip(0, 255).astype(numpy.uint8)
    return images


def literal_taper(window: int, taper: Taper, place: int) -> float:
    return 1.0 if taper == "uniform" else math.exp(-(place**2) / (2 * ((window - 1) / 4) ** 2))


def literal_wave(window: int, taper: Taper, frequency: float, place: int) -> complex:
    """One dimension of the window's transform; a tapered wave is freed of its mean."""
    places = range(-(window // 2), window // 2 + 1)
    values = {p: literal_taper(window, taper, p) * cmath.exp(-2j * math.pi * frequency * p) for p in places}
    if frequency == 0:
        return values[place]
    mean = sum(values.values()) / sum(literal_taper(window, taper, p) for p in places)
    return values[place] - literal_taper(window, taper, place) * mean


def literal_coefficients(image: GreyImages, row: int, column: int, *, window: int, taper: Taper) -> list[float]:
    a = 1 / window
    half = window // 2
    found = []
    for across, down in ((a, 0), (0, a), (a, a), (a, -a)):
        total = 0j
        for y, x in product(range(-half, half + 1), repeat=2):
            wave = literal_wave(window, taper, across, x) * literal_wave(window, taper, down, y)
            total += int(image[row - y, column - x]) * wave
        found.append(total)
    return [value.real for value in found] + [value.imag for value in found]


def literal_codes(
    image: GreyImages, *, window: int, taper: Taper, rotation: NDArray[numpy.float64] | None
) -> NDArray[numpy.int64]:
    half = window // 2
    height, width = image.shape
    codes = numpy.zeros((height - 2 * half, width - 2 * half), dtype=numpy.int64)
    for row, column in product(range(half, height - half), range(half, width - half)):
        values = literal_coefficients(image, row, column, window=window, taper=taper)
        if rotation is not None:
            values = [sum(rotation[i, j] * values[j] for j in range(8)) for i in range(8)]
        codes[row - half, column - half] = sum(2**j for j in range(8) if values[j] >= -1e-9)
    return codes


@pytest.mark.slow
@pytest.mark.parametrize(("window", "taper"), [(3, "uniform"), (5, "uniform"), (7, "uniform"), (5, "gaussian")])
@pytest.mark.parametrize("correlation", [None, 0.9])
def test_codes_are_those_of_the_formula(window: int, taper: Taper, correlation: float | None) -> None:
    images = random_images(2, 13, 11)
    rotation = None if correlation is None else decorrelation(window, taper, correlation)
    expected = [literal_codes(image, window=window, taper=taper, rotation=rotation) for image in images]
    found = local_phase_codes(images, window=window, taper=taper, correlation=correlation)
    numpy.testing.assert_array_equal(found, expected)


def test_the_decorrelation_diagonalises_the_covariance_of_the_model() -> None:
    window = 5
    half = window // 2
    places = list(product(range(window), repeat=2))
    covariance = numpy.array([[0.9 ** math.dist(one, other) for other in places] for one in places])
    transform = numpy.empty((8, len(places)))
    for number, (row, column) in enumerate(places):
        pixel = numpy.zeros((window, window), dtype=numpy.uint8)
        pixel[row, column] = 1
        transform[:, number] = literal_coefficients(pixel, half, half, window=window, taper="uniform")
    rotation = decorrelation(window, "uniform", 0.9)
    numpy.testing.assert_allclose(rotation @ rotation.T, numpy.eye(8), atol=1e-9)
    model = transform @ covariance @ transform.T
    rotated = rotation @ model @ rotation.T
    variances = numpy.diag(rotated)
    numpy.testing.assert_allclose(rotated, numpy.diag(variances), atol=1e-4 * variances.max())
    numpy.testing.assert_allclose(variances, numpy.linalg.eigvalsh(model)[::-1], rtol=1e-4)


@pytest.mark.parametrize("size", [(20, 20), (17, 23), (8, 8)])
def test_histograms_count_the_codes_of_each_block(size: tuple[int, int]) -> None:
    images = random_images(2, *size)
    codes = local_phase_codes(images, window=5)
    _, height, width = codes.shape
    expected = numpy.zeros((2, 4, 4, 256))
    for number, row, column in product(range(2), range(height), range(width)):
        expected[number, row * 4 // height, column * 4 // width, codes[number, row, column]] += 1
    expected /= expected.sum(axis=-1, keepdims=True)
    found = local_phase_histograms(images, window=5)
    assert found.shape == (2, 4096)
    assert found.dtype == numpy.float32
    numpy.testing.assert_allclose(found, expected.reshape(2, -1), atol=1e-6)
    numpy.testing.assert_allclose(found.reshape(2, 16, 256).sum(axis=-1), 1, atol=1e-6)


def test_blocks_without_pixels_are_zero() -> None:
    histograms = local_phase_histograms(random_images(1, 7, 7)).reshape(16, 256)
    assert histograms.sum(axis=1).tolist() == [1] + [0] * 15


@pytest.mark.parametrize("taper", ["uniform", "gaussian"])
@pytest.mark.parametrize("value", [0, 7, 255])
def test_flat_images_get_the_code_of_zero_coefficients(value: int, taper: Taper) -> None:
    flat = numpy.full((1, 20, 20), value, dtype=numpy.uint8)
    assert (local_phase_codes(flat, taper=taper) == 255).all()


def test_images_of_a_stack_are_described_each_by_itself() -> None:
    images = random_images(9, 16, 16)
    together = local_phase_histograms(images)
    numpy.testing.assert_array_equal(together, numpy.concatenate([local_phase_histograms(i[None]) for i in images]))


def test_brightness_and_contrast_do_not_count() -> None:
    images = random_images(2, 16, 16) // 4
    numpy.testing.assert_array_equal(local_phase_codes(images), local_phase_codes(images * 3 + 20))


def gradient_signs(images: GreyImages) -> NDArray[numpy.float64]:
    """A plain descriptor to compare with: histograms of eight gradient directions in the same blocks."""
    down, across = numpy.gradient(images.astype(numpy.float64), axis=(1, 2))
    bins = ((numpy.arctan2(down, across) / (2 * math.pi) * 8).astype(int)) % 8
    sizes = numpy.hypot(down, across)
    blocks = [
        [sizes[:, r : r + 16, c : c + 16][bins[:, r : r + 16, c : c + 16] == b].sum() for b in range(8)]
        for r, c in product(range(0, 64, 16), repeat=2)
    ]
    return numpy.array(blocks)


def test_a_symmetric_blur_changes_less_than_another_picture_does() -> None:
    image, other = (smooth_images(1, 64, seed=seed) for seed in (1, 2))
    blurred = numpy.rint(ndimage.gaussian_filter(image.astype(float), sigma=(0, 1, 1))).astype(numpy.uint8)
    codes = local_phase_codes(image)
    same = (codes == local_phase_codes(blurred)).mean()
    assert same > 0.5 > 0.1 > (codes == local_phase_codes(other)).mean()

    def change(values: NDArray[numpy.float64], to: NDArray[numpy.float64], away: NDArray[numpy.float64]) -> float:
        return float(numpy.abs(to - values).sum() / numpy.abs(away - values).sum())

    phase = [local_phase_histograms(picture).astype(float) for picture in (image, blurred, other)]
    gradient = [gradient_signs(picture) for picture in (image, blurred, other)]
    assert change(phase[0], phase[1], phase[2]) < change(gradient[0], gradient[1], gradient[2])


@pytest.mark.parametrize("window", [0, 1, 4, -3])
def test_a_window_needs_a_middle(window: int) -> None:
    with pytest.raises(DataError, match=f"odd number of pixels, 3 or more; found {window}"):
        local_phase_codes(random_images(1, 9, 9), window=window)


@pytest.mark.parametrize("correlation", [0.0, 1.0, math.nan])
def test_a_correlation_lies_between_0_and_1(correlation: float) -> None:
    with pytest.raises(DataError, match="between 0 and 1"):
        local_phase_codes(random_images(1, 9, 9), correlation=correlation)


def test_images_smaller_than_the_window_and_empty_grids_are_refused() -> None:
    with pytest.raises(DataError, match="at least 7 × 7 pixels; found 5 × 9"):
        local_phase_histograms(random_images(1, 5, 9))
    with pytest.raises(DataError, match="at least 1 block per side; found 0"):
        local_phase_histograms(random_images(1, 9, 9), grid=0)
