"""Numeric arrays in MATLAB files of level 5 (MathWorks, "MAT-File Format").

SciPy's reader is not used: it ends the whole process by a segmentation fault on some damaged files.
"""

import math
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.data.expanding import Readable, read_up_to
from topiarist.data.limits import check_size
from topiarist.errors import DataError

HEADER_BYTES = 128
TAG_BYTES = 8
MATRIX, COMPRESSED = 14, 15
LEVEL_73 = 0x0200
COMPLEX = 0x0800
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}


def read_matfile(path: Path) -> dict[str, NDArray[Any]]:
    """Read the real numeric arrays by name; variables of other kinds are passed over."""
    check_size(str(path), path.stat().st_size)
    arrays: dict[str, NDArray[Any]] = {}
    expanded_bytes = 0
    with path.open("rb") as stream:
        order = byte_order(path, stream.read(HEADER_BYTES))
        while tag := stream.read(TAG_BYTES):
            kind, content = read_element(path, stream, tag, order)
            if kind == COMPRESSED:
                kind, content = inflate(path, content, order, expanded_bytes)
            if kind != MATRIX:
                raise damaged(path, f"an element of type {kind} is no variable")
            expanded_bytes += len(content)
            arrays.update(parse_matrix(path, content, order))
    return arrays


def byte_order(path: Path, header: bytes) -> str:
    """Give the order of bytes that the header declares, as `struct` writes it."""
    order = {b"IM": "<", b"MI": ">"}.get(header[126:128])
    if order is None:
        raise DataError(f"{path} is not a MATLAB file of level 5; save it with -v7")
    if struct.unpack(f"{order}H", header[124:126])[0] == LEVEL_73:
        raise DataError(f"{path} is a MATLAB file of version 7.3; save it with -v7")
    return order


def read_element(path: Path, stream: Readable, tag: bytes, order: str) -> tuple[int, bytes]:
    """Read the element that follows its tag."""
    if len(tag) < TAG_BYTES:
        raise damaged(path, "it ends within a tag")
    kind, size = struct.unpack(f"{order}II", tag)
    content = bytes(read_up_to(stream, size))
    if len(content) < size:
        raise damaged(path, f"{size:,} bytes promised, {len(content):,} found")
    return kind, content


def inflate(path: Path, content: bytes, order: str, expanded_bytes: int) -> tuple[int, bytes]:
    """Expand a compressed element, no further than the tag inside it promises."""
    expanding = zlib.decompressobj()
    try:
        tag = expanding.decompress(content, TAG_BYTES)
        if len(tag) < TAG_BYTES:
            raise damaged(path, "it ends within a tag")
        kind, size = struct.unpack(f"{order}II", tag)
        check_size(str(path), expanded_bytes + size)
        expanded = expanding.decompress(expanding.unconsumed_tail, max(size, 1))
        complete = len(expanded) == size and (expanding.eof or not expanding.decompress(expanding.unconsumed_tail, 1))
    except zlib.error as error:
        raise damaged(path, str(error)) from error
    if not (complete and expanding.eof):
        raise damaged(path, f"a variable does not have the {size:,} bytes promised")
    return kind, expanded


def parse_matrix(path: Path, content: bytes, order: str) -> dict[str, NDArray[Any]]:
    """Give the array in an element by its name, nothing where it is not one of real numbers."""
    _, flags, place = part(path, content, 0, order)
    _, sizes, place = part(path, content, place, order)
    _, name, place = part(path, content, place, order)
    if len(flags) < 4 or len(sizes) % 4:
        raise damaged(path, "a variable has no proper header")
    flag = struct.unpack(f"{order}I", flags[:4])[0]
    kind = CLASSES.get(flag & 0xFF)
    if kind is None or flag & COMPLEX:
        return {}
    shape = struct.unpack(f"{order}{len(sizes) // 4}i", sizes)
    stored, values, _ = part(path, content, place, order)
    if stored not in STORED or min(shape, default=-1) < 0:
        raise damaged(path, f"a variable has type {stored} and shape {shape}")
    dtype = numpy.dtype(f"{order}{STORED[stored]}")
    if len(values) != math.prod(shape) * dtype.itemsize:
        raise damaged(path, f"{len(values):,} bytes are no array of shape {shape}")
    check_size(str(path), math.prod(shape) * numpy.dtype(kind).itemsize)
    array = numpy.frombuffer(values, dtype).reshape(shape, order="F").astype(kind, copy=False)
    return {name.decode("latin-1"): array}


def part(path: Path, content: bytes, place: int, order: str) -> tuple[int, bytes, int]:
    """Give the type and bytes of the part of a variable at `place`, and where the next begins."""
    if place + TAG_BYTES > len(content):
        raise damaged(path, "a variable ends too early")
    kind, size = struct.unpack_from(f"{order}II", content, place)
    if kind >> 16:  # a small part: its size, type and at most 4 bytes together in 8
        if kind >> 16 > 4:
            raise damaged(path, "a variable has a part of impossible size")
        return kind & 0xFFFF, content[place + 4 : place + 4 + (kind >> 16)], place + TAG_BYTES
    begin = place + TAG_BYTES
    if begin + size > len(content):
        raise damaged(path, "a variable ends too early")
    return kind, content[begin : begin + size], begin + size + -size % TAG_BYTES


def damaged(path: Path, why: str) -> DataError:
    """Say that the file is not whole."""
    return DataError(f"{path} is a damaged or truncated MATLAB file ({why}); fetch it again")
