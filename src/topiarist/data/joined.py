"""Arrays that follow each other along their first axis, without a copy: several files as one array."""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.data.file_arrays import FileArray

LARGE_BYTES = 2**27  # 128 MB of samples in the file: below, a copy costs less memory than torch itself


class JoinedArrays:
    """Arrays of one type and one shape of a sample, seen as one (n_samples, …); rows are copied when asked for.

    Some may be in files, and are never in memory as a whole.

    Examples
    --------
    >>> both = JoinedArrays([numpy.arange(3), numpy.arange(10, 12)])
    >>> both.shape, both[numpy.array([4, 0, 2])], both[2:4]
    ((5,), array([11,  0,  2]), array([ 2, 10]))
    """

    def __init__(self, arrays: Sequence[NDArray[Any] | FileArray]) -> None:
        self.arrays = tuple(arrays)
        self.starts = list(accumulate(map(len, arrays), initial=0))
        self.shape: tuple[int, ...] = (self.starts[-1], *arrays[0].shape[1:])
        self.dtype: numpy.dtype[Any] = arrays[0].dtype

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """The number of axes, that of samples included."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """How many bytes all samples take."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def in_files(self) -> bool:
        """Whether rows are read from a file, so that it costs less to ask for many at once, in any order."""
        return any(isinstance(array, FileArray) for array in self.arrays)

    def __getitem__(self, rows: "slice | NDArray[Any]") -> NDArray[Any]:
        """Return a copy of some rows: a slice of them, their numbers, or a mark for each."""
        if isinstance(rows, slice):
            rows = numpy.arange(*rows.indices(len(self)))
        elif rows.dtype == bool:
            rows = numpy.flatnonzero(rows)
        if len(rows) and (rows.min() < -len(self) or rows.max() >= len(self)):
            raise IndexError(f"rows are numbered 0 to {len(self) - 1}; found {rows.min()} to {rows.max()}")
        rows = numpy.where(rows < 0, rows + len(self), rows)
        for array, start, end in zip(self.arrays, self.starts, self.starts[1:], strict=False):
            if len(rows) and start <= rows.min() and rows.max() < end:  # those of one part: not copied twice
                return array[rows - start]
        found: NDArray[Any] = numpy.empty((len(rows), *self.shape[1:]), dtype=self.dtype)
        for array, start, end in zip(self.arrays, self.starts, self.starts[1:], strict=False):
            mine = (rows >= start) & (rows < end)
            found[mine] = array[rows[mine] - start]
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return all of it as an ordinary array; numpy calls this."""
        if copy is False:
            raise ValueError("joined arrays become one array by a copy")
        return numpy.concatenate([numpy.asarray(array) for array in self.arrays], dtype=dtype)


def join_arrays(arrays: "Sequence[NDArray[Any] | FileArray]") -> "NDArray[Any] | JoinedArrays":
    """Return arrays as one: a single one as it is, small ones copied, large ones of one type left where they are."""
    if len(arrays) == 1 and not isinstance(arrays[0], FileArray):
        return arrays[0]
    alike = len({array.dtype for array in arrays}) == 1
    if alike and sum(array.nbytes for array in arrays) > LARGE_BYTES:
        return JoinedArrays(arrays)
    return numpy.concatenate([numpy.asarray(array) for array in arrays])
