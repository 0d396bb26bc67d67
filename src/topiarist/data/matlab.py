"""SVHN in the cropped form of MATLAB files (http://ufldl.stanford.edu/housenumbers)."""

import math
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy
import scipy.io
from numpy.typing import NDArray
from scipy.io.matlab import MatReadError

from topiarist.data.label_values import as_labels
from topiarist.data.limits import check_size
from topiarist.data.source import Source
from topiarist.errors import DataError

FILES = {"train": "train_32x32.mat", "test": "test_32x32.mat"}
EXTRA_FILE = "extra_32x32.mat"
CHANNELS = 3
DAMAGE = (MatReadError, ValueError, TypeError, KeyError, IndexError, OverflowError, EOFError, struct.error, zlib.error)


def holds_matlab(folder: Path) -> bool:
    """Tell whether a folder holds the files of SVHN."""
    return any((folder / name).is_file() for name in FILES.values())


def read_matlab_folder(folder: Path, *, labelled: bool) -> Source:
    """Read the train and test files of a folder."""
    paths = {part: folder / name for part, name in FILES.items() if (folder / name).is_file()}
    pairs = {part: read_pair(path, labelled=labelled) for part, path in paths.items()}
    known = [labels for _, labels in pairs.values() if labels is not None]
    if len({images.shape[1:] for images, _ in pairs.values()}) > 1:
        raise DataError(f"{folder}: train and test images differ in size")
    return Source(
        name=folder.resolve().name,
        features=numpy.concatenate([images for images, _ in pairs.values()]),
        labels=numpy.concatenate(known) if len(known) == len(pairs) else None,
        parts=numpy.repeat(list(pairs), [len(images) for images, _ in pairs.values()]) if len(pairs) > 1 else None,
        scaling="minmax",
        notes=(f"{EXTRA_FILE} left out",) if (folder / EXTRA_FILE).is_file() else (),
    )


def read_matlab(path: Path, *, labelled: bool) -> Source:
    """Read one file."""
    images, labels = read_pair(path, labelled=labelled)
    return Source(name=path.resolve().name, features=images, labels=labels, scaling="minmax")


def read_pair(path: Path, *, labelled: bool) -> tuple[NDArray[numpy.uint8], NDArray[Any] | None]:
    """Give images (n_samples, 3, rows, columns) from X (rows, columns, 3, n_samples), and labels from y."""
    try:
        shapes = {name: (shape, kind) for name, shape, kind in scipy.io.whosmat(path)}
        check_variables(path, shapes, labelled=labelled)
        found = scipy.io.loadmat(path, variable_names=["X", "y"])
    except NotImplementedError as error:
        raise DataError(f"{path} is a MATLAB file of version 7.3; save it with version 7 or older") from error
    except DAMAGE as error:
        raise DataError(f"{path} cannot be read as a MATLAB file: {error}") from error
    images = numpy.ascontiguousarray(found["X"].transpose(3, 2, 0, 1))
    if "y" not in found:
        return images, None
    labels = digits(path, found["y"])
    if len(labels) != len(images):
        raise DataError(f"{path}: {len(images)} images but {len(labels)} labels")
    return images, as_labels(str(path), labels, training=labelled)


def check_variables(path: Path, shapes: Mapping[str, tuple[tuple[int, ...], str]], *, labelled: bool) -> None:
    """Refuse, by the declared shapes, what is not SVHN or too large."""
    shape, kind = shapes.get("X", ((), "nothing"))
    if len(shape) != 4 or shape[2] != CHANNELS or kind != "uint8" or not math.prod(shape):
        raise DataError(f"{path}: X must be uint8 (rows, columns, 3, count), found {kind} {shape or ''}")
    if labelled and "y" not in shapes:
        raise DataError(f"{path}: no labels y found beside X, only {', '.join(shapes)}")
    check_size(str(path), sum(math.prod(shapes[name][0]) for name in ("X", "y") if name in shapes))


def digits(path: Path, values: NDArray[Any]) -> NDArray[numpy.uint8]:
    """Give the digits 0 to 9 as labels: SVHN writes 10 for 0."""
    flat = values.ravel()
    if flat.dtype.kind not in "iuf" or not numpy.isin(flat, range(11)).all():
        raise DataError(f"{path}: y must hold the digits 1 to 10 (10 for 0), found {values.dtype} with other values")
    return (flat % 10).astype(numpy.uint8)
