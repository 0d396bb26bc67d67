"""Where the face in a picture is, and the picture cut to it.

Viola and Jones, "Robust real-time face detection", IJCV 2004, with the cascades that come with OpenCV. Choices: the
picture is searched at no more than 320 pixels a side, its contrast evened out and its border replicated by a fifth,
since the cascade misses faces that fill the picture; faces smaller than a tenth of the shorter side are not looked
for; the largest face wins, of equals the topmost, then the leftmost.
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

Picture = NDArray[numpy.uint8]
Point = tuple[float, float]
Box = tuple[int, int, int, int]

FACE_SIZE = 128
LONGEST_SIDE = 320
BORDER_SHARE = 0.2
SMALLEST_FACE = 24
SMALLEST_SHARES = (0.4, 0.1)
SCALE_STEP = 1.1
FACE_NEIGHBOURS = 5
EYE_NEIGHBOURS = 4
EYE_FACE_SIZE = 240
EYE_REGION = 0.6
EYE_SIZES = (0.12, 0.4)
EYE_DISTANCES = (0.3, 0.6)
STEEPEST_DEGREES = 45.0


@dataclass(frozen=True, kw_only=True)
class Place:
    """A rectangle in a picture, in pixels from its upper left corner, turned clockwise about its centre (x, y)."""

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
    vision = opencv()
    folder = Path(vision.data.haarcascades)
    names = ("haarcascade_frontalface_alt2.xml", "haarcascade_eye.xml")
    face, eye = (vision.CascadeClassifier(str(folder / name)) for name in names)
    return Cascades(face=face, eye=eye)


def opencv() -> Any:
    """Import OpenCV."""
    return import_extra("cv2", what="finding faces", extra="faces")


def find_face(picture: Picture, cascades: Cascades, *, align: bool = False) -> Place | None:
    """Give the place of the largest face in a grey picture (height, width), None where there is none.

    With `align` the place is turned as the line through the eyes is, where two plausible eyes are found.
    """
    check_picture(picture)
    scale = min(1.0, LONGEST_SIDE / max(picture.shape))
    searched = shrunk(picture, scale, scale)
    box = largest_box(searched, cascades)
    if box is None:
        return None
    left, top, width, height = box
    down, across = (full / reduced for full, reduced in zip(picture.shape, searched.shape, strict=True))
    place = Place(
        centre=((left + width / 2) * across, (top + height / 2) * down), width=width * across, height=height * down
    )
    return replace(place, angle_degrees=eye_angle(picture, place, cascades)) if align else place


def largest_box(picture: Picture, cascades: Cascades) -> Box | None:
    """Give left, top, width and height of the largest face in a picture (height, width); it may reach beyond it."""
    vision = opencv()
    shorter = min(picture.shape)
    border = round(BORDER_SHARE * shorter)
    replicated = vision.copyMakeBorder(
        vision.equalizeHist(picture), border, border, border, border, vision.BORDER_REPLICATE
    )
    for share in SMALLEST_SHARES:  # large faces first: most of the time goes into the search for small ones
        smallest = max(SMALLEST_FACE, round(share * shorter))
        boxes = cascades.face.detectMultiScale(
            replicated, scaleFactor=SCALE_STEP, minNeighbors=FACE_NEIGHBOURS, minSize=(smallest, smallest)
        )
        if len(boxes):
            left, top, width, height = min(boxes.tolist(), key=lambda box: (-box[2] * box[3], box[1], box[0]))
            return left - border, top - border, width, height
    return None


def whole_picture(picture: Picture) -> Place:
    """Give all of a picture (height, width) as a place."""
    check_picture(picture)
    height, width = picture.shape
    return Place(centre=(width / 2, height / 2), width=width, height=height)


def cut_face(picture: Picture, place: Place, *, size: int = FACE_SIZE, margin: int = 0) -> Picture:
    """Cut a place out of a grey picture and resize it to size × size, with `margin` more pixels on every side.

    Gives (size + 2 margin, size + 2 margin). What is larger than `size` is averaged down first; beyond the border the
    picture is replicated.
    """
    check_picture(picture)
    if size < 1 or margin < 0:
        raise DataError(f"the size must be 1 or more and the margin 0 or more, found {size} and {margin}")
    vision = opencv()
    reduced = shrunk(picture, min(1.0, size / place.width), min(1.0, size / place.height))
    down, across = (after / before for after, before in zip(reduced.shape, picture.shape, strict=True))
    angle = math.radians(place.angle_degrees)
    turn = numpy.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    step = numpy.diag([across, down]) @ turn @ numpy.diag([place.width, place.height]) / size
    centre = numpy.array([place.centre[0] * across, place.centre[1] * down])
    # Pixel i spans i to i + 1, and OpenCV counts from the middle of the first.
    side = size + 2 * margin
    offset = centre - 0.5 + step @ numpy.full(2, 0.5 - side / 2)
    cut: Picture = vision.warpAffine(
        reduced,
        numpy.column_stack([step, offset]),
        (side, side),
        flags=vision.INTER_LINEAR | vision.WARP_INVERSE_MAP,
        borderMode=vision.BORDER_REPLICATE,
    )
    return cut


def eye_angle(picture: Picture, place: Place, cascades: Cascades) -> float:
    """Give how many degrees clockwise the line through the eyes of an upright face is turned, 0 where it is unknown."""
    face = opencv().equalizeHist(cut_face(picture, place, size=EYE_FACE_SIZE))
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
    """Give the angle of the surest plausible pair of eyes, in pixels of a face EYE_FACE_SIZE wide, 0 for none.

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


def shrunk(picture: Picture, across: float, down: float) -> Picture:
    """Make a picture (height, width) smaller by averaging, to the given shares of its width and height."""
    height, width = picture.shape
    size = (max(1, round(width * across)), max(1, round(height * down)))
    if size == (width, height):
        return picture
    vision = opencv()
    smaller: Picture = vision.resize(picture, size, interpolation=vision.INTER_AREA)
    return smaller


def check_picture(picture: NDArray[Any]) -> None:
    """Refuse what is no 8-bit grey picture (height, width)."""
    if picture.ndim != 2 or picture.dtype != numpy.uint8 or not picture.size:
        raise DataError(
            f"a grey picture must be an array (height, width) of uint8, found {picture.dtype} of shape {picture.shape}"
        )
