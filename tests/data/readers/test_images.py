from pathlib import Path
from typing import Any

import numpy
import pytest
from numpy.typing import NDArray
from PIL import Image

from topiarist.data import limits
from topiarist.data.readers.images import read_images
from topiarist.errors import DataError

GREY = numpy.arange(20, dtype=numpy.uint8).reshape(4, 5)
COLOUR = numpy.arange(60, dtype=numpy.uint8).reshape(4, 5, 3)


def save(path: Path, values: NDArray[Any], **options: Any) -> Path:
    Image.fromarray(values).save(path, **options)
    return path


@pytest.mark.parametrize("ending", ["png", "bmp", "tif", "pgm", "gif"])
def test_grey(tmp_path: Path, ending: str) -> None:
    images, notes = read_images([save(tmp_path / f"a.{ending}", GREY)] * 2)
    assert images.dtype == numpy.uint8
    numpy.testing.assert_array_equal(images, numpy.stack([GREY, GREY])[:, None])
    assert notes == ()


def test_one_in_colour_makes_all_colour(tmp_path: Path) -> None:
    images, _ = read_images([save(tmp_path / "a.png", GREY), save(tmp_path / "b.png", COLOUR)])
    numpy.testing.assert_array_equal(images[0], numpy.stack([GREY] * 3))
    numpy.testing.assert_array_equal(images[1], COLOUR.transpose(2, 0, 1))


def test_lossy_forms_come_close(tmp_path: Path) -> None:
    flat = numpy.full((8, 8, 3), 100, dtype=numpy.uint8)
    images, _ = read_images([save(tmp_path / f"a.{ending}", flat) for ending in ("jpg", "webp")])
    assert numpy.abs(images.astype(int) - 100).max() <= 3


def test_sixteen_bits_keep_their_upper_half(tmp_path: Path) -> None:
    images, _ = read_images([save(tmp_path / "a.png", GREY.astype(numpy.uint16) * 256 + 7)])
    numpy.testing.assert_array_equal(images[0, 0], GREY)


def test_a_transparent_palette(tmp_path: Path) -> None:
    palette = Image.fromarray(COLOUR).convert("P")
    palette.save(tmp_path / "a.png", transparency=b"\x00\x80")
    assert read_images([tmp_path / "a.png"])[0].shape == (1, 3, 4, 5)


def test_sizes_that_differ_become_the_most_common(tmp_path: Path) -> None:
    large = save(tmp_path / "large.png", numpy.full((8, 10), 50, dtype=numpy.uint8))
    small = save(tmp_path / "small.png", GREY)
    images, notes = read_images([large, small, small])
    assert images.shape == (3, 1, 4, 5)
    assert (images[0] == 50).all()
    assert notes == ("1 of 3 images resized to 4 × 5",)


def test_what_cannot_be_decoded_is_named(tmp_path: Path) -> None:
    path = save(tmp_path / "bad.png", GREY)
    content = path.read_bytes()
    damaged = bytearray(content)
    damaged[20] ^= 0xFF
    for bad in (b"", b"text", content[:30], content[:-25], bytes(damaged), b"%!PS-Adobe-3.0 EPSF-3.0\n"):
        path.write_bytes(bad)
        with pytest.raises(DataError, match=r"bad\.png"):
            read_images([path])


def test_damaged_metadata_makes_no_noise(tmp_path: Path) -> None:
    path = save(tmp_path / "bad.tif", COLOUR)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(DataError, match=r"bad\.tif"):
            read_images([path])


def test_thirty_two_bits_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="32 bits per channel"):
        read_images([save(tmp_path / "a.tif", GREY.astype(numpy.int32))])


@pytest.mark.parametrize("most", [15, 5])
def test_too_many_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    path = save(tmp_path / "a.png", GREY)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", most)
    with pytest.raises(DataError, match=r"a\.png has too many pixels"):
        read_images([path])


def test_too_many_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "a.png", GREY)
    monkeypatch.setattr(limits, "LARGEST_BYTES", 59)
    with pytest.raises(DataError, match="3 images of 4 × 5 takes 60 bytes"):
        read_images([path] * 3)
