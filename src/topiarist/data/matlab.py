"""SVHN in the cropped form of MATLAB files (http://ufldl.stanford.edu/housenumbers)."""

from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.data.joining import Pair, join_pairs
from topiarist.data.label_values import as_labels
from topiarist.data.matfile import read_matfile
from topiarist.data.source import Source
from topiarist.errors import DataError

FILES = {"train": "train_32x32.mat", "test": "test_32x32.mat"}
EXTRA_FILE = "extra_32x32.mat"
CHANNELS = 3


def holds_matlab(folder: Path) -> bool:
    """Tell whether a folder holds the files of SVHN."""
    return any((folder / name).is_file() for name in FILES.values())


def read_matlab_folder(folder: Path, *, labelled: bool) -> Source:
    """Read the train and test files of a folder."""
    paths = {part: folder / name for part, name in FILES.items() if (folder / name).is_file()}
    pairs = {part: read_pair(path, labelled=labelled) for part, path in paths.items()}
    return join_pairs(folder, pairs, notes=(f"{EXTRA_FILE} left out",) if (folder / EXTRA_FILE).is_file() else ())


def read_matlab(path: Path, *, labelled: bool) -> Source:
    """Read one file."""
    images, labels = read_pair(path, labelled=labelled)
    return Source(name=path.resolve().name, features=images, labels=labels, scaling="pixels")


def read_pair(path: Path, *, labelled: bool) -> Pair:
    """Give images (n_samples, 3, rows, columns) from X (rows, columns, 3, n_samples), and labels from y."""
    found = read_matfile(path)
    pixels = found.get("X", numpy.empty(0))
    if pixels.ndim != 4 or pixels.shape[2] != CHANNELS or pixels.dtype != numpy.uint8 or not pixels.size:
        seen = ", ".join(f"{name} {array.dtype} {array.shape}" for name, array in found.items()) or "nothing"
        raise DataError(f"{path}: X must be uint8 (rows, columns, 3, count), found {seen}")
    images = numpy.ascontiguousarray(pixels.transpose(3, 2, 0, 1))
    if "y" not in found:
        if labelled:
            raise DataError(f"{path}: no labels y found beside X, only {', '.join(found)}")
        return images, None
    labels = digits(path, found["y"])
    if len(labels) != len(images):
        raise DataError(f"{path}: {len(images)} images but {len(labels)} labels")
    return images, as_labels(str(path), labels, training=labelled)


def digits(path: Path, values: NDArray[Any]) -> NDArray[numpy.uint8]:
    """Give the digits 0 to 9 as labels: SVHN writes 10 for 0."""
    flat = values.ravel()
    if not numpy.isin(flat, range(11)).all():
        raise DataError(f"{path}: y must hold the digits 1 to 10 (10 for 0), found {values.dtype} with other values")
    return (flat % 10).astype(numpy.uint8)
