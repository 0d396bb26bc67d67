"""Packs the tensors of a network into one row of bytes, after Han, Mao and Dally, Deep compression (2016).

A kernel is a mask and the weights that are not zero, or all of them where that is shorter. Numbers of one type stand
together, split into planes of bytes; each plane is deflated where that is shorter. Departures: no shared weights and
no retraining; the weights are rounded once, channel by channel.
"""

from collections import defaultdict
from collections.abc import Container, Mapping
from typing import Literal

import numpy
import torch
from torch import Tensor

from topiarist.settings import Settings
from topiarist.storage.header import Header
from topiarist.storage.mask_codes import Kept, write_mask
from topiarist.storage.packed_header import FORMAT, PACKED, Entry, Mask, PackedHeader, type_name
from topiarist.storage.quantising import quantise
from topiarist.storage.streams import Bytes, planes, rows


class Packing(Settings):
    """How a network is packed; `bits` are those of a weight in a kernel: a parameter of two dimensions or more.

    With 32, all is kept to the bit. With 16 or 8, weights are rounded to float16 or to whole numbers, with a scale for
    each output channel. Zeros stay zero; a weight that is nearer to zero than to its first step becomes zero too: below
    1/254 of the channel's largest at 8 bits. All else keeps its bits: biases, norms, buffers, kernels of fewer bits.
    """

    bits: Literal[32, 16, 8] = 32


def pack(
    header: Header, tensors: Mapping[str, Tensor], kernels: Container[str], packing: Packing
) -> tuple[PackedHeader, dict[str, Tensor]]:
    """Give the header and the one tensor of a packed file; only those named as kernels are stored in few bits."""
    entries, masks = [], []
    groups: defaultdict[str, list[Bytes]] = defaultdict(list)
    for name, tensor in tensors.items():
        entry, mask, numbers = pack_tensor(name, tensor, packing.bits if name in kernels else 32)
        entries.append(entry)
        masks.extend(mask)
        for (kind, _), found in zip(entry.pieces, numbers, strict=True):
            groups[kind].append(found)
    streams = [*masks, *(plane for parts in groups.values() for plane in planes(parts))]
    fields = dict(header) | {"format": FORMAT, "tensors": tuple(entries), "sizes": tuple(map(len, streams))}
    described = PackedHeader(**fields)
    content = bytearray(b"".join([described.to_bytes(), *streams]))
    return described, {PACKED: torch.frombuffer(content, dtype=torch.uint8)}


def pack_tensor(name: str, tensor: Tensor, bits: int) -> tuple[Entry, list[bytes], list[Bytes]]:
    """Give the entry of a tensor, its mask where it has one, and the bytes of each of its pieces."""
    wide = tensor.is_floating_point() and tensor.ndim > 1
    stored, *scales = (bits < 32 and quantise(name, tensor, bits)) or (tensor,)
    entry = Entry(name, type_name(name, tensor.dtype), type_name(name, stored.dtype), tuple(tensor.shape), None)
    numbers, channels = rows(stored), [rows(scale) for scale in scales]
    if wide:
        kept: Kept = numpy.asarray(numbers.any(axis=1))
        kind, code = write_mask(kept)
        if len(code) + numbers[kept].size < numbers.size:
            return entry._replace(mask=Mask(kind, int(kept.sum()))), [code], [numbers[kept], *channels]
    return entry, [], [numbers, *channels]
