"""The bytes of a text file: held where they are few or compressed, else read from the file as often as they are needed.

A table is looked at three times: for its encoding, for the form of its rows, and for its cells. A file that is held for
it takes its size beside the table that it becomes.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from topiarist.data.limits import check_size, is_compressed, read_whole

HELD_BYTES = 2**23  # up to which a file is held: what torch alone takes is twenty times as much
BLOCK_BYTES = 2**20  # that are looked at at once


@dataclass(frozen=True)
class TextContent:
    """What a file holds: `held`, or what is read from `path` each time."""

    path: Path
    held: bytes | None = None

    @classmethod
    def of(cls, path: Path) -> "TextContent":
        """Return what a file holds, expanded; raise DataError where that is damaged or too much."""
        size = path.stat().st_size
        check_size(str(path), size)
        return cls(path, bytes(read_whole(path)) if size <= HELD_BYTES or is_compressed(path) else None)

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return self.path.stat().st_size if self.held is None else len(self.held)

    def open(self) -> BinaryIO:
        """Return the bytes as an open file, at its beginning."""
        return self.path.open("rb") if self.held is None else io.BytesIO(self.held)

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
            return TextContent(self.path, "".join(islice(lines, count, None)).encode())

    def without_first_line(self, encoding: str) -> "TextContent":
        """Return the content after its first line, held in memory as UTF-8."""
        with self.open() as stream:
            return TextContent(self.path, stream.read().decode(encoding).partition("\n")[2].encode())
