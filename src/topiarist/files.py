"""Files that are either whole or not there."""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from topiarist.errors import TopiaristError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path that takes the place of `path` when the block ends well and is removed otherwise."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise cannot_write(path, error) from error
    temporary = Path(name)
    try:
        os.fchmod(handle, 0o666 & ~umask())
        os.close(handle)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` to `path` so that a reader sees the old file or the new one, never a half."""
    with replacing(path) as temporary, temporary.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def umask() -> int:
    """Give the permissions that new files of this process are denied; the system tells only by a change."""
    found = os.umask(0)
    os.umask(found)
    return found


def cannot_write(path: Path, error: OSError) -> TopiaristError:
    """Turn the system's refusal into one line."""
    return TopiaristError(f"cannot write {path}: {error.strerror or error}")


def sha256(content: bytes) -> str:
    """Give the SHA-256 of `content` in hexadecimal."""
    return hashlib.sha256(content).hexdigest()
