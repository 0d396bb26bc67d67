"""Files that are either whole or not there, places that are checked before the work, and one JSON text for one meaning.

What is written goes to a regular file and to nothing else: a link is followed, a device, a pipe or a socket is refused,
and so is a file without permission to write, also for root, whom the system would let through.
"""

import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from topiarist.errors import TopiaristError

BYTES_PER_KB = 1024  # in all sizes, as files are listed
JsonObject = dict[str, Any]  # an object of a JSON text; the class that reads it checks it

LONGEST_NAME = 200  # bytes of a name that is made longer for a temporary file: file systems allow 255
WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
NEVER_READ_AS_DATA = (".safetensors", ".onnx", ".pt2")  # a file of these in a folder of data is none of the data
KINDS = (
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISDIR, "a folder"),
)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path that takes the place of `path` when the block ends well and is removed otherwise.

    Where `path` is a link, the file that it points to is replaced, and keeps its permissions.
    """
    place = _writable_place(path)
    name = f".{secrets.token_hex(8)}.part"  # known before it is there: Ctrl-C any time
    temporary = place.with_name(f".{place.name}{name}" if len(os.fsencode(place.name)) < LONGEST_NAME else name)
    try:
        temporary.touch(exist_ok=False)
        yield temporary
        if place.exists():
            shutil.copymode(place, temporary)
        temporary.replace(place)
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


@contextmanager
def delivering(folder: Path) -> Iterator[Path]:
    """Yield a folder beside `folder` that becomes it, or whose files go into it, when the block ends well.

    A new folder appears whole, and in the place of one that holds nothing but files of the same names. Into one that
    holds others, each file goes whole, in the order in which they were written.
    """
    check_folder(folder)
    place = _followed(folder)
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary = place.with_name(f".{secrets.token_hex(8)}.part")
    try:
        temporary.mkdir()
        yield temporary
        if not place.exists():
            temporary.replace(place)
            return
        if _holds_no_other(place, temporary):
            old = place.with_name(f".{secrets.token_hex(8)}.part")
            place.replace(old)
            temporary.replace(place)
            shutil.rmtree(old, ignore_errors=True)
            return
        for path in sorted(temporary.iterdir(), key=lambda path: path.stat().st_mtime_ns):
            path.replace(_writable_place(place / path.name))
    except OSError as error:
        raise cannot_write(folder, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _holds_no_other(place: Path, new: Path) -> bool:
    """Return whether a folder has no file that a new one does not have; refuse one that may not be written."""
    names = {path.name for path in new.iterdir()}
    return all(path.name in names and _writable_place(path) for path in place.iterdir())


def check_place(path: Path, *, inputs: Iterable[Path | str] = ()) -> None:
    """Refuse a place where a file could not or should not be written, before the work of making it.

    `inputs` are the files and folders that the work reads: none of them is written over.
    """
    place = _writable_place(path)
    try:
        if not place.parent.is_dir():
            raise TopiaristError(f"cannot write {path}: there is no folder {place.parent}")
        for given in inputs:
            _check_not_read(path, place, Path(given))
        _try_to_write(path, place.parent)
    except (OSError, ValueError) as error:
        raise cannot_write(path, error) from error


def check_folder(folder: Path, files: Iterable[str] = (), *, inputs: Iterable[Path | str] = ()) -> None:
    """Refuse a folder that could not be made, or whose `files` could not or should not be written, before the work."""
    try:
        place = _followed(folder)
        above = next(one for one in (place, *place.parents) if one.exists())
        if not above.is_dir():
            what = kind_of(above) or "a file"
            raise TopiaristError(f"cannot write {folder}: a folder is needed; {above} is {what}")
        _try_to_write(folder, above)
    except (OSError, ValueError) as error:
        raise cannot_write(folder, error) from error
    if place.is_dir():
        for name in files:
            check_place(folder / name, inputs=inputs)


def check_readable(path: Path, *, most: int | None = None) -> None:
    """Refuse a device, a pipe or a socket, of which reading may never end, and what is longer than `most` bytes.

    What is not there, or cannot be opened, is left to whoever opens it.
    """
    try:
        found = path.stat()
    except OSError:
        return
    except ValueError as error:  # a NUL in the name
        raise TopiaristError(f"cannot read {path}: {error}") from error
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise TopiaristError(f"cannot read {path}: it is {kind_of(path)}; name a file")
    if most is not None and found.st_size > most:
        raise TopiaristError(f"cannot read {path}: it has {found.st_size:,} bytes, at most {most:,} are read")


def kind_of(path: Path) -> str | None:
    """Return what is at a place where it is no regular file, such as "a device"; None for a file and for nothing."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return None
    return next((name for test, name in KINDS if test(mode)), None)


def _writable_place(path: Path) -> Path:
    """Return the file that would be written, links followed; refuse what is no regular file, or not to be written."""
    try:
        place = _followed(path)
        kind = kind_of(place)
        if kind is not None:
            raise TopiaristError(f"cannot write {path}: it is {kind}; name a file")
        if place.exists() and not (place.stat().st_mode & WRITABLE and os.access(place, os.W_OK)):
            raise TopiaristError(f"cannot write {path}: the file is read-only")
    except (OSError, ValueError) as error:
        raise cannot_write(path, error) from error
    return place


def _followed(path: Path) -> Path:
    """Return where links lead; a link that leads to itself is refused."""
    place = Path(os.path.realpath(path))
    if place.is_symlink():
        raise TopiaristError(f"cannot write {path}: its links lead in a circle")
    return place


def _check_not_read(path: Path, place: Path, given: Path) -> None:
    """Refuse to write over what the work reads, or over a file of a folder that it reads."""
    if not place.exists() or not given.exists():
        return
    if given.samefile(place):
        raise TopiaristError(f"cannot write {path}: it is read too, and would be lost; name another file")
    inside = given.is_dir() and given.resolve() in place.parents
    if inside and place.suffix not in NEVER_READ_AS_DATA:
        raise TopiaristError(f"cannot write {path}: it is in {given}, which is read too; name another file")


def _try_to_write(path: Path, folder: Path) -> None:
    """Make and remove a file of one byte in a folder: a full or read-only disk shows before the work."""
    trial = folder / f".{secrets.token_hex(8)}.part"
    allowed = folder.stat().st_mode & WRITABLE
    if allowed:
        try:
            trial.write_bytes(b"\0")
        finally:
            with suppress(OSError):
                trial.unlink()
    if not allowed or not os.access(folder, os.W_OK):
        raise TopiaristError(f"cannot write {path}: the folder {folder} cannot be written to")


def cannot_write(path: Path, error: OSError | ValueError) -> TopiaristError:
    """Return the system's refusal as an error of one line."""
    return TopiaristError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}")


def sha256(content: bytes) -> str:
    """Return the SHA-256 of `content` in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def parse_json(text: str) -> Any:
    """Return what a JSON text says; ValueError where it is none, or nested too deep to be anything of ours."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def canonical_json(record: object, *, only_ascii: bool = False) -> str:
    """Return the one text that stands for a record: keys sorted, no spaces."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=only_ascii)
