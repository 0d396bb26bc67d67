"""What a packed file says of its network: as other model files do, and how its tensors are packed, all of it deflated.

The file holds one tensor of bytes: the length of the header (4 bytes, the last one highest), the header, and the
streams. Only format, library and digest stand in the metadata, so that versions that cannot read it say so.
"""

from math import prod
from typing import Annotated, Literal, NamedTuple

import torch
from pydantic import AfterValidator, Field
from torch import Tensor

from topiarist.errors import ModelError
from topiarist.storage.header import Header, Version, canonical, check_format, readable
from topiarist.storage.quantising import CODES, SCALE
from topiarist.storage.streams import deflated, inflated

PACKED = ".packed"  # no tensor of a network can have this name
FORMAT = 2
LENGTH_BYTES = 4
LARGEST_HEADER = 2**24

TYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint64, torch.uint32, torch.uint16, torch.uint8),
        *(torch.bool, torch.complex64),
    )
}


def check_type(name: str) -> str:
    """Refuse a type that no packed file holds."""
    if name not in TYPES:
        raise ValueError(f"no type is called '{name}'")
    return name


Count = Annotated[int, Field(ge=0, lt=2**63)]
TypeName = Annotated[str, AfterValidator(check_type)]


class Mask(NamedTuple):
    """The kind of a mask's code, and how many weights it keeps."""

    kind: int
    kept: Count


class Entry(NamedTuple):
    """How a tensor is packed; it has a scale for each channel where it is stored in another type than its own."""

    name: str
    dtype: TypeName
    stored: TypeName
    shape: tuple[Count, ...]
    mask: Mask | None

    @property
    def size(self) -> int:
        """Count the numbers of the tensor."""
        return prod(self.shape)

    @property
    def pieces(self) -> tuple[tuple[str, int], ...]:
        """Give the type and the count of the numbers that are stored, and of the scales where it has any."""
        numbers = (self.stored, self.size if self.mask is None else self.mask.kept)
        return (numbers,) if self.stored == self.dtype else (numbers, (type_name(self.name, SCALE), self.shape[0]))


class Cover(Version, extra="forbid"):
    """The part of the header that is not deflated."""

    digest: str


class PackedHeader(Header):
    """A header with an index of the packed tensors, and the bytes of each stream."""

    format: int = FORMAT
    tensors: tuple[Entry, ...]
    sizes: tuple[Count, ...]

    @property
    def bits(self) -> Literal[32, 16, 8]:
        """Give the bits that a weight was packed with."""
        stored = {entry.stored for entry in self.tensors if entry.stored != entry.dtype}
        return 8 if type_name("", CODES[8]) in stored else 16 if stored else 32

    def to_text(self) -> str:
        """Give the text that stands in the metadata."""
        return canonical(self.model_dump(include=set(Cover.model_fields)))

    def to_bytes(self) -> bytes:
        """Give all else, deflated, with its length before it."""
        text = canonical(self.model_dump(mode="json", exclude=set(Cover.model_fields))).encode()
        if len(text) > LARGEST_HEADER:
            raise ModelError(f"a packed file holds a header of at most {LARGEST_HEADER:,} bytes; found {len(text):,}")
        content = deflated(text)
        return len(content).to_bytes(LENGTH_BYTES, "little") + content


def parse_packed_header(text: str, packed: Tensor) -> PackedHeader:
    """Read what `to_text` and `to_bytes` gave; both may come from anyone."""
    with readable():
        check_format(Version.model_validate_json(text), FORMAT)
        cover = Cover.model_validate_json(text)
        if packed.dtype != torch.uint8 or packed.ndim != 1:
            raise ModelError("the file is damaged: its packed tensor is not a row of bytes")
        content = packed[LENGTH_BYTES : streams_start(packed)].numpy().tobytes()
        header = PackedHeader.model_validate_json(inflated(content, LARGEST_HEADER))
        return header.model_copy(update=dict(cover))


def streams_start(packed: Tensor) -> int:
    """Give where the header ends."""
    return LENGTH_BYTES + int.from_bytes(packed[:LENGTH_BYTES].numpy().tobytes(), "little")


def type_name(name: str, dtype: torch.dtype) -> str:
    """Give the name of a tensor's type, without the library's."""
    found = str(dtype).removeprefix("torch.")
    if found not in TYPES:
        raise ModelError(f"a packed file cannot hold '{name}': {dtype}")
    return found
