"""Described clips on disk, so that each is decoded once: found by the file's content and by how it was described.

A folder for each description holds a few files of many clips each. A damaged clip is described again.
"""

import hashlib
import json
from pathlib import Path

import numpy
from numpy.typing import NDArray

from topiarist.data.checked_arrays import names_in, read_array, write_arrays
from topiarist.errors import DataError
from topiarist.features.log_mel import FLOOR, LogMel
from topiarist.files import sha256

BYTES_PER_FILE = 2**24  # or more, by one clip at most: few files, and a broken run loses little
_FORM = "log-mel 1"  # another where the same settings give other numbers


class SoundCache:
    """What clips of `length` samples at `rate` look like under some settings, (1, bands, frames) each.

    Without a folder it remembers nothing.
    """

    def __init__(self, folder: Path | None, settings: LogMel, *, rate: int, length: int) -> None:
        self.shape = (1, settings.bands, settings.frames(length))
        self._pending: dict[str, NDArray[numpy.float32]] = {}
        self._files: dict[str, list[Path]] = {}  # by content
        form = json.dumps([_FORM, FLOOR, settings.bands, settings.window, rate, length])
        self._folder = None if folder is None else folder / sha256(form.encode())[:16]
        for path in () if self._folder is None else sorted(self._folder.glob("*.safetensors")):
            for content in names_in(path):
                self._files.setdefault(content, []).append(path)

    def find(self, content: str) -> NDArray[numpy.float32] | None:
        """Return what a clip of this content looks like, None where that is unknown or damaged."""
        if content in self._pending:
            return self._pending[content]
        for path in self._files.get(content, ()):
            found = read_array(path, content)
            if found is not None and found.shape == self.shape and found.dtype == numpy.float32:
                return found
        return None

    def keep(self, content: str, described: NDArray[numpy.float32]) -> None:
        """Remember what a clip looks like; it is on disk once `BYTES_PER_FILE` are together or `flush` is called."""
        if self._folder is not None:
            self._pending[content] = described
            if len(self._pending) * described.nbytes >= BYTES_PER_FILE:
                self.flush()

    def flush(self) -> None:
        """Write what is not yet on disk."""
        if self._folder is None or not self._pending:
            return
        path = self._folder / f"{sha256(' '.join(sorted(self._pending)).encode())[:16]}.safetensors"
        write_arrays(path, self._pending)
        for content in self._pending:
            self._files.setdefault(content, []).append(path)
        self._pending = {}


def content_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, without holding all of them."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
