from pathlib import Path

import numpy
import pytest
import soundfile
from PIL import Image

from topiarist.data.readers.folders import is_media, read_media
from topiarist.errors import DataError


def test_kinds(tmp_path: Path) -> None:
    Image.new("L", (3, 2)).save(tmp_path / "a.PNG")
    soundfile.write(tmp_path / "a.wav", numpy.zeros(4), 8000)
    image = read_media(tmp_path / "a.PNG", labelled=False)
    assert (image.features.shape, image.scaling) == ((1, 1, 2, 3), "pixels")
    sound = read_media(tmp_path / "a.wav", labelled=False)
    assert (sound.features.shape, sound.scaling) == ((1, 1, 4), "none")
    with pytest.raises(DataError, match="mixes 1 images with 1 sounds"):
        read_media(tmp_path, labelled=False)


def test_hidden_files_and_other_endings_are_no_media() -> None:
    assert [is_media(Path(name)) for name in ("a.JPG", "._a.jpg", "a.txt", "Thumbs.db")] == [True, False, False, False]
