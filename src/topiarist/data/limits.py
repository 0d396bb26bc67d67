"""How much memory a file may ask for, and files read within that limit, through gzip where they are compressed."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from topiarist.errors import DataError

LARGEST_BYTES = 4 * 1024**3  # over ten times SVHN, the largest of the catalogue; a file that lies stops here
_CHUNK_BYTES = 1024**2
_GZIP_MAGIC = b"\x1f\x8b"


def check_size(what: str, size: int) -> None:
    """Raise where something would take more than `LARGEST_BYTES`, before any of it is expanded."""
    if size > LARGEST_BYTES:
        raise DataError(
            f"{what} takes {size:,} bytes or more when expanded, at most {LARGEST_BYTES:,} are allowed:"
            " use a smaller part of the data"
        )


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, none at the end."""
        ...


@dataclass
class BoundedStream:
    """A stream that raises once it has returned more than the limit in all."""

    stream: Readable
    what: str
    returned: int = 0

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes of the stream."""
        chunk = self.stream.read(size)
        self.returned += len(chunk)
        check_size(self.what, self.returned)
        return chunk


def is_compressed(path: Path) -> bool:
    """Return whether a file begins as a gzip does."""
    with path.open("rb") as raw:
        return raw.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC


@contextmanager
def expanded(path: Path) -> Iterator[Readable]:
    """Open `path`, through gzip where it is compressed; damage of the gzip is a DataError."""
    compressed = is_compressed(path)
    with path.open("rb") as raw:
        if not compressed:
            yield raw
            return
        try:
            with gzip.GzipFile(fileobj=raw) as stream:
                yield stream
        except EOFError as error:
            raise DataError(f"{path} is truncated: the gzip ends too early; download it again") from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise DataError(f"{path} is a damaged gzip ({error}); download it again") from error


def read_up_to(stream: Readable, size: int) -> bytearray:
    """Return `size` bytes, or fewer where the stream ends; memory is taken only for what is there."""
    content = bytearray()
    while len(content) < size and (chunk := stream.read(min(_CHUNK_BYTES, size - len(content)))):
        content += chunk
    return content


def read_whole(path: Path) -> bytearray:
    """Return the expanded content of a file, and raise where it grows beyond the limit."""
    check_size(str(path), path.stat().st_size)
    with expanded(path) as stream:
        return read_up_to(BoundedStream(stream, str(path)), LARGEST_BYTES + 1)
