from typing import Any

import numpy
import pytest

from topiarist.errors import DataError, SettingsError
from topiarist.randomness import array_generator
from topiarist.reproductions.faces.features.augmentation import FaceAugmentation, augment, move, relight
from topiarist.reproductions.faces.features.detection import GreyImage

NOTHING: dict[str, Any] = {"flip": False, "max_shift": 0, "max_degrees": 0, "brightness": 0, "contrast": 0}


@pytest.fixture
def picture() -> GreyImage:
    return numpy.random.default_rng(0).integers(0, 256, size=(24, 30), dtype=numpy.uint8)


def test_copies_follow_from_the_generator_alone(picture: GreyImage) -> None:
    settings = FaceAugmentation(copies=3)
    before = picture.copy()
    first = augment(picture, settings, generator=array_generator(1), margin=4)
    assert first.shape == (3, 16, 22)
    assert first.dtype == numpy.uint8
    numpy.testing.assert_array_equal(first, augment(picture, settings, generator=array_generator(1), margin=4))
    assert (first != augment(picture, settings, generator=array_generator(2), margin=4)).any()
    assert (first[0] != first[1]).any()
    numpy.testing.assert_array_equal(picture, before)


@pytest.mark.parametrize("margin", [0, 5])
def test_without_any_range_copies_are_the_picture(picture: GreyImage, margin: int) -> None:
    copies = augment(picture, FaceAugmentation(copies=2, **NOTHING), generator=array_generator(0), margin=margin)
    inside = picture[margin : 24 - margin, margin : 30 - margin]
    numpy.testing.assert_array_equal(copies, numpy.stack([inside, inside]))


def test_about_half_of_the_copies_are_mirrored(picture: GreyImage) -> None:
    settings = FaceAugmentation(copies=100, **NOTHING | {"flip": True})
    copies = augment(picture, settings, generator=array_generator(0))
    mirrored = (copies == picture[:, ::-1]).all(axis=(1, 2))
    assert ((copies == picture).all(axis=(1, 2)) ^ mirrored).all()
    assert 30 < mirrored.sum() < 70


def test_one_setting_leaves_the_draws_of_the_others_alone(picture: GreyImage) -> None:
    lit = NOTHING | {"brightness": 0.2}
    flipped = augment(picture, FaceAugmentation(copies=8, **lit | {"flip": True}), generator=array_generator(0))
    plain = augment(picture, FaceAugmentation(copies=8, **lit), generator=array_generator(0))
    for one, other in zip(flipped, plain, strict=True):
        assert (one == other).all() or (one == other[:, ::-1]).all()


def test_shifts_take_from_the_margin(picture: GreyImage) -> None:
    moved = move(picture, shift=(0.2, -0.25), degrees=0, margin=5)  # 4 pixels to the right, 3.5 up
    expected = (picture[8:22, 1:21].astype(float) + picture[9:23, 1:21]) / 2
    numpy.testing.assert_allclose(moved, expected, atol=1e-9)


def test_where_there_is_no_margin_the_border_is_replicated(picture: GreyImage) -> None:
    moved = move(picture, shift=(0.1, 0), degrees=0)
    numpy.testing.assert_allclose(moved, numpy.pad(picture, ((0, 0), (3, 0)), mode="edge")[:, :30], atol=1e-9)


def test_turns_are_clockwise_about_the_middle() -> None:
    square = numpy.random.default_rng(0).integers(0, 256, size=(9, 9), dtype=numpy.uint8)
    numpy.testing.assert_allclose(move(square, shift=(0, 0), degrees=90), numpy.rot90(square, -1), atol=1e-9)


def test_light() -> None:
    picture = numpy.array([[100.0, 120.0], [80.0, 100.0]])
    assert relight(picture, brightness=0.2, contrast=1.5).tolist() == [[151, 181], [121, 151]]


def test_what_would_leave_the_range_is_squeezed_into_it() -> None:
    picture = numpy.array([[0.0, 50.0], [100.0, 250.0]])
    squeezed = relight(picture, brightness=-0.1, contrast=1).astype(int)
    assert squeezed.min() == 0
    assert squeezed.max() == round(250 - 25.5)
    assert (numpy.diff(squeezed.ravel()) > 0).all()
    assert relight(numpy.full((2, 2), 250.0), brightness=0.5, contrast=1).tolist() == [[255, 255], [255, 255]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"copies": 0},
        {"copies": 1001},
        {"copies": 1, "max_shift": 0.3},
        {"copies": 1, "max_degrees": -1},
        {"copies": 1, "max_degrees": 46},
        {"copies": 1, "brightness": float("nan")},
        {"copies": 1, "contrast": 1},
        {"copies": 1, "zoom": 1},
        {},
    ],
)
def test_settings_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="FaceAugmentation"):
        FaceAugmentation(**wrong)


def test_what_cannot_be_augmented_is_refused(picture: GreyImage) -> None:
    settings = FaceAugmentation(copies=1)
    with pytest.raises(DataError, match="the margin"):
        augment(picture, settings, generator=array_generator(0), margin=12)
    with pytest.raises(DataError, match="a grey image"):
        augment(numpy.zeros((3, 3, 3), dtype=numpy.uint8), settings, generator=array_generator(0))
