"""Gives back the tensors of a packed file; none takes more memory than the module it is for asks."""

from collections.abc import Mapping, Sequence
from itertools import accumulate, islice, pairwise

import numpy
import torch
from torch import Tensor

from topiarist.errors import ModelError
from topiarist.storage.mask_codes import Kept, read_mask
from topiarist.storage.packed_header import TYPES, Entry, PackedHeader, streams_start
from topiarist.storage.quantising import CODES, SCALE, dequantise
from topiarist.storage.streams import Bytes, joined


def unpack(header: PackedHeader, packed: Tensor, own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give the tensors in a packed file by name; `own` are those of the module that they are for."""
    entries = header.tensors
    for entry in entries:
        check_entry(entry, own)
    if len({entry.name for entry in entries}) < len(entries):
        raise ModelError("the file is damaged: it holds two tensors of one name")
    streams = iter(streams_in(header, packed))
    masks = [
        read_mask(next(streams), kind=entry.mask.kind, count=entry.mask.kept, size=entry.size) if entry.mask else None
        for entry in entries
    ]
    groups = {
        kind: iter(split(joined(list(islice(streams, TYPES[kind].itemsize)), sum(counts)), counts))
        for kind, counts in groups_in(entries).items()
    }
    return {
        entry.name: unpack_tensor(entry, mask, [next(groups[kind]) for kind, _ in entry.pieces])
        for entry, mask in zip(entries, masks, strict=True)
    }


def check_entry(entry: Entry, own: Mapping[str, Tensor]) -> None:
    """Refuse a tensor that the module does not ask for, before it takes memory."""
    if entry.name not in own:
        raise ModelError(f"the file holds '{entry.name}', which the module does not have")
    asked = tuple(own[entry.name].shape)
    if asked != entry.shape:
        raise ModelError(f"'{entry.name}' is {asked} in the module, {entry.shape} in the file")
    quantised = TYPES[entry.dtype].is_floating_point and TYPES[entry.stored] in CODES.values() and len(asked) > 1
    if entry.stored != entry.dtype and not quantised:
        raise ModelError(f"the file is damaged: '{entry.name}' of {entry.dtype} is stored as {entry.stored}")


def groups_in(entries: Sequence[Entry]) -> dict[str, list[int]]:
    """Give the counts of the pieces of each type, in the order in which they stand in the file."""
    groups: dict[str, list[int]] = {}
    for kind, count in (piece for entry in entries for piece in entry.pieces):
        groups.setdefault(kind, []).append(count)
    return groups


def streams_in(header: PackedHeader, packed: Tensor) -> list[bytes]:
    """Cut the file's bytes into the streams that its index asks for: masks, then the planes of each type."""
    masks = sum(entry.mask is not None for entry in header.tensors)
    asked = masks + sum(TYPES[kind].itemsize for kind in groups_in(header.tensors))
    content = packed[streams_start(packed) :].numpy().tobytes()
    if len(header.sizes) != asked or sum(header.sizes) != len(content):
        raise ModelError("the file is damaged: its streams are not those that its index asks for")
    return [content[start:end] for start, end in pairwise(accumulate(header.sizes, initial=0))]


def split(numbers: Bytes, counts: Sequence[int]) -> list[Bytes]:
    """Cut numbers into as many as each tensor has."""
    return [numbers[start:end] for start, end in pairwise(accumulate(counts, initial=0))]


def unpack_tensor(entry: Entry, mask: Kept | None, pieces: Sequence[Bytes]) -> Tensor:
    """Put the numbers of a tensor where its mask says, and scale them."""
    numbers = pieces[0]
    if mask is not None:
        numbers = numpy.zeros((entry.size, numbers.shape[1]), numpy.uint8)
        numbers[mask] = pieces[0]
    stored = as_tensor(numbers, TYPES[entry.stored])
    if len(pieces) > 1:
        scales = as_tensor(pieces[1], SCALE)
        stored = dequantise(stored.reshape(entry.shape).flatten(1), scales, TYPES[entry.dtype])
    return stored.reshape(entry.shape)


def as_tensor(numbers: Bytes, dtype: torch.dtype) -> Tensor:
    """Read bytes (n_numbers, n_bytes) as numbers of a type."""
    return torch.from_numpy(numbers).reshape(-1).view(dtype)
