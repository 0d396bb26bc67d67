"""The bytes of a text file: held where they are few, else read, or expanded, as often as they are needed.

A table is looked at three times: for its encoding, for the form of its rows, and for its cells. A file that is held for
it takes its size beside the table that it becomes.
"""

import gzip
import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from topiarist.data.limits import BoundedStream, check_size, expanded, is_compressed, read_up_to

HELD_BYTES = 2**23  # up to which a file is held: what torch alone takes is twenty times as much
BLOCK_BYTES = 2**20  # that are looked at at once


@dataclass(frozen=True)
class TextContent:
    """What a file holds: `held`, or what is read from `path` each time; `size` bytes once it is expanded."""

    path: Path
    size: int
    held: bytes | None = None
    compressed: bool = False

    @classmethod
    def of(cls, path: Path) -> "TextContent":
        """Return what a file holds, expanded; raise DataError where that is damaged or too much."""
        size = path.stat().st_size
        check_size(str(path), size)
        compressed = is_compressed(path)
        if size > HELD_BYTES and not compressed:
            return cls(path, size)
        with expanded(path) as stream:
            bounded = BoundedStream(stream, str(path))
            held = bytes(read_up_to(bounded, HELD_BYTES))
            while bounded.read(BLOCK_BYTES):  # to its end, where damage shows
                pass
        few = bounded.returned == len(held)
        return cls(path, bounded.returned, held if few else None, compressed)

    @classmethod
    def of_text(cls, path: Path, text: str) -> "TextContent":
        """Return what is left of a file as UTF-8."""
        held = text.encode()
        return cls(path, len(held), held)

    def open(self) -> BinaryIO:
        """Return the bytes as an open file, at its beginning."""
        if self.held is not None:
            return io.BytesIO(self.held)
        return cast("BinaryIO", gzip.open(self.path)) if self.compressed else self.path.open("rb")

    def lines(self, encoding: str) -> io.TextIOWrapper:
        """Return the text as an open file, its line ends as they are."""
        return io.TextIOWrapper(self.open(), encoding=encoding, newline="")

    def blocks(self) -> Iterator[bytes]:
        """Yield the bytes some at a time, the first ones even where there are none."""
        with self.open() as stream:
            block = stream.read(BLOCK_BYTES)
            yield block
            while block := stream.read(BLOCK_BYTES):
                yield block

    def without_lines(self, encoding: str, count: int) -> "TextContent":
        """Return the content after its first lines, held in memory as UTF-8."""
        with self.lines(encoding) as lines:
            return self.of_text(self.path, "".join(islice(lines, count, None)))

    def without_first_line(self, encoding: str) -> "TextContent":
        """Return the content after its first line, held in memory as UTF-8."""
        with self.open() as stream:
            return self.of_text(self.path, stream.read().decode(encoding).partition("\n")[2])
