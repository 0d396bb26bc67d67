"""IDX files, the form of MNIST and its relatives (http://yann.lecun.com/exdb/mnist), gzip or not."""

import io
import math
import re
import struct
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.data.file_arrays import FILED_BYTES, FileArray, can_be_read_in_place
from topiarist.data.joined import LARGE_BYTES
from topiarist.data.labels import as_labels
from topiarist.data.limits import check_size, expanded, read_up_to
from topiarist.data.source import ImagesAndLabels, Source, join_parts
from topiarist.errors import DataError

_UNSIGNED_BYTE = 8
_IMAGE_AXES = 3
_MOST_AXES = 32  # numpy knows 64
_PARTS = {"train": "train", "test": "test", "t10k": "test"}
_IMAGES_NAME = re.compile(
    r"(?P<family>.*?)(?P<part>train|test|t10k)[-_.]images[-_.]idx3([-_.]ubyte)?(\.gz)?", re.IGNORECASE
)


def read_idx_array(path: Path) -> NDArray[numpy.uint8] | FileArray:
    """Read exactly the bytes that the header promises; those of a large plain file when they are asked for."""
    with expanded(path) as stream:
        magic = read_up_to(stream, 4)
        if len(magic) < 4 or magic[:2] != b"\0\0" or not magic[3]:
            raise DataError(f"{path} is not an IDX file: it begins with {magic.hex(' ') or 'nothing'}")
        if magic[2] != _UNSIGNED_BYTE:
            raise DataError(f"{path} holds IDX values of type {magic[2]:#04x}; only unsigned bytes (0x08) are read")
        if magic[3] > _MOST_AXES:
            raise DataError(f"{path} holds an array of {magic[3]} axes; images have {_IMAGE_AXES} and labels 1")
        sizes = read_up_to(stream, 4 * magic[3])
        if len(sizes) < 4 * magic[3]:
            raise DataError(f"{path} is truncated: its header ends too early; download it again")
        shape = struct.unpack(f">{magic[3]}I", sizes)
        expected = math.prod(shape)
        if isinstance(stream, io.BufferedReader):  # a plain file
            return _mapped(path, stream.tell(), shape)
        check_size(str(path), expected)
        content = read_up_to(stream, expected)
        if len(content) < expected:
            found = f"{expected:,} bytes promised, {len(content):,} found"
            raise DataError(f"{path} is truncated: {found}; download it again")
        if stream.read(1):
            raise DataError(f"{path} holds more than the {expected:,} bytes that its header promises")
    return numpy.frombuffer(content, dtype=numpy.uint8).reshape(shape)


def _mapped(path: Path, start: int, shape: tuple[int, ...]) -> NDArray[numpy.uint8] | FileArray:
    """Return the values of a plain file as a map, of which only what is used is in memory; many are not even mapped."""
    expected, found = math.prod(shape), path.stat().st_size - start
    if found < expected:
        check_size(str(path), expected)
        raise DataError(f"{path} is truncated: {expected:,} bytes promised, {found:,} found; download it again")
    if found > expected:
        raise DataError(f"{path} holds more than the {expected:,} bytes that its header promises")
    if not expected:
        return numpy.zeros(shape, dtype=numpy.uint8)
    if len(shape) == _IMAGE_AXES and expected > FILED_BYTES and can_be_read_in_place():
        return FileArray(path, start, shape)
    mapped: NDArray[numpy.uint8] = numpy.asarray(numpy.memmap(path, numpy.uint8, "c", start, shape))
    return mapped


def holds_idx(folder: Path) -> bool:
    """Return whether a folder holds IDX images."""
    return bool(_image_files(folder))


def _image_files(folder: Path) -> dict[tuple[str, str], Path]:
    """Return the images of each family and part, the plain file where it is there with and without gzip."""
    found: dict[tuple[str, str], Path] = {}
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        match = _IMAGES_NAME.fullmatch(path.name)
        if match and path.is_file():
            found.setdefault((match["family"].lower(), _PARTS[match["part"].lower()]), path)
    return found


def read_idx_folder(folder: Path, *, labelled: bool) -> Source:
    """Read the train and test files of one family, such as MNIST."""
    found = _image_files(folder)
    families = sorted({family for family, _ in found})
    if len(families) > 1:
        raise DataError(f"{folder} holds several sets ({', '.join(families)}): name one of the image files")
    return join_parts(folder, {part: _read_pair(path, labelled=labelled) for (_, part), path in found.items()})


def read_idx_file(path: Path, *, labelled: bool) -> Source:
    """Read one file of images and the labels beside it."""
    return join_parts(path, {"all": _read_pair(path, labelled=labelled)})


def _read_pair(path: Path, *, labelled: bool) -> ImagesAndLabels:
    """Return images (n_samples, 1, rows, columns) and the labels beside them, None where none are needed."""
    images = read_idx_array(path)
    if images.ndim != _IMAGE_AXES or not images.size:
        raise DataError(f"{path} holds an array of shape {images.shape}; images (count, rows, columns) are needed")
    view = _seen_by_columns if path.name.lower().startswith("emnist") else _seen
    seen = images.seen(view) if isinstance(images, FileArray) else view(images)
    return seen, _read_labels(path, count=len(images), labelled=labelled)


def _seen(images: NDArray[Any]) -> NDArray[Any]:
    """Return images (n, rows, columns) with the axis of their only channel."""
    return images[:, numpy.newaxis]


def _seen_by_columns(images: NDArray[Any]) -> NDArray[Any]:
    """Return images that are stored column by column, with the axis of their only channel."""
    moved = images.transpose(0, 2, 1)
    return (moved if moved.nbytes > LARGE_BYTES else numpy.ascontiguousarray(moved))[:, numpy.newaxis]


def _read_labels(images: Path, *, count: int, labelled: bool) -> NDArray[Any] | None:
    """Read the labels that belong to an images file, which has the same name but for two words."""
    plain = re.sub("idx3", "idx1", re.sub("images", "labels", images.name.removesuffix(".gz")))
    beside = [images.with_name(name) for name in (plain, f"{plain}.gz") if name != images.name]
    path = next((path for path in beside if path.is_file()), None)
    if path is None:
        if labelled:
            raise DataError(f"{images} has no labels beside it: {plain} or {plain}.gz is needed")
        return None
    labels = read_idx_array(path)
    if labels.shape != (count,):
        raise DataError(f"{path} holds labels of shape {labels.shape} for {count} images")
    return as_labels(str(path), numpy.asarray(labels), training=labelled)
