"""Pictures, decoded to one common shape."""

import struct
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray
from PIL import Image

from topiarist.data.limits import check_size
from topiarist.errors import DataError

IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
GREY_MODES = ("1", "L", "LA", "I;16", "I;16B", "I;16L")
DEEP_MODES = ("I", "F")
DAMAGE = (OSError, SyntaxError, ValueError, TypeError, IndexError, OverflowError, EOFError, struct.error, zlib.error)


def read_images(
    paths: Sequence[Path], *, size: tuple[int, int] | None = None
) -> tuple[NDArray[numpy.uint8], tuple[str, ...]]:
    """Give pictures (n_samples, channels, height, width), grey if all are; of `size`, or else the most common size."""
    headers = [read_header(path) for path in paths]
    grey = all(mode in GREY_MODES for mode, _ in headers)
    sizes = Counter(found for _, found in headers)
    common = max(sizes, key=lambda found: (sizes[found], -found[0] * found[1], found))
    height, width = common if size is None else size
    channels = 1 if grey else 3
    check_size(f"{len(paths)} pictures of {height} × {width}", len(paths) * channels * height * width)
    pictures = numpy.empty((len(paths), channels, height, width), dtype=numpy.uint8)
    for place, path in enumerate(paths):
        pictures[place] = read_picture(path, grey=grey, height=height, width=width)
    resized = len(paths) - sizes[height, width]
    notes = (f"{resized} of {len(paths)} pictures resized to {height} × {width}",) if resized else ()
    return pictures, notes


@contextmanager
def opened(path: Path) -> Iterator[Image.Image]:
    """Open a picture, telling whatever is wrong with it as a DataError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # damaged metadata, which is not used
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=FORMATS) as picture:
                yield picture
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise DataError(f"{path} has too many pixels to be decoded: {error}") from error
    except DAMAGE as error:
        raise DataError(f"{path} cannot be decoded as a picture: {error}") from error


def read_header(path: Path) -> tuple[str, tuple[int, int]]:
    """Give the mode and the (height, width) of a picture without decoding it."""
    with opened(path) as picture:
        if picture.mode in DEEP_MODES:
            raise DataError(f"{path} has 32 bits a channel; save it with 8 or 16")
        return mode_of(picture), (picture.height, picture.width)


def mode_of(picture: Image.Image) -> str:
    """Give the mode of a picture, that of grey for a palette of greys."""
    colours = numpy.asarray(picture.getpalette() or [0, 1, 2]).reshape(-1, 3)
    return "L" if picture.mode == "P" and (colours == colours[:, :1]).all() else picture.mode


def read_picture(path: Path, *, grey: bool, height: int, width: int) -> NDArray[Any]:
    """Decode one picture to (channels, height, width)."""
    with opened(path) as picture:
        plain = eight_bits(picture)
        if "transparency" in plain.info:
            plain = plain.convert("RGBA")
        plain = plain.convert("L" if grey else "RGB")
        if plain.size != (width, height):
            plain = plain.resize((width, height), Image.Resampling.BILINEAR)
        values = numpy.asarray(plain)
    return values[numpy.newaxis] if grey else values.transpose(2, 0, 1)


def eight_bits(picture: Image.Image) -> Image.Image:
    """Give a picture of 16 bits its upper 8: Pillow would cut every value at 255."""
    if not picture.mode.startswith("I;16"):
        return picture
    return Image.fromarray((numpy.asarray(picture) >> 8).astype(numpy.uint8))
