from pathlib import Path

import numpy
import pytest
import soundfile
from PIL import Image

from topiarist.data.readers.folders import read_media
from topiarist.errors import DataError


def image(path: Path, value: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (3, 2), value).save(path)


def test_one_folder_a_class(tmp_path: Path) -> None:
    image(tmp_path / "dog" / "b.png", 3)
    image(tmp_path / "cat" / "z.png", 2)
    image(tmp_path / "cat" / "a.PNG", 1)
    (tmp_path / "cat" / "notes.txt").write_text("x")
    (tmp_path / "cat" / ".DS_Store").write_text("x")
    (tmp_path / "dog" / "gone.png").symlink_to("elsewhere.png")
    (tmp_path / ".git").mkdir()
    source = read_media(tmp_path, labelled=True)
    assert isinstance(source.features, numpy.ndarray)
    assert source.features[:, 0, 0, 0].tolist() == [1, 2, 3]
    assert source.labels is not None
    assert source.labels.tolist() == ["cat", "cat", "dog"]
    assert source.parts is None
    assert source.notes == ("2 file(s) that are no samples left out",)


def test_parts_above_the_classes(tmp_path: Path) -> None:
    for part in ("train", "val", "test"):
        for label in ("cat", "dog"):
            image(tmp_path / part / label / "a.png")
    source = read_media(tmp_path, labelled=True)
    assert source.parts is not None
    assert source.parts.tolist() == ["test"] * 2 + ["train"] * 2 + ["validation"] * 2
    assert source.labels is not None
    assert source.labels.tolist() == ["cat", "dog"] * 3


def test_a_class_may_be_called_test(tmp_path: Path) -> None:
    image(tmp_path / "test" / "a.png")
    image(tmp_path / "real" / "a.png")
    source = read_media(tmp_path, labelled=True)
    assert source.labels is not None
    assert source.labels.tolist() == ["real", "test"]


def test_sound(tmp_path: Path) -> None:
    for label in ("rain", "wind"):
        (tmp_path / label).mkdir()
        soundfile.write(tmp_path / label / "a.wav", numpy.zeros(4), 8000)
    assert read_media(tmp_path, labelled=True).features.shape == (2, 1, 4)


def test_loose_files_are_for_prediction_only(tmp_path: Path) -> None:
    image(tmp_path / "b.png", 2)
    image(tmp_path / "a.png", 1)
    source = read_media(tmp_path, labelled=False)
    assert source.labels is None
    assert isinstance(source.features, numpy.ndarray)
    assert source.features[:, 0, 0, 0].tolist() == [1, 2]
    with pytest.raises(DataError, match=r"found a\.png, b\.png: one folder per class"):
        read_media(tmp_path, labelled=True)


def test_nothing_and_one_class(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="found nothing"):
        read_media(tmp_path, labelled=False)
    image(tmp_path / "cat" / "a.png")
    with pytest.raises(DataError, match="only the class cat"):
        read_media(tmp_path, labelled=True)
