"""Arrays that stay in their file, of which rows are read when they are asked for.

A map of a file counts as memory of the process, page by page, as soon as rows here and there were looked at: all of it
after one epoch. What is read leaves nothing behind but the rows.
"""

import math
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.errors import DataError

FILED_BYTES = 2**23  # 8 MB: smaller arrays are mapped, whose pages are not worth a call for each row
WINDOW_BYTES = 2**20  # that are read at once where rows lie close to each other
CALL_BYTES = 2**14  # that are read in about the time of one more call
Numbers = NDArray[Any]


def can_be_read_in_place() -> bool:
    """Return whether this system reads some bytes of a file without moving the place of another reader."""
    return hasattr(os, "preadv")


class FileArray:
    """Values of a file from a byte on, seen as an array (n_samples, …), of which rows are copied when asked for.

    `view` turns rows as they lie in the file into rows as they are seen. Sent to another process, it is its content.
    """

    def __init__(
        self,
        path: Path,
        start: int,
        shape: tuple[int, ...],
        dtype: Any = numpy.uint8,
        view: Callable[[Numbers], Numbers] = lambda rows: rows,
    ) -> None:
        self.path, self.start, self.stored, self.view = path, start, shape, view
        self.dtype: numpy.dtype[Any] = numpy.dtype(dtype)
        self.shape: tuple[int, ...] = (shape[0], *view(numpy.empty((0, *shape[1:]), dtype)).shape[1:])
        self.row_bytes = math.prod(shape[1:]) * self.dtype.itemsize
        self.file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self.file)

    def seen(self, view: Callable[[Numbers], Numbers]) -> "FileArray":
        """Return the same values, with rows seen another way, such as with one more axis."""
        return FileArray(self.path, self.start, self.stored, self.dtype, view)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """The number of axes, that of samples included."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many values there are."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """How many bytes all samples take."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __getitem__(self, rows: "slice | Numbers") -> Numbers:
        """Return a copy of some rows: a slice of them, or those of some numbers, 0 to n_samples − 1."""
        wanted = numpy.arange(*rows.indices(len(self))) if isinstance(rows, slice) else numpy.asarray(rows)
        found = numpy.empty((len(wanted), *self.stored[1:]), self.dtype)
        if not found.nbytes:
            return self.view(found)
        flat = found.reshape(len(wanted), -1)
        if (wanted[1:] >= wanted[:-1]).all():
            self._read_ascending(wanted, flat)
        else:
            order = numpy.argsort(wanted, kind="stable")
            self._read_ascending(wanted[order], flat, order)
        return self.view(found)

    def _read_ascending(self, wanted: Numbers, found: Numbers, places: Numbers | None = None) -> None:
        """Read rows whose numbers ascend; row i goes to place i, or `places[i]`."""
        together = max(1, WINDOW_BYTES // self.row_bytes)
        buffer = numpy.empty((together, found.shape[1]), self.dtype)
        first = 0
        while first < len(wanted):
            low = int(wanted[first])
            last = int(numpy.searchsorted(wanted, low + together))  # of those within a window
            span = int(wanted[last - 1]) - low + 1
            if span * self.row_bytes > CALL_BYTES * (last - first):  # few and far between
                last = first + 1
                span = 1
            target = slice(first, last) if places is None else places[first:last]
            if places is None and span == last - first and int(wanted[last - 1]) == low + span - 1:
                self._read(low, found[target])
            else:
                self._read(low, buffer[:span])
                found[target] = buffer[wanted[first:last] - low]
            first = last

    def _read(self, row: int, into: Numbers) -> None:
        """Fill an array with the rows from one on."""
        left, at = memoryview(into.data).cast("B"), self.start + row * self.row_bytes
        while left:
            count = os.preadv(self.file, [left], at)
            if not count:
                raise DataError(f"{self.path} became shorter while it was read")
            left, at = left[count:], at + count

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Numbers:
        """Return all of it as an ordinary array; numpy calls this."""
        if copy is False:
            raise ValueError("an array in a file becomes one in memory by a copy")
        return numpy.asarray(self[:], dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return numpy.asarray, (self[:],)
