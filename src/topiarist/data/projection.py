"""Blocks of neighbouring columns, each seen along its leading principal axes (PCA).

The axes follow from training rows alone. With fewer rows than columns they come from the Gram matrix of the rows, with
fewer columns from that of the columns; where squaring would lose the last of them, from the triangle of a QR
decomposition. One thread computes, so that the numbers do not depend on how many there are. The entry of an axis that
is largest in size is positive. An axis along which the training rows do not vary is zero: it could point anywhere.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, Self

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor

from topiarist.errors import DataError
from topiarist.files import JsonObject
from topiarist.threads import torch_threads

BlockSizes = Sequence[tuple[int, int]]  # of each block: how many columns, how many components
Matrix = NDArray[numpy.float64]
_STORED = "<f4"
_MOST_NUMBERS = 2**24  # of all axes together: they are 90 MB as text, and a model file's header holds 100 MB
_LEAST_SQUARE = 1e-6  # of the largest eigenvalue: one above it has lost nothing that float32 could show
_NEARLY = 1 - 1e-6  # entries this close to the largest count as equal, so that rounding does not turn an axis


@dataclass(frozen=True, kw_only=True)
class ColumnBlock:
    """Some columns as x · axes − offset: `axes` (columns, components) as little-endian float32, offset in float64."""

    columns: int
    offset: tuple[float, ...]
    axes: bytes

    @property
    def components(self) -> int:
        """How many inputs of the network this block takes."""
        return len(self.offset)

    def __call__(self, values: NDArray[Any]) -> Matrix:
        """Return (n_samples, components) of (n_samples, columns)."""
        found: Matrix = _product(values.astype(numpy.float64), self.matrix()) - numpy.array(self.offset)
        return found

    def matrix(self) -> Matrix:
        """Return the axes (columns, components)."""
        return numpy.frombuffer(self.axes, _STORED).reshape(self.columns, self.components).astype(numpy.float64)

    def to_json(self) -> JsonObject:
        """Return plain values, the axes as text."""
        axes = base64.b64encode(self.axes).decode("ascii")
        return {"columns": self.columns, "offset": list(self.offset), "axes": axes}

    @classmethod
    def from_json(cls, record: JsonObject) -> Self:
        """Return what `to_json` wrote down; axes of another size are a ValueError."""
        offset = tuple(float(value) for value in record["offset"])
        block = cls(columns=index(record["columns"]), offset=offset, axes=base64.b64decode(record["axes"]))
        if block.columns < 1 or not offset or not numpy.isfinite(block.matrix()).all():
            raise ValueError(f"axes of {block.columns} columns and {len(offset)} components make no projection")
        return block


def project(values: NDArray[Any], blocks: Sequence[ColumnBlock]) -> Matrix:
    """Return the components of all blocks side by side (n_samples, components)."""
    pieces = numpy.split(values, numpy.cumsum([block.columns for block in blocks])[:-1], axis=1)
    return numpy.concatenate([block(piece) for block, piece in zip(blocks, pieces, strict=True)], axis=1)


def fit_projection(training: NDArray[Any], sizes: BlockSizes) -> tuple[ColumnBlock, ...]:
    """Learn the axes of each block from training rows (n_rows, n_columns)."""
    checked = _check_sizes(sizes, *training.shape)
    pieces = numpy.split(training, numpy.cumsum([columns for columns, _ in checked])[:-1], axis=1)
    return tuple(_fit_block(piece, components) for piece, (_, components) in zip(pieces, checked, strict=True))


def _fit_block(training: NDArray[Any], components: int) -> ColumnBlock:
    values = training.astype(numpy.float64)
    mean = values.mean(axis=0)
    stored = principal_axes(values - mean, components).astype(_STORED)
    offset = _product(mean[numpy.newaxis], stored.astype(numpy.float64))[0]  # of the axes as they are stored
    return ColumnBlock(columns=values.shape[1], offset=tuple(offset.tolist()), axes=stored.tobytes())


def principal_axes(centred: Matrix, components: int) -> Matrix:
    """Return the leading axes (n_columns, components) of rows whose mean is zero, of length 1 or zero."""
    largest = float(numpy.abs(centred).max())
    if largest == 0:
        return numpy.zeros((centred.shape[1], components))
    with torch_threads(1):
        scaled = torch.from_numpy(centred / largest)  # squares neither overflow nor vanish
        wide = scaled.shape[0] < scaled.shape[1]
        vectors = _leading_vectors(scaled.T if wide else scaled, components)
        turned = scaled.T @ vectors if wide else vectors
        lengths = torch.linalg.vector_norm(turned, dim=0)
        axes = (turned / torch.where(lengths == 0, 1.0, lengths)).numpy()
    sizes = numpy.abs(axes)
    place = numpy.argmax(sizes >= _NEARLY * sizes.max(axis=0), axis=0)
    return numpy.asarray(axes * numpy.where(axes[place, numpy.arange(axes.shape[1])] < 0, -1.0, 1.0))


def _leading_vectors(tall: Tensor, components: int) -> Tensor:
    """Return the leading right singular vectors (n_short, components) of (n_long, n_short), zero where none is left."""
    squares, vectors = torch.linalg.eigh(tall.T @ tall)
    found: Tensor = vectors.flip(1)
    if squares[-components] <= _LEAST_SQUARE * squares[-1]:
        _, singular, transposed = torch.linalg.svd(torch.linalg.qr(tall, mode="r").R)
        nothing = singular <= singular[0] * max(tall.shape) * torch.finfo(tall.dtype).eps
        found = torch.where(nothing, 0.0, transposed.T)
    return found[:, :components]


def _product(first: Matrix, second: Matrix) -> Matrix:
    with torch_threads(1):
        found: Matrix = (torch.from_numpy(first) @ torch.from_numpy(second)).numpy()
    return found


def _check_sizes(sizes: BlockSizes, rows: int, columns: int) -> tuple[tuple[int, int], ...]:
    try:
        checked = tuple((index(width), index(components)) for width, components in sizes)
    except (TypeError, ValueError) as error:
        raise DataError(f"a projection is pairs (columns, components), one per block; found {sizes!r}") from error
    for width, components in checked:
        most = min(rows - 1, width)
        if width < 1 or components < 1:
            raise DataError(
                f"a block of a projection needs 1 column and 1 component or more; found {width, components}"
            )
        if components > most:
            raise DataError(
                f"a block of {width} columns and {rows} training rows has at most {most} principal components;"
                f" asked for {components}"
            )
    if sum(width for width, _ in checked) != columns:
        told = " + ".join(str(width) for width, _ in checked) or "no"
        raise DataError(f"the blocks of a projection must hold all {columns} columns; found {told}")
    if sum(width * components for width, components in checked) > _MOST_NUMBERS:
        raise DataError(f"a projection may hold {_MOST_NUMBERS:,} numbers at most: ask for fewer components")
    return checked
