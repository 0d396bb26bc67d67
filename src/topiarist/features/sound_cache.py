"""Described clips on disk, so that each is decoded once: found by the file's content and by how it was described.

A folder for each description holds a few files of many clips each. What is damaged is described again.
"""

import hashlib
import json
import zlib
from pathlib import Path

import numpy
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from topiarist.errors import DataError
from topiarist.features.log_mel import FLOOR, LogMel
from topiarist.files import sha256, write_atomically

FORM = "log-mel 1"  # another where the same settings give other numbers
ENDING = ".safetensors"
BYTES_A_FILE = 2**24  # or more, by one clip at most
DAMAGE = (SafetensorError, OSError, ValueError, KeyError, TypeError)

Described = NDArray[numpy.float32]
Places = dict[str, list[tuple[Path, str]]]  # by content: the files that hold it, each with a checksum


class SoundCache:
    """Finds and keeps what clips of `length` samples at `rate` look like under some settings, (1, bands, frames) each.

    Without a folder it remembers nothing.
    """

    def __init__(self, folder: Path | None, settings: LogMel, *, rate: int, length: int) -> None:
        self.shape = (1, settings.bands, settings.frames(length))
        self.pending: dict[str, Described] = {}
        self.places: Places = {}
        self.folder = None
        if folder is not None:
            form = json.dumps([FORM, FLOOR, settings.bands, settings.window, rate, length])
            self.folder = folder / sha256(form.encode())[:16]
            self.places = find_entries(self.folder)

    def find(self, content: str) -> Described | None:
        """Give what a clip of this content looks like, None where that is unknown or damaged."""
        if content in self.pending:
            return self.pending[content]
        for path, checksum in self.places.get(content, ()):
            try:
                with safe_open(path, framework="numpy") as file:
                    found: Described = file.get_tensor(content)
            except DAMAGE:
                continue
            if found.shape == self.shape and found.dtype == numpy.float32 and checksum_of(found) == checksum:
                return found
        return None

    def keep(self, content: str, described: Described) -> None:
        """Remember what a clip looks like; it is on disk once `BYTES_A_FILE` are together or `flush` is called."""
        if self.folder is not None:
            self.pending[content] = described
            if len(self.pending) * described.nbytes >= BYTES_A_FILE:
                self.flush()

    def flush(self) -> None:
        """Write what is not yet on disk."""
        if self.folder is None or not self.pending:
            return
        checksums = {content: checksum_of(described) for content, described in self.pending.items()}
        written = save(self.pending, metadata=checksums)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"cannot write {self.folder}: {error.strerror or error}") from error
        path = self.folder / f"{sha256(written)[:16]}{ENDING}"
        write_atomically(path, written)
        for content, checksum in checksums.items():
            self.places.setdefault(content, []).append((path, checksum))
        self.pending = {}


def find_entries(folder: Path) -> Places:
    """Give the files and the checksums of every clip that is kept in a folder; damaged files are passed over."""
    found: Places = {}
    for path in sorted(folder.glob(f"*{ENDING}")):
        try:
            with safe_open(path, framework="numpy") as file:
                checksums = file.metadata() or {}
        except DAMAGE:
            continue
        for content, checksum in checksums.items():
            found.setdefault(content, []).append((path, checksum))
    return found


def checksum_of(described: Described) -> str:
    """Give a number that tells a damaged array from a whole one."""
    return f"{zlib.crc32(described.tobytes()):08x}"


def content_of(path: Path) -> str:
    """Give the SHA-256 of a file's bytes, without holding all of them."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
