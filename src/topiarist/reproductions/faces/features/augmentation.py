"""Varied copies of a face image for training: mirrored, shifted, turned, brighter or of another contrast."""

from math import cos, radians, sin

import numpy
from numpy.typing import NDArray
from pydantic import Field
from scipy import ndimage

from topiarist.errors import DataError
from topiarist.reproductions.faces.features.descriptors import GreyImages
from topiarist.reproductions.faces.features.detection import GreyImage, check_grey
from topiarist.settings import Settings

WHITE = 255


class FaceAugmentation(Settings):
    """How copies of an image may differ from it; each amount is drawn evenly between minus and plus its bound.

    `flip` mirrors a copy left to right with a probability of one half; shifts are shares of the size; brightness is a
    share of white that is added; contrast is the share by which distances from the image's mean are stretched.
    """

    copies: int = Field(ge=1, le=1000)
    flip: bool = True
    max_shift: float = Field(default=0.05, ge=0, le=0.25)
    max_degrees: float = Field(default=10.0, ge=0, le=45)
    brightness: float = Field(default=0.1, ge=0, le=0.5)
    contrast: float = Field(default=0.1, ge=0, le=0.9)


def augment(
    image: GreyImage, settings: FaceAugmentation, *, generator: numpy.random.Generator, margin: int = 0
) -> GreyImages:
    """Return varied copies of a grey image (height, width) without its margin: (copies, height - 2m, width - 2m).

    Shifts and turns take what they need from the margin; where it is too narrow, the border is replicated.
    """
    check_grey(image)
    if margin < 0 or 2 * margin >= min(image.shape):
        raise DataError(f"the margin must be 0 or more and leave some of {image.shape} pixels; found {margin}")
    copies = []
    for _ in range(settings.copies):  # every copy draws equally often: one setting leaves the draws of the others alone
        mirrored = generator.random() < 0.5 and settings.flip
        across, down, turn, brightness, contrast = generator.uniform(-1, 1, size=5)
        moved = move(
            image[:, ::-1] if mirrored else image,
            shift=(across * settings.max_shift, down * settings.max_shift),
            degrees=turn * settings.max_degrees,
            margin=margin,
        )
        lit = relight(moved, brightness=brightness * settings.brightness, contrast=1 + contrast * settings.contrast)
        copies.append(lit)
    return numpy.stack(copies)


def move(image: GreyImage, *, shift: tuple[float, float], degrees: float, margin: int = 0) -> NDArray[numpy.float64]:
    """Turn an image (height, width) clockwise about its middle, shift it, and leave its margin out.

    The shift, to the right and downwards, is in shares of the size without the margin.
    """
    size = numpy.array(image.shape) - 2 * margin
    angle = radians(degrees)
    backwards = numpy.array([[cos(angle), -sin(angle)], [sin(angle), cos(angle)]])  # on (row, column)
    middle = (size - 1) / 2
    offset = middle + margin - backwards @ (middle + numpy.array([shift[1], shift[0]]) * size)
    pixels, shape = image.astype(numpy.float64), tuple(size.tolist())
    return ndimage.affine_transform(pixels, backwards, offset=offset, output_shape=shape, order=1, mode="nearest")


def relight(image: NDArray[numpy.float64], *, brightness: float, contrast: float) -> GreyImage:
    """Stretch an image (height, width) about its mean by `contrast`, add a share of white, and round to 8 bits.

    What would leave the range from black to white is squeezed into it as a whole: cut off, it would turn into flat
    regions, which descriptors of texture take for something of their own.
    """
    mean = image.mean()
    lit = mean + (image - mean) * contrast + brightness * WHITE
    darkest, brightest = lit.min(), lit.max()
    if (darkest < 0 or brightest > WHITE) and brightest > darkest:
        lowest, highest = max(darkest, 0.0), min(brightest, float(WHITE))
        lit = lowest + (lit - darkest) * (highest - lowest) / (brightest - darkest)
    rounded: GreyImage = numpy.clip(numpy.rint(lit), 0, WHITE).astype(numpy.uint8)
    return rounded
