import math
import sys

import numpy
import pytest
from scipy import ndimage

from topiarist.errors import DataError, MissingExtraError
from topiarist.reproductions.faces.features.detection import (
    EYE_FACE_SIZE,
    Cascades,
    FaceBox,
    GreyImage,
    angle_of_eyes,
    cut_face,
    eye_angle,
    find_face,
    load_cascades,
    whole_image,
)

pytest.importorskip("cv2")
data = pytest.importorskip("skimage.data")

FACE = FaceBox(centre=(225.0, 115.0), width=100.0, height=100.0)


@pytest.fixture(scope="module")
def cascades() -> Cascades:
    return load_cascades()


@pytest.fixture(scope="module")
def portrait() -> GreyImage:
    colours = data.astronaut().astype(float) @ [0.299, 0.587, 0.114]
    grey: GreyImage = numpy.rint(colours).astype(numpy.uint8)
    return grey


def turned(picture: GreyImage, degrees: float) -> GreyImage:
    """Turn a picture clockwise about its face."""
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    backwards = numpy.array([[cosine, -sine], [sine, cosine]])
    middle = numpy.array([FACE.centre[1], FACE.centre[0]])
    moved = ndimage.affine_transform(
        picture.astype(float), backwards, offset=middle - backwards @ middle, order=1, mode="nearest"
    )
    rounded: GreyImage = numpy.rint(moved).astype(numpy.uint8)
    return rounded


def overlap(one: FaceBox, other: FaceBox) -> float:
    """Intersection over union of two upright places."""
    across = (one.width + other.width) / 2 - abs(one.centre[0] - other.centre[0])
    down = (one.height + other.height) / 2 - abs(one.centre[1] - other.centre[1])
    both = max(0, min(across, one.width, other.width)) * max(0, min(down, one.height, other.height))
    return both / (one.width * one.height + other.width * other.height - both)


@pytest.mark.parametrize("repeat", [1, 2])
def test_the_face_is_found_at_any_resolution(portrait: GreyImage, cascades: Cascades, repeat: int) -> None:
    face = find_face(portrait.repeat(repeat, axis=0).repeat(repeat, axis=1), cascades)
    assert face is not None
    found = FaceBox(
        centre=(face.centre[0] / repeat, face.centre[1] / repeat),
        width=face.width / repeat,
        height=face.height / repeat,
    )
    assert overlap(found, FACE) > 0.6
    assert face.angle_degrees == 0


def test_a_face_that_fills_the_picture_is_found(portrait: GreyImage, cascades: Cascades) -> None:
    face = find_face(portrait[60:170, 170:280], cascades)
    assert face is not None
    assert overlap(face, FaceBox(centre=(55, 55), width=100, height=100)) > 0.6


def test_the_largest_face_wins(portrait: GreyImage, cascades: Cascades) -> None:
    large = portrait[:256, 96:352]
    both = numpy.hstack([large[::2, ::2].repeat(1, axis=0), numpy.full((128, 128), 90, dtype=numpy.uint8)])
    picture = numpy.vstack([both, large])
    face = find_face(picture, cascades)
    assert face is not None
    assert overlap(face, FaceBox(centre=(129, 243), width=100, height=100)) > 0.6
    assert face == find_face(picture, cascades)


@pytest.mark.slow
@pytest.mark.parametrize("degrees", [-15, 0, 15])
def test_alignment_levels_the_eyes(portrait: GreyImage, cascades: Cascades, degrees: float) -> None:
    picture = turned(portrait, degrees)
    straight = find_face(portrait, cascades, align=True)
    face = find_face(picture, cascades, align=True)
    assert straight is not None
    assert face is not None
    assert face.angle_degrees - straight.angle_degrees == pytest.approx(degrees, abs=4)
    levelled = cut_face(picture, face, size=EYE_FACE_SIZE)
    left = eye_angle(levelled, whole_image(levelled), cascades)
    assert abs(left) < 4


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("size", [(200, 300), (5, 5), (1, 1), (1, 3000), (700, 20)])
def test_no_face_is_none(cascades: Cascades, size: tuple[int, int], align: bool) -> None:
    rows, columns = numpy.indices(size)
    assert find_face(((rows // 8 + columns // 8) % 2 * 200).astype(numpy.uint8), cascades, align=align) is None
    assert find_face(numpy.zeros(size, dtype=numpy.uint8), cascades, align=align) is None


@pytest.mark.parametrize(
    ("eyes", "counts", "angle"),
    [
        ([(60, 80), (160, 80)], [9, 9], 0),
        ([(170, 180), (70, 80)], [9, 9], 0),
        ([(160, 90), (60, 80)], [9, 9], math.degrees(math.atan2(10, 100))),
        ([(60, 80), (90, 80)], [9, 9], 0),
        ([(20, 80), (220, 100)], [9, 9], 0),
        ([(60, 80), (160, 60), (160, 90)], [9, 5, 7], math.degrees(math.atan2(10, 100))),
        ([(60, 80)], [9], 0),
        ([], [], 0),
    ],
)
def test_only_plausible_eyes_turn_a_face(eyes: list[tuple[float, float]], counts: list[int], angle: float) -> None:
    assert angle_of_eyes(eyes, counts) == pytest.approx(angle)
    assert angle_of_eyes(eyes[::-1], counts[::-1]) == pytest.approx(angle)


def test_cutting_at_full_size_copies_the_pixels() -> None:
    picture = numpy.random.default_rng(0).integers(0, 256, size=(30, 40), dtype=numpy.uint8)
    place = FaceBox(centre=(15, 12), width=8, height=8)
    numpy.testing.assert_array_equal(cut_face(picture, place, size=8), picture[8:16, 11:19])
    numpy.testing.assert_array_equal(cut_face(picture, place, size=8, margin=2), picture[6:18, 9:21])


def test_cutting_averages_down() -> None:
    picture = numpy.random.default_rng(0).integers(0, 256, size=(16, 24), dtype=numpy.uint8)
    cut = cut_face(picture, whole_image(picture), size=8)
    assert cut.shape == (8, 8)
    means = picture.reshape(8, 2, 8, 3).mean(axis=(1, 3))
    assert numpy.abs(cut - means).max() <= 0.5


def test_cutting_a_quarter_turn() -> None:
    picture = numpy.random.default_rng(0).integers(0, 256, size=(30, 30), dtype=numpy.uint8)
    place = FaceBox(centre=(15, 15), width=10, height=10, angle_degrees=90)
    numpy.testing.assert_array_equal(cut_face(picture, place, size=10), numpy.rot90(picture[10:20, 10:20]))


def test_beyond_the_border_the_picture_is_replicated() -> None:
    picture = numpy.arange(16, dtype=numpy.uint8).reshape(4, 4)
    cut = cut_face(picture, whole_image(picture), size=4, margin=2)
    numpy.testing.assert_array_equal(cut, numpy.pad(picture, 2, mode="edge"))


@pytest.mark.parametrize("shape", [(0, 3), (3, 3, 3)])
def test_what_is_no_grey_picture_is_refused(cascades: Cascades, shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match="a grey image must be an array"):
        find_face(numpy.zeros(shape, dtype=numpy.uint8), cascades)


@pytest.mark.parametrize(("size", "margin"), [(0, 0), (4, -1)])
def test_a_cut_needs_a_size(size: int, margin: int) -> None:
    picture = numpy.zeros((4, 4), dtype=numpy.uint8)
    with pytest.raises(DataError, match=f"found {size} and {margin}"):
        cut_face(picture, whole_image(picture), size=size, margin=margin)


def test_without_opencv_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(MissingExtraError, match="topiarist\\[faces\\]"):
        load_cascades()
