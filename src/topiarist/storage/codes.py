"""Short codes for numbers and masks in a packed file.

Bytes are deflated where that makes them fewer. Numbers are split into planes of like bytes. Which weights of a kernel
are kept is coded in run lengths where they lie at random, and in deflated bits where they do not: after Rice, Some
practical universal noiseless coding techniques (1979), all quotients before all remainders, so that both can be read at
once. Runs 1, 6 and 0 with remainders of two bits are the quotients 0, 1, 0 as 1 01 1 and the remainders 1, 2, 0, low
bit first, as 10 01 00. With 80 % of the weights gone at random that takes 0.74 bits per weight; the entropy is 0.72.
"""

import zlib
from collections.abc import Sequence

import numpy
from numpy.typing import NDArray
from torch import Tensor, uint8

from topiarist.errors import ModelError

Bytes = NDArray[numpy.uint8]
Kept = NDArray[numpy.bool_]
Runs = NDArray[numpy.int64]

RAW = -15  # no header and no checksum: the digest of the file guards it
LEVEL, MEMORY = 6, 9  # level 9 takes twenty times as long on exponents, for nothing
STRATEGIES = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY)  # without repetitions, codes alone are shorter
BITS = -1  # the kind of a mask that is stored as bits; other kinds are the width of the remainders
MOST_WIDTH = 16  # more bits would pay only where less than one in 2¹⁶ weights is kept
_WRONG_LENGTH = "the file is damaged: its parts are not as long as they should be"


def deflated(data: bytes) -> bytes:
    """Return the shortest code of some bytes; another zlib may find another one, which means the same."""
    found = []
    for strategy in STRATEGIES:
        deflate = zlib.compressobj(LEVEL, zlib.DEFLATED, RAW, MEMORY, strategy)
        found.append(deflate.compress(data) + deflate.flush())
    return min(found, key=len)


def inflated(data: bytes, most: int) -> bytes:
    """Return what `deflated` was given; no more than `most` bytes are ever made."""
    inflate = zlib.decompressobj(RAW)
    try:
        found = inflate.decompress(data, most + 1)
    except zlib.error as error:
        raise ModelError(f"the file is damaged: {error}") from error
    if len(found) > most or not inflate.eof or inflate.unused_data:
        raise ModelError(_WRONG_LENGTH)
    return found


def _shortest(data: bytes) -> bytes:
    """Return bytes deflated, or as they are where that is not shorter."""
    return min(data, deflated(data), key=len)


def _restored(data: bytes, size: int) -> bytes:
    """Return the `size` bytes that `_shortest` was given."""
    found = data if len(data) == size else inflated(data, size)
    if len(found) != size:
        raise ModelError(_WRONG_LENGTH)
    return found


def rows(tensor: Tensor) -> Bytes:
    """Return the bytes of each number (n_numbers, n_bytes)."""
    found: Bytes = tensor.reshape(-1).view(uint8).numpy().reshape(-1, tensor.itemsize)
    return found


def planes(parts: Sequence[Bytes]) -> list[bytes]:
    """Return the first bytes of all numbers, then the second ones …; exponents are alike: their plane deflates well."""
    return [_shortest(plane.tobytes()) for plane in numpy.concatenate(parts).T]


def joined(data: Sequence[bytes], count: int) -> Bytes:
    """Return the numbers (count, n_bytes) that were split into planes."""
    return numpy.stack([numpy.frombuffer(_restored(plane, count), numpy.uint8) for plane in data], axis=1)


def write_mask(kept: Kept) -> tuple[int, bytes]:
    """Return the kind of the shorter code of a mask, and the code."""
    runs = numpy.diff(numpy.flatnonzero(kept), prepend=-1) - 1
    kind = min(range(MOST_WIDTH), key=lambda width: len(runs) * width + int((runs >> width).sum()))
    codes = (kind, _run_lengths(runs, kind)), (BITS, _shortest(numpy.packbits(kept).tobytes()))
    return min(codes, key=lambda code: len(code[1]))


def _run_lengths(runs: Runs, width: int) -> bytes:
    """Code how many weights are gone before each one that is kept: quotients as so many zeros, then remainders."""
    ends = numpy.cumsum((runs >> width) + 1)
    quotients = numpy.zeros(ends[-1] if len(ends) else 0, bool)
    quotients[ends - 1] = True
    remainders = (runs[:, None] >> numpy.arange(width)) & 1
    return numpy.packbits(quotients).tobytes() + numpy.packbits(remainders.astype(bool)).tobytes()


def read_mask(data: bytes, *, kind: int, count: int, size: int) -> Kept:
    """Return the mask (size,), of which `count` are kept."""
    if not BITS <= kind < MOST_WIDTH or count > size:
        raise ModelError(f"the file is damaged: it has no mask of kind {kind} that keeps {count} of {size} weights")
    kept = numpy.zeros(size, bool)
    if kind == BITS:
        kept |= _bits_of(_restored(data, -(-size // 8)))[:size]
    else:
        places = _places_in(data, width=kind, count=count)
        kept[places[places < size]] = True
    if kept.sum() != count:
        raise ModelError(f"the file is damaged: a mask keeps {kept.sum()} weights where {count} are stored")
    return kept


def _places_in(data: bytes, *, width: int, count: int) -> Runs:
    """Return where the weights are that are kept, in ascending order; at most as many as `data` has bits."""
    end = max(len(data) - -(-count * width // 8), 0)
    ends = numpy.flatnonzero(_bits_of(data[:end]))
    bits = _bits_of(data[end:])[: count * width]
    if len(ends) != count or len(bits) != count * width:
        raise ModelError("the file is damaged: a mask is not as long as it should be")
    quotients = numpy.diff(ends, prepend=-1) - 1
    remainders = bits.reshape(count, width) @ (1 << numpy.arange(width))
    return numpy.cumsum((quotients << width) + remainders + 1) - 1


def _bits_of(data: bytes) -> Kept:
    return numpy.unpackbits(numpy.frombuffer(data, numpy.uint8)).astype(bool)
