"""Image files, decoded to one common shape."""

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
from topiarist.data.readers.decoders import silent_decoder
from topiarist.errors import DataError

DEEP_MODES = ("I", "F")
DAMAGE = (OSError, SyntaxError, ValueError, TypeError, IndexError, OverflowError, EOFError, struct.error, zlib.error)
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
_GREY_MODES = ("1", "L", "LA", "I;16", "I;16B", "I;16L")


def read_images(paths: Sequence[Path]) -> tuple[NDArray[numpy.uint8], tuple[str, ...]]:
    """Return images (n_samples, channels, height, width), grey if all are, of the most common size."""
    headers = [_read_header(path) for path in paths]
    grey = all(mode in _GREY_MODES for mode, _ in headers)
    sizes = Counter(found for _, found in headers)
    height, width = max(sizes, key=lambda found: (sizes[found], -found[0] * found[1], found))
    channels = 1 if grey else 3
    check_size(f"{len(paths)} images of {height} × {width}", len(paths) * channels * height * width)
    images = numpy.empty((len(paths), channels, height, width), dtype=numpy.uint8)
    for place, path in enumerate(paths):
        images[place] = _read_image(path, grey=grey, height=height, width=width)
    resized = len(paths) - sizes[height, width]
    return images, (f"{resized} of {len(paths)} images resized to {height} × {width}",) if resized else ()


@contextmanager
def opened(path: Path) -> Iterator[Image.Image]:
    """Open an image; whatever is wrong with it is a DataError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # damaged metadata, which is not used
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with silent_decoder(), Image.open(path, formats=_FORMATS) as image:
                yield image
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise DataError(f"{path} has too many pixels to be decoded: {error}") from error
    except DAMAGE as error:
        raise DataError(f"{path} cannot be decoded as an image: {error}") from error


def _read_header(path: Path) -> tuple[str, tuple[int, int]]:
    """Return the mode, that of grey for a palette of greys, and the (height, width) of an image that is not decoded."""
    with opened(path) as image:
        if image.mode in DEEP_MODES:
            raise DataError(f"{path} has 32 bits per channel; save it with 8 or 16")
        colours = numpy.asarray(image.getpalette() or [0, 1, 2]).reshape(-1, 3)
        grey = image.mode == "P" and (colours == colours[:, :1]).all()
        return "L" if grey else image.mode, (image.height, image.width)


def _read_image(path: Path, *, grey: bool, height: int, width: int) -> NDArray[Any]:
    with opened(path) as image:
        plain = eight_bits(image)
        if "transparency" in plain.info:
            plain = plain.convert("RGBA")
        plain = plain.convert("L" if grey else "RGB")
        if plain.size != (width, height):
            plain = plain.resize((width, height), Image.Resampling.BILINEAR)
        values = numpy.asarray(plain)
    return values[numpy.newaxis] if grey else values.transpose(2, 0, 1)


def eight_bits(image: Image.Image) -> Image.Image:
    """Return the upper 8 bits of an image of 16: Pillow would cut every value at 255."""
    if not image.mode.startswith("I;16"):
        return image
    return Image.fromarray((numpy.asarray(image) >> 8).astype(numpy.uint8))
