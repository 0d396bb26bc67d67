"""Samples as a network reads them: in memory where they are few, prepared batch by batch where they are many.

Pixels take one byte in a file and four in memory. `LazySamples` keep what the file holds, often a map of it, of which
the operating system holds in memory what it has room for, and prepare the rows that are asked for. What is done to a
row does not depend on the others: the numbers are those that preparing all at once gives, to the last bit.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor

from topiarist.data.joined import JoinedArrays
from topiarist.data.preprocessing import Preprocessing, chunks
from topiarist.data.source import RawFeatures, Rows, is_table
from topiarist.files import canonical_json

# Of samples prepared in float32, all parts together: 256 MB are about what torch takes, and hold Fashion-MNIST whole.
MOST_BYTES = 2**28
FEW_BYTES = 2**24  # of some of many samples, 16 MB: several such parts of one set are needed at once, as in folds


@dataclass(frozen=True)
class LazySamples:
    """Some rows of raw samples, of which those that are asked for are prepared: (n_samples, *input_shape) of float32.

    It stands where a tensor of samples stands: it has a length, a shape and a type, and slices and rows of it are
    tensors. `then` is done to what preprocessing made, row by row.
    """

    features: NDArray[Any] | JoinedArrays
    rows: Rows
    preprocessing: Preprocessing
    then: Callable[[Tensor], Tensor] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def shape(self) -> torch.Size:
        """That of all samples together."""
        return torch.Size((len(self.rows), *self.preprocessing.input_shape))

    @property
    def dtype(self) -> torch.dtype:
        """The type of prepared samples."""
        return torch.float32

    def __getitem__(self, rows: "slice | Tensor") -> Tensor:
        """Return some samples, prepared: a slice of them, or those of some row numbers (n,)."""
        chosen = self.rows[rows if isinstance(rows, slice) else rows.numpy()]
        made = self.preprocessing.of_rows(self.features, chosen)
        return made if self.then is None else self.then(made)

    def take(self, rows: Tensor) -> "LazySamples":
        """Return some of the samples, which are not prepared yet."""
        return replace(self, rows=self.rows[rows.numpy()])

    @property
    def in_file(self) -> bool:
        """Whether rows are read from a file each time."""
        return isinstance(self.features, JoinedArrays) and self.features.in_files

    @property
    def row_bytes(self) -> int:
        """How many bytes a raw sample takes."""
        return math.ceil(self.features.nbytes / max(len(self.features), 1))

    def held(self, rows: Tensor) -> "LazySamples":
        """Return some of the samples, not prepared yet, whose raw rows are in memory: in the order of the file."""
        chosen = self.rows[rows.numpy()]
        order = numpy.argsort(chosen, kind="stable")
        places = numpy.empty(len(order), numpy.intp)
        places[order] = numpy.arange(len(order))
        return replace(self, features=self.features[chosen[order]], rows=places)

    def contents(self) -> Iterator[bytes]:
        """Yield bytes that differ where samples differ: how they are prepared, and what they are made of."""
        yield canonical_json([self.preprocessing.to_json(), list(self.shape)]).encode()
        for some in chunks(self.features, self.rows):
            yield numpy.ascontiguousarray(self.features[self.rows[some]]).tobytes()


@dataclass(frozen=True)
class JoinedSamples:
    """Samples of several parts one after the other, none of them copied."""

    pieces: "Sequence[Samples]"

    def __len__(self) -> int:
        return sum(map(len, self.pieces))

    @property
    def shape(self) -> torch.Size:
        """That of all samples together."""
        return torch.Size((len(self), *self.pieces[0].shape[1:]))

    def __getitem__(self, rows: Tensor) -> Tensor:
        """Return the samples of some row numbers (n,), counted through all pieces."""
        found = torch.empty((len(rows), *self.shape[1:]), dtype=self.pieces[0].dtype)
        starts = accumulate(map(len, self.pieces), initial=0)
        for piece, start in zip(self.pieces, starts, strict=False):
            mine = (rows >= start) & (rows < start + len(piece))
            if mine.any():
                found[mine] = piece[rows[mine] - start]
        return found


Samples = Tensor | LazySamples


def read_once(pieces: Sequence[Samples]) -> list[Samples]:
    """Return samples of which the raw rows that lie in files are in memory, those of several pieces only once."""
    filed = [piece for piece in pieces if isinstance(piece, LazySamples) and piece.in_file]
    read: dict[int, tuple[NDArray[Any], Rows]] = {}
    for features in {id(piece.features): piece.features for piece in filed}.values():
        rows = numpy.unique(numpy.concatenate([piece.rows for piece in filed if piece.features is features]))
        read[id(features)] = features[rows], rows
    return [
        replace(piece, features=found[0], rows=numpy.searchsorted(found[1], piece.rows))
        if isinstance(piece, LazySamples) and (found := read.get(id(piece.features)))
        else piece
        for piece in pieces
    ]


def some_of(samples: Samples, rows: Tensor) -> Samples:
    """Return some samples: a tensor of a tensor, and of others what is prepared when it is asked for."""
    if isinstance(samples, Tensor):
        return samples[rows]
    few = math.prod((len(rows), *samples.shape[1:])) * samples.dtype.itemsize <= FEW_BYTES
    return samples[rows] if few else samples.take(rows)


def prepared(features: RawFeatures, rows: Rows, preprocessing: Preprocessing, *, of_all: int) -> Samples:
    """Return some rows as a network reads them, prepared now where all samples that are used, `of_all`, are few."""
    size = of_all * math.prod(preprocessing.input_shape) * torch.float32.itemsize
    if size <= MOST_BYTES or is_table(features) or preprocessing.projection:
        return preprocessing.of_rows(features, rows)
    return LazySamples(features, rows, preprocessing)
