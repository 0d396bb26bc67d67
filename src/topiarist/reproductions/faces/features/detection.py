"""Where the face in an image is, and the image cut to it.

Viola and Jones, "Robust real-time face detection", IJCV 2004, with the cascades that come with OpenCV. The largest face
wins, of equals the topmost, then the leftmost.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.data.extras import import_extra
from topiarist.errors import DataError

GreyImage = NDArray[numpy.uint8]  # (height, width)
Point = tuple[float, float]

FACE_SIZE = 128
LONGEST_SIDE = 320  # pixels of the image that is searched: more take longer
BORDER_SHARE = 0.2  # replicated around the image, since the cascade misses faces that fill it
SMALLEST_FACE = 24  # pixels
SMALLEST_SHARES = (0.4, 0.1)  # of the shorter side: large faces first, as most of the time goes into small ones
SCALE_STEP = 1.1
FACE_NEIGHBOURS = 5  # detections that must agree
EYE_NEIGHBOURS = 4
EYE_FACE_SIZE = 240  # pixels of the face in which eyes are searched; the rest are shares of that
EYE_REGION = 0.6  # from the top
EYE_SIZES = (0.12, 0.4)
EYE_DISTANCES = (0.3, 0.6)
STEEPEST_DEGREES = 45.0


@dataclass(frozen=True, kw_only=True)
class FaceBox:
    """A rectangle in an image, in pixels from its upper left corner, turned clockwise about its centre (x, y)."""

    centre: Point
    width: float
    height: float
    angle_degrees: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Cascades:
    """OpenCV's classifiers of faces and eyes; to be used by one thread at a time."""

    face: Any
    eye: Any


def load_cascades() -> Cascades:
    """Load the classifiers of frontal faces and of eyes."""
    vision = _opencv()
    folder = Path(vision.data.haarcascades)
    names = ("haarcascade_frontalface_alt2.xml", "haarcascade_eye.xml")
    face, eye = (vision.CascadeClassifier(str(folder / name)) for name in names)
    return Cascades(face=face, eye=eye)


def _opencv() -> Any:
    return import_extra("cv2", what="finding faces", extra="faces")


def find_face(image: GreyImage, cascades: Cascades, *, align: bool = False) -> FaceBox | None:
    """Return the box of the largest face in a grey image (height, width), None where there is none.

    With `align` the box is turned as the line through the eyes is, where two plausible eyes are found.
    """
    check_grey(image)
    vision = _opencv()
    scale = min(1.0, LONGEST_SIDE / max(image.shape))
    searched = _shrunk(image, scale, scale)
    shorter = min(searched.shape)
    border = round(BORDER_SHARE * shorter)
    even = vision.equalizeHist(searched)
    wide = vision.copyMakeBorder(even, border, border, border, border, vision.BORDER_REPLICATE)
    down, across = (full / reduced for full, reduced in zip(image.shape, searched.shape, strict=True))
    for share in SMALLEST_SHARES:
        smallest = max(SMALLEST_FACE, round(share * shorter))
        boxes = cascades.face.detectMultiScale(
            wide, scaleFactor=SCALE_STEP, minNeighbors=FACE_NEIGHBOURS, minSize=(smallest, smallest)
        )
        if len(boxes):
            left, top, width, height = min(boxes.tolist(), key=lambda box: (-box[2] * box[3], box[1], box[0]))
            centre = ((left - border + width / 2) * across, (top - border + height / 2) * down)
            box = FaceBox(centre=centre, width=width * across, height=height * down)
            return replace(box, angle_degrees=eye_angle(image, box, cascades)) if align else box
    return None


def whole_image(image: GreyImage) -> FaceBox:
    """Return the box that holds all of an image (height, width)."""
    check_grey(image)
    height, width = image.shape
    return FaceBox(centre=(width / 2, height / 2), width=width, height=height)


def cut_face(image: GreyImage, box: FaceBox, *, size: int = FACE_SIZE, margin: int = 0) -> GreyImage:
    """Cut a box out of a grey image and resize it to size × size, with `margin` more pixels on every side.

    Returns (size + 2 margin, size + 2 margin). What is larger than `size` is averaged down first; beyond the border the
    image is replicated.
    """
    check_grey(image)
    if size < 1 or margin < 0:
        raise DataError(f"the size must be 1 or more and the margin 0 or more; found {size} and {margin}")
    vision = _opencv()
    reduced = _shrunk(image, min(1.0, size / box.width), min(1.0, size / box.height))
    down, across = (after / before for after, before in zip(reduced.shape, image.shape, strict=True))
    angle = math.radians(box.angle_degrees)
    turn = numpy.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    step = numpy.diag([across, down]) @ turn @ numpy.diag([box.width, box.height]) / size
    centre = numpy.array([box.centre[0] * across, box.centre[1] * down])
    # Pixel i spans i to i + 1, and OpenCV counts from the middle of the first.
    side = size + 2 * margin
    offset = centre - 0.5 + step @ numpy.full(2, 0.5 - side / 2)
    cut: GreyImage = vision.warpAffine(
        reduced,
        numpy.column_stack([step, offset]),
        (side, side),
        flags=vision.INTER_LINEAR | vision.WARP_INVERSE_MAP,
        borderMode=vision.BORDER_REPLICATE,
    )
    return cut


def eye_angle(image: GreyImage, box: FaceBox, cascades: Cascades) -> float:
    """Return by how many degrees clockwise the line through the eyes of a face is turned, 0 where it is unknown."""
    face = _opencv().equalizeHist(cut_face(image, box, size=EYE_FACE_SIZE))
    smallest, largest = (round(share * EYE_FACE_SIZE) for share in EYE_SIZES)
    boxes, counts = cascades.eye.detectMultiScale2(
        face[: round(EYE_REGION * EYE_FACE_SIZE)],
        scaleFactor=SCALE_STEP,
        minNeighbors=EYE_NEIGHBOURS,
        minSize=(smallest, smallest),
        maxSize=(largest, largest),
    )
    centres = [(left + width / 2, top + height / 2) for left, top, width, height in numpy.reshape(boxes, (-1, 4))]
    return angle_of_eyes(centres, numpy.ravel(counts).tolist())


def angle_of_eyes(centres: Sequence[Point], counts: Sequence[int]) -> float:
    """Return the angle of the surest plausible pair of eyes, in pixels of a face EYE_FACE_SIZE wide, 0 for none.

    A pair is as sure as the less sure of its eyes is, by how many detections agree on it.
    """
    shortest, longest = (share * EYE_FACE_SIZE for share in EYE_DISTANCES)
    pairs = []
    for (first, first_count), (second, second_count) in combinations(zip(centres, counts, strict=True), 2):
        left, right = sorted((first, second))
        angle = math.degrees(math.atan2(right[1] - left[1], right[0] - left[0]))
        if shortest <= math.dist(left, right) <= longest and abs(angle) < STEEPEST_DEGREES:
            pairs.append((-min(first_count, second_count), left, right, angle))
    return min(pairs)[-1] if pairs else 0.0


def _shrunk(image: GreyImage, across: float, down: float) -> GreyImage:
    """Return an image (height, width) made smaller by averaging, to the given shares of its width and height."""
    height, width = image.shape
    size = (max(1, round(width * across)), max(1, round(height * down)))
    if size == (width, height):
        return image
    vision = _opencv()
    smaller: GreyImage = vision.resize(image, size, interpolation=vision.INTER_AREA)
    return smaller


def check_grey(image: NDArray[Any]) -> None:
    """Raise DataError for what is no 8-bit grey image (height, width)."""
    if image.ndim != 2 or image.dtype != numpy.uint8 or not image.size:
        raise DataError(
            f"a grey image must be an array (height, width) of uint8; found {image.dtype} of shape {image.shape}"
        )
