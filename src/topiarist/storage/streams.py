"""Bytes that are deflated where that makes them fewer, and numbers split into planes of like bytes."""

import zlib
from collections.abc import Sequence

import numpy
from torch import Tensor, uint8

from topiarist.errors import ModelError

Bytes = numpy.ndarray[tuple[int, ...], numpy.dtype[numpy.uint8]]

RAW = -15  # no header and no checksum: the digest of the file guards it
LEVEL, MEMORY = 6, 9  # level 9 takes twenty times as long on exponents, for nothing
STRATEGIES = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY)  # without repetitions, codes alone are shorter


def deflated(data: bytes) -> bytes:
    """Give the shortest code of some bytes; another zlib may give another one, which means the same."""
    found = []
    for strategy in STRATEGIES:
        deflate = zlib.compressobj(LEVEL, zlib.DEFLATED, RAW, MEMORY, strategy)
        found.append(deflate.compress(data) + deflate.flush())
    return min(found, key=len)


def inflated(data: bytes, most: int) -> bytes:
    """Give back what `deflated` was given; no more than `most` bytes are ever made."""
    inflate = zlib.decompressobj(RAW)
    try:
        found = inflate.decompress(data, most + 1)
    except zlib.error as error:
        raise ModelError(f"the file is damaged: {error}") from error
    if len(found) > most or not inflate.eof or inflate.unused_data:
        raise ModelError("the file is damaged: its parts are not as long as they should be")
    return found


def shortest(data: bytes) -> bytes:
    """Give bytes deflated, or as they are where that is not shorter."""
    return min(data, deflated(data), key=len)


def restored(data: bytes, size: int) -> bytes:
    """Give back the `size` bytes that `shortest` was given."""
    found = data if len(data) == size else inflated(data, size)
    if len(found) != size:
        raise ModelError("the file is damaged: its parts are not as long as they should be")
    return found


def rows(tensor: Tensor) -> Bytes:
    """Give the bytes of each number (n_numbers, n_bytes)."""
    found: Bytes = tensor.reshape(-1).view(uint8).numpy().reshape(-1, tensor.itemsize)
    return found


def planes(parts: Sequence[Bytes]) -> list[bytes]:
    """Give the first bytes of all numbers, then the second ones…; exponents are alike, so that their plane deflates."""
    return [shortest(plane.tobytes()) for plane in numpy.concatenate(parts).T]


def joined(data: Sequence[bytes], count: int) -> Bytes:
    """Give back the numbers (count, n_bytes) that were split into planes."""
    return numpy.stack([numpy.frombuffer(restored(plane, count), numpy.uint8) for plane in data], axis=1)
