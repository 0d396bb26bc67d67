"""Files that are either whole or not there, and one JSON text for one meaning."""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from topiarist.errors import TopiaristError

BYTES_PER_KB = 1024  # in all sizes, as files are listed
JsonObject = dict[str, Any]  # an object of a JSON text; the class that reads it checks it


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path that takes the place of `path` when the block ends well and is removed otherwise."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")  # known before it is there: Ctrl-C any time
    try:
        temporary.touch(exist_ok=False)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` to `path` so that a reader sees the old file or the new one, never a half."""
    with replacing(path) as temporary, temporary.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def check_place(path: Path) -> None:
    """Refuse a place where a file could not be written, before the work of making it."""
    if path.is_dir():
        raise TopiaristError(f"cannot write {path}: it is a folder; name a file")
    if not path.parent.is_dir():
        raise TopiaristError(f"cannot write {path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise TopiaristError(f"cannot write {path}: the folder {path.parent} cannot be written to")


def cannot_write(path: Path, error: OSError) -> TopiaristError:
    """Return the system's refusal as an error of one line."""
    return TopiaristError(f"cannot write {path}: {error.strerror or error}")


def sha256(content: bytes) -> str:
    """Return the SHA-256 of `content` in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def canonical_json(record: object, *, only_ascii: bool = False) -> str:
    """Return the one text that stands for a record: keys sorted, no spaces."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=only_ascii)
