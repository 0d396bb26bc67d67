"""Filling gaps, one-hot, projection and scaling: fitted on a training part, JSON-able, saved with the model.

The columns of the result follow from the whole table, so that every fold gives networks of one shape; every number
in it follows from the training rows alone. A category that no training row shows is encoded as all zeros.
"""

import math
import warnings
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy
from numpy.typing import NDArray

from topiarist.data.columns import Column, describe_column, encode
from topiarist.data.source import Features, Rows, Scaling, is_table, take_rows
from topiarist.errors import DataError
from topiarist.files import JsonObject

if TYPE_CHECKING:
    from torch import Tensor

    from topiarist.data.projection import BlockSizes, ColumnBlock

_MOMENTS = (numpy.mean, numpy.std)
_CONSTANT = 1e-12  # a spread below this part of the mean is rounding: dividing by it would blow noise up


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """What turns raw samples into the input of a network, (n_samples, *input_shape) of float32.

    `columns` is empty for arrays. `projection`, where there is one, comes between filling and scaling and makes fewer
    inputs of the columns. `shift` and `scale`, (x − shift) · scale, have one entry per feature, per channel where a
    sample has more than one axis, or one in all; scaling `unit` divides each sample by its norm instead. `zscore` and
    `pixels` centre and scale to a standard deviation of 1, but `pixels` takes a flat sample as the pixels of one
    channel, with one mean and one deviation: a pixel that is rarely lit would otherwise become a huge number.

    Examples
    --------
    >>> from topiarist import load_data
    >>> data = load_data("iris")
    >>> data.preprocessing(data.source.features).shape
    torch.Size([150, 4])
    """

    scaling: Scaling
    input_shape: tuple[int, ...]
    columns: tuple[Column, ...] = ()
    fill: tuple[float, ...] = ()
    shift: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    projection: "tuple[ColumnBlock, ...]" = ()

    def __call__(self, features: Features) -> "Tensor":
        """Return raw samples, of training or not, as a network reads them."""
        import torch  # noqa: PLC0415  # splitting and describing data need no torch

        values = self.numbers(features)
        if self.shift:
            broadcast = (-1, *[1] * (values.ndim - 2))
            values = values - numpy.array(self.shift).reshape(broadcast)
            values *= numpy.array(self.scale).reshape(broadcast)
        if self.scaling == "unit":
            flat = values.reshape(len(values), math.prod(self.input_shape))
            norms = numpy.linalg.norm(flat, axis=1, keepdims=True)
            values = (flat / numpy.where(norms == 0, 1, norms)).reshape(values.shape)
        return torch.from_numpy(numpy.ascontiguousarray(values, dtype=numpy.float32))

    def numbers(self, features: Features) -> NDArray[numpy.floating[Any]]:
        """Return raw samples filled, encoded and projected, before they are scaled."""
        if not self.projection:
            return self._filled(features, self.input_shape)
        from topiarist.data.projection import project  # noqa: PLC0415  # it computes with torch

        values = self._filled(features, (sum(block.columns for block in self.projection),))
        return project(values, self.projection).reshape(len(values), *self.input_shape)

    def _filled(self, features: Features, shape: tuple[int, ...]) -> NDArray[numpy.floating[Any]]:
        if self.columns:
            if not is_table(features):
                raise DataError("the network was trained on a table with named columns; found an array")
            return encode(features, self.columns).reshape(len(features), *shape)
        values = as_array(features)
        found = values.shape[1:]
        if math.prod(found) != math.prod(shape):
            raise DataError(f"the network reads samples of shape {shape}; found {found}")
        values = values.reshape(len(values), *shape)
        if self.fill:
            values = numpy.where(numpy.isnan(values), numpy.array(self.fill).reshape(shape), values)
        if numpy.issubdtype(values.dtype, numpy.floating) and not numpy.isfinite(values).all():
            missing = int(numpy.isnan(values).sum())
            wrong = f"{missing} missing" if missing else f"{int(numpy.isinf(values).sum())} infinite"
            raise DataError(f"the samples must hold finite numbers; found {wrong}: fill or replace them")
        return values

    def to_json(self) -> JsonObject:
        """Return plain lists, numbers and texts, for a file's header; a projection only where there is one."""
        record = asdict(self)
        del record["projection"]
        return record | ({"projection": [block.to_json() for block in self.projection]} if self.projection else {})

    @classmethod
    def from_json(cls, record: JsonObject) -> Self:
        """Return what `to_json` wrote down."""
        columns = tuple(
            Column(**{**column, "categories": tuple(column["categories"]), "known": tuple(column["known"])})
            for column in record["columns"]
        )
        numbers = {name: tuple(record[name]) for name in ("fill", "shift", "scale", "input_shape")}
        plain = cls(scaling=record["scaling"], columns=columns, **numbers)
        if "projection" not in record:
            return plain
        from topiarist.data.projection import ColumnBlock  # noqa: PLC0415  # it computes with torch

        return replace(plain, projection=tuple(ColumnBlock.from_json(block) for block in record["projection"]))


def fit_preprocessing(
    features: Features,
    training_rows: Rows,
    *,
    scaling: Scaling,
    input_shape: tuple[int, ...] | None = None,
    projection: "BlockSizes | None" = None,
) -> Preprocessing:
    """Learn the numbers from the training rows, and only the columns from the whole."""
    plain = _fit_filling(features, training_rows)
    chosen = take_rows(features, training_rows)
    if projection is not None:
        plain = _with_projection(plain, chosen, projection)
    found = plain.input_shape
    if input_shape is not None and math.prod(input_shape) != math.prod(found):
        raise DataError(f"cannot see samples of shape {found} as {tuple(input_shape)}: the number of values differs")
    plain = replace(plain, input_shape=tuple(found if input_shape is None else input_shape))
    training = plain.numbers(chosen)
    shift, scale = _affine(training, scaling)
    if shift.size and training.ndim == 2 and plain.columns and not plain.projection:
        one_hot = numpy.repeat([c.kind == "text" for c in plain.columns], [c.width for c in plain.columns])
        shift, scale = numpy.where(one_hot, 0.0, shift), numpy.where(one_hot, 1.0, scale)
    return replace(plain, scaling=scaling, shift=tuple(shift.tolist()), scale=tuple(scale.tolist()))


def _fit_filling(features: Features, training_rows: Rows) -> Preprocessing:
    """Learn what replaces missing cells, and how text is encoded; nothing is scaled."""
    if is_table(features):
        columns = tuple(describe_column(features[name], training_rows) for name in features.columns)
        return Preprocessing(scaling="none", input_shape=(sum(column.width for column in columns),), columns=columns)
    fill: tuple[float, ...] = ()
    if features.dtype.kind == "f" and features.ndim == 2 and numpy.isnan(features).any():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a feature with no value at all: filled with 0
            fill = tuple(numpy.nan_to_num(numpy.nanmedian(features[training_rows], axis=0)).tolist())
    return Preprocessing(scaling="none", input_shape=features.shape[1:], fill=fill)


def _with_projection(plain: Preprocessing, training: Features, sizes: "BlockSizes") -> Preprocessing:
    from topiarist.data.projection import fit_projection  # noqa: PLC0415  # it computes with torch

    if len(plain.input_shape) != 1:
        raise DataError(f"a projection needs flat samples (n_samples, n_columns); found samples {plain.input_shape}")
    text = [column.name for column in plain.columns if column.kind == "text"]
    if text:
        raise DataError(f"a projection needs columns of numbers; found text in '{text[0]}'")
    blocks = fit_projection(plain.numbers(training), sizes)
    return replace(plain, projection=blocks, input_shape=(sum(block.components for block in blocks),))


def _affine(training: NDArray[Any], scaling: Scaling) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return shift and scale per feature (or channel): a scale of zero for what is constant in training."""
    axes = (0, *range(2, training.ndim))
    if scaling == "pixels" and training.ndim == 2:
        shift, spread = (numpy.atleast_1d(statistic(training, dtype=float)) for statistic in _MOMENTS)
    elif scaling in ("zscore", "pixels"):
        shift, spread = (statistic(training, axis=axes, dtype=float) for statistic in _MOMENTS)
    elif scaling == "minmax":
        shift = training.min(axis=axes).astype(float)
        spread = training.max(axis=axes).astype(float) - shift
    else:
        return numpy.empty(0), numpy.empty(0)
    constant = spread <= _CONSTANT * numpy.maximum(1.0, numpy.abs(shift))
    return shift, numpy.where(constant, 0.0, 1.0 / numpy.where(constant, 1.0, spread))


def as_array(features: Features) -> NDArray[Any]:
    """Return an array of numbers; a table of numbers will do."""
    if is_table(features):
        try:
            return features.to_numpy(dtype=float)
        except (TypeError, ValueError) as error:
            raise DataError(f"the network was trained on an array of numbers; found text ({error})") from error
    return features if features.dtype != numpy.float16 else features.astype(numpy.float32)
