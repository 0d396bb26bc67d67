"""Edges and oriented gradients against their definitions, written out pixel by pixel."""

import math
from itertools import product

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage

from topiarist.errors import DataError
from topiarist.reproductions.faces.features.descriptors import GreyImages, find_edges, oriented_gradients

SIZES = [(16, 16), (32, 32), (19, 27), (5, 5), (1, 7), (40, 3)]


def random_images(*shape: int, seed: int = 0) -> GreyImages:
    return numpy.random.default_rng(seed).integers(0, 256, size=shape, dtype=numpy.uint8)


def literal_filter(image: list[list[int]], mask: list[list[int]]) -> list[list[int]]:
    """Correlate with a mask, the border replicated."""
    height, width = len(image), len(image[0])
    rows, columns = len(mask) // 2, len(mask[0]) // 2
    result = [[0] * width for _ in range(height)]
    for r, c in product(range(height), range(width)):
        for y, x in product(range(len(mask)), range(len(mask[0]))):
            row = min(max(r + y - rows, 0), height - 1)
            column = min(max(c + x - columns, 0), width - 1)
            result[r][c] += mask[y][x] * image[row][column]
    return result


ACROSS = [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]
DOWN = [[-1, -2, -1], [0, 0, 0], [1, 2, 1]]


def literal_edges(image: list[list[int]]) -> set[tuple[int, int]]:
    height, width = len(image), len(image[0])
    taps = [math.comb(8, place) for place in range(9)]
    smooth = literal_filter(image, [[a * b for b in taps] for a in taps])
    across, down = literal_filter(smooth, ACROSS), literal_filter(smooth, DOWN)
    everywhere = list(product(range(height), range(width)))
    steep = {(r, c): across[r][c] ** 2 + down[r][c] ** 2 for r, c in everywhere}
    high = sorted(steep.values())[math.ceil(0.7 * len(steep)) - 1]
    ridge = set()
    for r, c in everywhere:
        sector = round(math.degrees(math.atan2(down[r][c], across[r][c])) / 45) % 4
        y, x = [(0, 1), (1, 1), (1, 0), (1, -1)][sector]
        if steep[r, c] >= max(steep.get((r + y, c + x), 0), steep.get((r - y, c - x), 0)):
            ridge.add((r, c))
    weak = {place for place in ridge if 25 * steep[place] > 4 * high}
    kept = {place for place in ridge if steep[place] > high}
    waiting = list(kept)
    while waiting:
        r, c = waiting.pop()
        near = {(r + y, c + x) for y, x in product((-1, 0, 1), repeat=2)} & weak - kept
        kept |= near
        waiting += near
    return kept


def literal_descriptor(image: list[list[int]], *, levels: int, bins: int) -> list[float]:
    height, width = len(image), len(image[0])
    across, down = literal_filter(image, ACROSS), literal_filter(image, DOWN)
    edges = literal_edges(image)
    values = []
    for level in range(levels + 1):
        grid = 2**level
        for row, column, number in product(range(grid), range(grid), range(bins)):
            total = 0.0
            for r, c in edges:
                angle = math.degrees(math.atan2(down[r][c], across[r][c])) % 360
                inside = r * grid // height == row and c * grid // width == column
                if inside and round(angle * bins / 360) % bins == number:
                    total += math.hypot(across[r][c], down[r][c])
            values.append(total)
    whole = sum(values)
    return [value / whole if whole else 0.0 for value in values]


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_edges_are_those_of_the_definition(size: tuple[int, int]) -> None:
    images = random_images(3, *size)
    for image, edges in zip(images, find_edges(images), strict=True):
        assert {(int(r), int(c)) for r, c in numpy.argwhere(edges)} == literal_edges(image.tolist())


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_descriptors_are_those_of_the_definition(size: tuple[int, int]) -> None:
    images = random_images(2, *size)
    found = oriented_gradients(images, levels=2, bins=8)
    expected = [literal_descriptor(image.tolist(), levels=2, bins=8) for image in images]
    numpy.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_full_pyramid() -> None:
    images = random_images(2, 50, 70)
    found = oriented_gradients(images)
    assert found.shape == (2, 5456)
    assert found.dtype == numpy.float32
    numpy.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)
    start = 0
    whole = found[:, :16]
    for level in range(5):
        cells = found[:, start : start + 16 * 4**level].reshape(2, -1, 16)
        numpy.testing.assert_allclose(cells.sum(axis=1), whole, atol=1e-6)
        start += 16 * 4**level


def pyramid(descriptor: NDArray[numpy.float32], level: int) -> NDArray[numpy.float32]:
    start = sum(16 * 4**k for k in range(level))
    return descriptor[start : start + 16 * 4**level].reshape(2**level, 2**level, 16)


@pytest.mark.slow
@given(seed=st.integers(0, 10_000), size=st.sampled_from([16, 32, 48]))
def test_a_quarter_turn_moves_cells_and_bins(seed: int, size: int) -> None:
    images = random_images(1, size, size, seed=seed)
    turned = numpy.rot90(images, -1, axes=(1, 2))
    before, after = oriented_gradients(images)[0], oriented_gradients(turned)[0]
    for level in range(5):
        expected = numpy.roll(numpy.rot90(pyramid(before, level), -1), 4, axis=2)
        numpy.testing.assert_allclose(pyramid(after, level), expected, atol=1e-6)


@pytest.mark.slow
@given(seed=st.integers(0, 10_000), size=st.sampled_from([16, 32, 48]))
def test_a_mirror_moves_cells_and_bins(seed: int, size: int) -> None:
    images = random_images(1, size, size, seed=seed)
    before, after = oriented_gradients(images)[0], oriented_gradients(images[:, :, ::-1])[0]
    mirrored_bins = (8 - numpy.arange(16)) % 16
    for level in range(5):
        expected = pyramid(before, level)[:, ::-1][:, :, mirrored_bins]
        numpy.testing.assert_allclose(pyramid(after, level), expected, atol=1e-6)


def test_a_step_is_one_orientation_at_its_place() -> None:
    image = numpy.zeros((1, 32, 32), dtype=numpy.uint8)
    image[:, :, 20:] = 200
    descriptor = oriented_gradients(image)[0]
    assert pyramid(descriptor, 0)[0, 0].nonzero()[0].tolist() == [0]
    assert sorted(set(pyramid(descriptor, 2).nonzero()[1].tolist())) == [2]
    darker = oriented_gradients(255 - image)[0]
    assert pyramid(darker, 0)[0, 0].nonzero()[0].tolist() == [8]


@pytest.mark.parametrize("value", [0, 90, 255])
def test_a_flat_image_has_no_edges(value: int) -> None:
    flat = numpy.full((2, 20, 30), value, dtype=numpy.uint8)
    assert not find_edges(flat).any()
    assert not oriented_gradients(flat).any()


def test_images_of_a_stack_are_described_each_by_itself() -> None:
    images = random_images(4, 20, 24)
    images[1] = 0
    together = oriented_gradients(images)
    numpy.testing.assert_array_equal(together, numpy.concatenate([oriented_gradients(image[None]) for image in images]))


def test_edges_are_close_to_those_of_another_implementation() -> None:
    feature = pytest.importorskip("skimage.feature")
    disc = numpy.hypot(*numpy.mgrid[-40:40, -40:40]) < 25
    noise = numpy.random.default_rng(0).normal(0, 4, size=disc.shape)
    image = numpy.rint(60 + 120 * disc + noise).clip(0, 255).astype(numpy.uint8)
    found = find_edges(image[None])[0]
    other = feature.canny(image.astype(float), sigma=2**0.5, low_threshold=20, high_threshold=50)
    assert (ndimage.binary_dilation(found, iterations=1) & other).sum() == other.sum()


@pytest.mark.parametrize(("levels", "bins"), [(-1, 8), (2, 0)])
def test_a_pyramid_needs_levels_and_bins(levels: int, bins: int) -> None:
    with pytest.raises(DataError, match=f"found {levels} and {bins}"):
        oriented_gradients(random_images(1, 8, 8), levels=levels, bins=bins)
