"""Files read in a bounded manner, decompressed on the way where they are gzip."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from topiarist.data.limits import check_size
from topiarist.errors import DataError

CHUNK_BYTES = 1024**2
GZIP_MAGIC = b"\x1f\x8b"


class Readable(Protocol):
    """Whatever gives bytes on request."""

    def read(self, size: int, /) -> bytes:
        """Give at most `size` bytes, none at the end."""
        ...


@contextmanager
def expanded(path: Path) -> Iterator[Readable]:
    """Open `path`, through gzip where it is compressed, and tell any damage of the gzip as a DataError."""
    with path.open("rb") as raw:
        compressed = raw.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        raw.seek(0)
        if not compressed:
            yield raw
            return
        try:
            with gzip.GzipFile(fileobj=raw) as stream:
                yield stream
        except EOFError as error:
            raise DataError(f"{path} is truncated: the gzip ends too early; fetch it again") from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise DataError(f"{path} is a damaged gzip ({error}); fetch it again") from error


def read_up_to(stream: Readable, size: int) -> bytearray:
    """Read `size` bytes, or fewer where the stream ends, taking memory only for what is there."""
    content = bytearray()
    while len(content) < size and (chunk := stream.read(min(CHUNK_BYTES, size - len(content)))):
        content += chunk
    return content


def read_head(path: Path, size: int) -> bytes:
    """Give the first `size` bytes of the expanded file, or fewer where it is shorter."""
    with expanded(path) as stream:
        return bytes(read_up_to(stream, size))


def read_whole(path: Path) -> bytes:
    """Read the expanded file, refusing one that grows beyond the limit."""
    check_size(str(path), path.stat().st_size)
    content = bytearray()
    with expanded(path) as stream:
        while chunk := stream.read(CHUNK_BYTES):
            content += chunk
            check_size(str(path), len(content))
    return bytes(content)


@dataclass
class Bounded:
    """A stream that refuses to give more than the limit in all."""

    stream: Readable
    what: str
    given: int = 0

    def read(self, size: int, /) -> bytes:
        """Give at most `size` bytes of the stream."""
        chunk = self.stream.read(size)
        self.given += len(chunk)
        check_size(self.what, self.given)
        return chunk
