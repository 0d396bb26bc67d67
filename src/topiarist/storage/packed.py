"""Packed files: a network's tensors as one row of bytes, after Han, Mao and Dally, Deep compression (2016).

A kernel is a mask and the weights that are not zero, or all of them where that is shorter. Numbers of one type stand
together, split into planes of bytes; each plane is deflated where that is shorter. Departures: no shared weights and
no retraining; the weights are rounded once, channel by channel.

The file holds one tensor of bytes: the length of the header (4 bytes, little-endian), the header, deflated, and
the streams: masks, then the planes of each type. Only format, library and digest stand in the metadata, so that
versions that cannot read the file say so. No tensor takes more memory than the module that it is for asks.
"""

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from itertools import accumulate, islice, pairwise
from math import prod
from typing import Annotated, Literal, NamedTuple

import numpy
import torch
from pydantic import AfterValidator, Field
from torch import Tensor

from topiarist.errors import ModelError
from topiarist.files import canonical_json
from topiarist.settings import Settings
from topiarist.storage.codes import Bytes, Kept, deflated, inflated, joined, planes, read_mask, rows, write_mask
from topiarist.storage.header import Header, Version, check_format, readable
from topiarist.storage.quantising import CODES, SCALE, dequantise, quantise

PACKED = ".packed"  # no tensor of a network can have this name
PACKED_FORMAT = 2
LENGTH_BYTES = 4
LARGEST_HEADER = 2**24  # bytes: far above any header, and as much as a file made up by someone can make us inflate


def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


TYPES = {
    _name_of(dtype): dtype
    for dtype in (
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint64, torch.uint32, torch.uint16, torch.uint8),
        *(torch.bool, torch.complex64),
    )
}


def _check_type(name: str) -> str:
    if name not in TYPES:
        raise ValueError(f"no type is called '{name}'")
    return name


Count = Annotated[int, Field(ge=0, lt=2**63)]
TypeName = Annotated[str, AfterValidator(_check_type)]


class Packing(Settings):
    """How a network is packed.

    Parameters
    ----------
    bits
        Of a weight in a kernel, a parameter of two dimensions or more. With 32, all is kept to the bit. With 16 or 8,
        weights are rounded to float16 or to whole numbers, with a scale for each output channel. Zeros stay zero; a
        weight that is nearer to zero than to its first step becomes zero too: below 1/254 of the channel's largest at
        8 bits. All else keeps its bits: biases, norms, buffers, kernels of fewer bits.
    """

    bits: Literal[32, 16, 8] = 32


class PackedMask(NamedTuple):
    """The kind of a mask's code, and how many weights it keeps."""

    kind: int
    kept: Count


class PackedTensor(NamedTuple):
    """How a tensor is packed; it has a scale for each channel where it is stored in another type than its own."""

    name: str
    dtype: TypeName
    stored: TypeName
    shape: tuple[Count, ...]
    mask: PackedMask | None

    @property
    def pieces(self) -> tuple[tuple[str, int], ...]:
        """Return the type and the count of the numbers that are stored, and of the scales where it has any."""
        numbers = (self.stored, prod(self.shape) if self.mask is None else self.mask.kept)
        return (numbers,) if self.stored == self.dtype else (numbers, (_name_of(SCALE), self.shape[0]))


class _Cover(Version, extra="forbid"):
    """The part of the header that is not deflated."""

    digest: str


class PackedHeader(Header):
    """A header with an index of the packed tensors, and the bytes of each stream."""

    format: int = PACKED_FORMAT
    tensors: tuple[PackedTensor, ...]
    sizes: tuple[Count, ...]

    @property
    def bits(self) -> Literal[32, 16, 8]:
        """Return the bits that a weight was packed with."""
        stored = {tensor.stored for tensor in self.tensors if tensor.stored != tensor.dtype}
        return 8 if _name_of(CODES[8]) in stored else 16 if stored else 32

    def to_text(self) -> str:
        """Return the text that stands in the metadata."""
        return canonical_json(self.model_dump(include=set(_Cover.model_fields)), only_ascii=True)

    def to_bytes(self) -> bytes:
        """Return all else, deflated, with its length before it."""
        rest = self.model_dump(mode="json", exclude=set(_Cover.model_fields) | self.unsaid)
        text = canonical_json(rest, only_ascii=True).encode()
        if len(text) > LARGEST_HEADER:
            raise ModelError(f"a packed file holds a header of at most {LARGEST_HEADER:,} bytes; found {len(text):,}")
        content = deflated(text)
        return len(content).to_bytes(LENGTH_BYTES, "little") + content


def parse_packed_header(text: str, packed: Tensor) -> PackedHeader:
    """Read what `to_text` and `to_bytes` wrote; both may come from anyone."""
    with readable():
        check_format(text, PACKED_FORMAT)
        cover = _Cover.model_validate_json(text)
        if packed.dtype != torch.uint8 or packed.ndim != 1:
            raise ModelError("the file is damaged: its packed tensor is not a row of bytes")
        content = packed[LENGTH_BYTES : streams_start(packed)].numpy().tobytes()
        header = PackedHeader.model_validate_json(inflated(content, LARGEST_HEADER))
        return header.model_copy(update=dict(cover))


def streams_start(packed: Tensor) -> int:
    """Return where the header ends."""
    return LENGTH_BYTES + int.from_bytes(packed[:LENGTH_BYTES].numpy().tobytes(), "little")


def pack(
    header: Header, tensors: Mapping[str, Tensor], kernels: Container[str], packing: Packing
) -> tuple[PackedHeader, dict[str, Tensor]]:
    """Return the header and the one tensor of a packed file; only those named as kernels are stored in few bits."""
    index, masks = [], []
    groups: defaultdict[str, list[Bytes]] = defaultdict(list)
    for name, tensor in tensors.items():
        entry, mask, numbers = _pack_tensor(name, tensor, packing.bits if name in kernels else 32)
        index.append(entry)
        masks.extend(mask)
        for (kind, _), found in zip(entry.pieces, numbers, strict=True):
            groups[kind].append(found)
    streams = [*masks, *(plane for parts in groups.values() for plane in planes(parts))]
    fields = dict(header) | {"format": PACKED_FORMAT, "tensors": tuple(index), "sizes": tuple(map(len, streams))}
    described = PackedHeader(**fields)
    content = bytearray(b"".join([described.to_bytes(), *streams]))
    return described, {PACKED: torch.frombuffer(content, dtype=torch.uint8)}


def _pack_tensor(name: str, tensor: Tensor, bits: int) -> tuple[PackedTensor, list[bytes], list[Bytes]]:
    """Return the entry of a tensor, its mask where it has one, and the bytes of each of its pieces."""
    stored, *scales = (bits < 32 and quantise(name, tensor, bits)) or (tensor,)
    if _name_of(tensor.dtype) not in TYPES:
        raise ModelError(f"a packed file cannot hold '{name}': {tensor.dtype}")
    entry = PackedTensor(name, _name_of(tensor.dtype), _name_of(stored.dtype), tuple(tensor.shape), None)
    numbers, channels = rows(stored), [rows(scale) for scale in scales]
    if tensor.is_floating_point() and tensor.ndim > 1:
        kept: Kept = numpy.asarray(numbers.any(axis=1))
        kind, code = write_mask(kept)
        if len(code) + numbers[kept].size < numbers.size:
            return entry._replace(mask=PackedMask(kind, int(kept.sum()))), [code], [numbers[kept], *channels]
    return entry, [], [numbers, *channels]


def unpack(header: PackedHeader, packed: Tensor, own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors in a packed file by name; `own` are those of the module that they are for."""
    index = header.tensors
    for entry in index:
        _check_entry(entry, own)
    if len({entry.name for entry in index}) < len(index):
        raise ModelError("the file is damaged: it holds two tensors of one name")
    counts: defaultdict[str, list[int]] = defaultdict(list)
    for kind, count in (piece for entry in index for piece in entry.pieces):
        counts[kind].append(count)
    content = packed[streams_start(packed) :].numpy().tobytes()
    expected = sum(entry.mask is not None for entry in index) + sum(TYPES[kind].itemsize for kind in counts)
    if len(header.sizes) != expected or sum(header.sizes) != len(content):
        raise ModelError("the file is damaged: its streams are not those that its index asks for")
    streams = (content[start:end] for start, end in pairwise(accumulate(header.sizes, initial=0)))
    masks = [
        read_mask(next(streams), kind=entry.mask.kind, count=entry.mask.kept, size=prod(entry.shape))
        if entry.mask
        else None
        for entry in index
    ]
    groups = {
        kind: iter(_split(joined(list(islice(streams, TYPES[kind].itemsize)), sum(found)), found))
        for kind, found in counts.items()
    }
    return {
        entry.name: _unpack_tensor(entry, mask, [next(groups[kind]) for kind, _ in entry.pieces])
        for entry, mask in zip(index, masks, strict=True)
    }


def _check_entry(entry: PackedTensor, own: Mapping[str, Tensor]) -> None:
    """Refuse a tensor that the module does not ask for, before it takes memory."""
    if entry.name not in own:
        raise ModelError(f"the file holds '{entry.name}', which the module does not have")
    expected = tuple(own[entry.name].shape)
    if expected != entry.shape:
        raise ModelError(f"'{entry.name}' is {expected} in the module, {entry.shape} in the file")
    quantised = TYPES[entry.dtype].is_floating_point and TYPES[entry.stored] in CODES.values() and len(expected) > 1
    if entry.stored != entry.dtype and not quantised:
        raise ModelError(f"the file is damaged: '{entry.name}' of {entry.dtype} is stored as {entry.stored}")


def _split(numbers: Bytes, counts: Sequence[int]) -> list[Bytes]:
    """Cut numbers into as many as each tensor has."""
    return [numbers[start:end] for start, end in pairwise(accumulate(counts, initial=0))]


def _unpack_tensor(entry: PackedTensor, mask: Kept | None, pieces: Sequence[Bytes]) -> Tensor:
    """Put the numbers of a tensor where its mask says, and scale them."""
    numbers = pieces[0]
    if mask is not None:
        numbers = numpy.zeros((len(mask), numbers.shape[1]), numpy.uint8)
        numbers[mask] = pieces[0]
    stored = torch.from_numpy(numbers).reshape(-1).view(TYPES[entry.stored])
    if len(pieces) > 1:
        scales = torch.from_numpy(pieces[1]).reshape(-1).view(SCALE)
        stored = dequantise(stored.reshape(entry.shape).flatten(1), scales, TYPES[entry.dtype])
    return stored.reshape(entry.shape)
