"""SVHN in the cropped form of MATLAB files of level 5 (http://ufldl.stanford.edu/housenumbers).

SciPy's reader is not used: on some damaged files it ends the whole process by a segmentation fault (SciPy 1.17.1, a
type of values that is none). MathWorks, "MAT-File Format", describes the form.
"""

import math
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.data.labels import as_labels
from topiarist.data.limits import check_size, read_up_to
from topiarist.data.source import ImagesAndLabels, Source, join_parts
from topiarist.errors import DataError

_FILES = {"train": "train_32x32.mat", "test": "test_32x32.mat"}
_EXTRA_FILE = "extra_32x32.mat"
_CHANNELS = 3
_HEADER_BYTES = 128
_TAG_BYTES = 8
_MATRIX, _COMPRESSED = 14, 15
_LEVEL_73 = 0x0200
_COMPLEX = 0x0800
_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}


def holds_matlab(folder: Path) -> bool:
    """Return whether a folder holds the files of SVHN."""
    return any((folder / name).is_file() for name in _FILES.values())


def read_matlab_folder(folder: Path, *, labelled: bool) -> Source:
    """Read the train and test files of a folder."""
    paths = {part: folder / name for part, name in _FILES.items() if (folder / name).is_file()}
    pairs = {part: _read_pair(path, labelled=labelled) for part, path in paths.items()}
    return join_parts(folder, pairs, notes=(f"{_EXTRA_FILE} left out",) if (folder / _EXTRA_FILE).is_file() else ())


def read_matlab(path: Path, *, labelled: bool) -> Source:
    """Read one file."""
    return join_parts(path, {"all": _read_pair(path, labelled=labelled)})


def _read_pair(path: Path, *, labelled: bool) -> ImagesAndLabels:
    """Return images (n_samples, 3, rows, columns) from X (rows, columns, 3, n_samples), and labels from y."""
    found = read_matfile(path)
    pixels = found.get("X", numpy.empty(0))
    if pixels.ndim != 4 or pixels.shape[2] != _CHANNELS or pixels.dtype != numpy.uint8 or not pixels.size:
        seen = ", ".join(f"{name} {array.dtype} {array.shape}" for name, array in found.items()) or "nothing"
        raise DataError(f"{path}: X must be uint8 (rows, columns, 3, count), found {seen}")
    images = numpy.ascontiguousarray(pixels.transpose(3, 2, 0, 1))
    if "y" not in found:
        if labelled:
            raise DataError(f"{path}: no labels y found beside X, only {', '.join(found)}")
        return images, None
    digits = found["y"].ravel()
    if not numpy.isin(digits, range(11)).all():
        raise DataError(f"{path}: y must hold the digits 1 to 10 (10 for 0), found {digits.dtype} with other values")
    if len(digits) != len(images):
        raise DataError(f"{path}: {len(images)} images but {len(digits)} labels")
    return images, as_labels(str(path), (digits % 10).astype(numpy.uint8), training=labelled)


def read_matfile(path: Path) -> dict[str, NDArray[Any]]:
    """Read the real numeric arrays by name; variables of other kinds are passed over."""
    check_size(str(path), path.stat().st_size)
    arrays: dict[str, NDArray[Any]] = {}
    expanded_bytes = 0
    with path.open("rb") as stream:
        order = _byte_order(path, stream.read(_HEADER_BYTES))
        while tag := stream.read(_TAG_BYTES):
            kind, size = _tag(path, tag, order)
            content = bytes(read_up_to(stream, size))
            if len(content) < size:
                raise _damaged(path, f"{size:,} bytes promised, {len(content):,} found")
            if kind == _COMPRESSED:
                kind, content = _inflate(path, content, order, expanded_bytes)
            if kind != _MATRIX:
                raise _damaged(path, f"an element of type {kind} is no variable")
            expanded_bytes += len(content)
            arrays.update(_parse_matrix(path, content, order))
    return arrays


def _byte_order(path: Path, header: bytes) -> str:
    """Return the order of bytes that the header declares, as `struct` writes it."""
    order = {b"IM": "<", b"MI": ">"}.get(header[126:128])
    if order is None:
        raise DataError(f"{path} is not a MATLAB file of level 5; save it with -v7")
    if struct.unpack(f"{order}H", header[124:126])[0] == _LEVEL_73:
        raise DataError(f"{path} is a MATLAB file of version 7.3; save it with -v7")
    return order


def _tag(path: Path, tag: bytes, order: str) -> tuple[int, int]:
    """Return the type and the size in bytes of the element behind a tag."""
    if len(tag) < _TAG_BYTES:
        raise _damaged(path, "it ends within a tag")
    kind, size = struct.unpack(f"{order}II", tag)
    return kind, size


def _inflate(path: Path, content: bytes, order: str, expanded_bytes: int) -> tuple[int, bytes]:
    """Expand a compressed element, no further than the tag inside it promises."""
    expanding = zlib.decompressobj()
    try:
        kind, size = _tag(path, expanding.decompress(content, _TAG_BYTES), order)
        check_size(str(path), expanded_bytes + size)
        expanded = expanding.decompress(expanding.unconsumed_tail, max(size, 1))
        complete = len(expanded) == size and (expanding.eof or not expanding.decompress(expanding.unconsumed_tail, 1))
    except zlib.error as error:
        raise _damaged(path, str(error)) from error
    if not (complete and expanding.eof):
        raise _damaged(path, f"a variable does not have the {size:,} bytes promised")
    return kind, expanded


def _parse_matrix(path: Path, content: bytes, order: str) -> dict[str, NDArray[Any]]:
    """Return the array in an element by its name, nothing where it is not one of real numbers."""
    _, flags, place = _part(path, content, 0, order)
    _, sizes, place = _part(path, content, place, order)
    _, name, place = _part(path, content, place, order)
    if len(flags) < 4 or len(sizes) % 4:
        raise _damaged(path, "a variable has no proper header")
    flag = struct.unpack(f"{order}I", flags[:4])[0]
    kind = _CLASSES.get(flag & 0xFF)
    if kind is None or flag & _COMPLEX:
        return {}
    shape = struct.unpack(f"{order}{len(sizes) // 4}i", sizes)
    stored, values, _ = _part(path, content, place, order)
    if stored not in _STORED or min(shape, default=-1) < 0:
        raise _damaged(path, f"a variable has type {stored} and shape {shape}")
    dtype = numpy.dtype(f"{order}{_STORED[stored]}")
    if len(values) != math.prod(shape) * dtype.itemsize:
        raise _damaged(path, f"{len(values):,} bytes are no array of shape {shape}")
    check_size(str(path), math.prod(shape) * numpy.dtype(kind).itemsize)
    array = numpy.frombuffer(values, dtype).reshape(shape, order="F").astype(kind, copy=False)
    return {name.decode("latin-1"): array}


def _part(path: Path, content: bytes, place: int, order: str) -> tuple[int, bytes, int]:
    """Return the type and bytes of the part of a variable at `place`, and where the next begins."""
    begin = place + _TAG_BYTES
    kind, size = _tag(path, content[place:begin], order)
    if kind >> 16:  # a small part: its size, type and at most 4 bytes together in 8
        if kind >> 16 > 4:
            raise _damaged(path, "a variable has a part of impossible size")
        return kind & 0xFFFF, content[place + 4 : place + 4 + (kind >> 16)], begin
    if begin + size > len(content):
        raise _damaged(path, "a variable ends too early")
    return kind, content[begin : begin + size], begin + size + -size % _TAG_BYTES


def _damaged(path: Path, why: str) -> DataError:
    return DataError(f"{path} is a damaged or truncated MATLAB file ({why}); download it again")
