from typing import Any

import numpy
import pytest
from numpy.typing import NDArray

from topiarist.errors import DataError
from topiarist.reproductions.faces.features.descriptors import cell_histograms, cell_numbers, check_images


def test_cells_are_numbered_row_by_row() -> None:
    assert cell_numbers(4, 6, grid=2).tolist() == [[0, 0, 0, 1, 1, 1]] * 2 + [[2, 2, 2, 3, 3, 3]] * 2


@pytest.mark.parametrize("size", [(37, 41), (5, 5), (16, 100)])
def test_cells_lie_within_those_of_the_raster_half_as_fine(size: tuple[int, int]) -> None:
    fine = cell_numbers(*size, grid=16)
    coarse = cell_numbers(*size, grid=8)
    numpy.testing.assert_array_equal(fine // 16 // 2 * 8 + fine % 16 // 2, coarse)


def test_histograms_count_every_pixel_once_and_by_its_weight() -> None:
    generator = numpy.random.default_rng(0)
    values = generator.integers(0, 5, size=(3, 7, 9))
    weights = generator.random(values.shape)
    counts = cell_histograms(values, grid=2, n_values=5)
    assert counts.shape == (3, 4, 5)
    assert counts.sum(axis=(1, 2)).tolist() == [63, 63, 63]
    weighed = cell_histograms(values, grid=2, n_values=5, weights=weights)
    top_left = (values[1, :4, :5] == 3) * weights[1, :4, :5]
    assert weighed[1, 0, 3] == pytest.approx(top_left.sum())


@pytest.mark.parametrize(
    ("images", "complaint"),
    [
        (numpy.zeros((4, 4), dtype=numpy.uint8), r"found uint8 of shape \(4, 4\)"),
        (numpy.zeros((1, 4, 4)), r"found float64 of shape \(1, 4, 4\)"),
        (numpy.zeros((0, 4, 4), dtype=numpy.uint8), "no images"),
        (numpy.zeros((1, 4, 9), dtype=numpy.uint8), "at least 5 × 5 pixels; found 4 × 9"),
    ],
)
def test_what_is_no_stack_of_grey_images_is_refused(images: NDArray[Any], complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        check_images(images, smallest=5)
