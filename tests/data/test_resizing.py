"""Images of another size: Pillow is the oracle where it can be, and what cannot be is refused in a line."""

import numpy
import pandas
import pytest
from PIL import Image

from topiarist.data import Source
from topiarist.data.resizing import resized
from topiarist.errors import DataError


def source(*shape: int, type_: str = "uint8") -> Source:
    random = numpy.random.default_rng(0)
    images = random.integers(0, 256, shape).astype(type_)
    return Source(name="images", features=images, labels=numpy.arange(shape[0]) % 2, notes=("first",))


@pytest.mark.parametrize("size", [(4, 5), (8, 8), (20, 13), (3, 30)])
def test_sizes_change_as_pillow_changes_them(size: tuple[int, int]) -> None:
    found = source(3, 1, 8, 8)
    made = resized(found, (1, *size))
    assert made.features.dtype == numpy.uint8 and made.features.shape == (3, 1, *size)
    for before, after in zip(numpy.asarray(found.features), numpy.asarray(made.features), strict=True):
        oracle = Image.fromarray(before[0]).resize((size[1], size[0]), Image.Resampling.BILINEAR)
        assert numpy.abs(numpy.asarray(oracle, dtype=int) - after[0].astype(int)).max() <= 1  # of rounding


def test_colour_becomes_grey_as_in_pillow_and_grey_becomes_colour() -> None:
    found = source(4, 3, 6, 5)
    made = numpy.asarray(resized(found, (1, 6, 5)).features)
    for before, after in zip(numpy.asarray(found.features), made, strict=True):
        oracle = numpy.asarray(Image.fromarray(before.transpose(1, 2, 0)).convert("L"), dtype=int)
        assert numpy.abs(oracle - after[0].astype(int)).max() <= 1
    grey = source(4, 1, 6, 5)
    colour = numpy.asarray(resized(grey, (3, 6, 5)).features)
    assert all((colour[:, channel] == numpy.asarray(grey.features)[:, 0]).all() for channel in range(3))


def test_real_numbers_stay_real_and_nothing_else_changes() -> None:
    found = source(2000, 1, 4, 4, type_="float32")
    made = resized(found, (1, 6, 6))
    assert numpy.asarray(made.features).dtype == numpy.float32
    assert made.labels is found.labels
    assert made.notes == ("first", "images of 1 × 4 × 4 resized to 1 × 6 × 6, which the network reads")
    halves = numpy.asarray(resized(source(2, 1, 4, 4, type_="float64"), (1, 2, 2)).features)
    assert (halves % 1 != 0).any()


def test_what_is_no_image_is_refused() -> None:
    table = Source(name="t", features=pandas.DataFrame({"a": [1, 2]}), labels=numpy.arange(2))
    with pytest.raises(DataError, match="only images can be resized, to 1 × 8 × 8; found a table"):
        resized(table, (1, 8, 8))
    with pytest.raises(DataError, match=r"found samples of shape \(8,\)"):
        resized(source(3, 8), (1, 8, 8))
    with pytest.raises(DataError, match="images of 2 × 8 × 8 cannot become 3 × 8 × 8"):
        resized(source(3, 2, 8, 8), (3, 8, 8))
