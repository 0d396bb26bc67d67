"""Imputing, one-hot, projection and scaling: fitted on a training part, JSON-able, saved with the model.

The columns of the result follow from the whole table, so that every fold gives networks of one shape; every number
in it follows from the training rows alone. A category that no training row shows is encoded as all zeros.
"""

import math
import warnings
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy
import pandas
import torch
from numpy.typing import NDArray
from torch import Tensor

from topiarist.data.columns import Column, describe_column, encode
from topiarist.data.projection import Block, Sizes, fit_projection, project
from topiarist.data.source import Features, Scaling
from topiarist.errors import DataError

MOMENTS = (numpy.mean, numpy.std)


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """Turns raw samples into what the network reads: (n_samples, *input_shape) of float32.

    `columns` is empty for arrays. `projection`, where there is one, comes between filling and scaling and makes fewer
    inputs of the columns. `shift` and `scale` (x − shift) · scale have one entry per feature, per channel where a
    sample has more than one axis, or one in all; scaling `unit` divides each sample by its norm instead. `zscore` and
    `pixels` centre and scale to a standard deviation of 1, but `pixels` takes a flat sample as the pixels of one
    channel, with one mean and one deviation: a pixel that is rarely lit would otherwise become a huge number.
    """

    scaling: Scaling
    input_shape: tuple[int, ...]
    columns: tuple[Column, ...] = ()
    fill: tuple[float, ...] = ()
    shift: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    projection: tuple[Block, ...] = ()

    def __call__(self, features: Features) -> Tensor:
        """Apply to raw samples, of training or not."""
        values = self._numbers(features)
        if self.shift:
            broadcast = (-1, *[1] * (values.ndim - 2))
            values = values - _array(self.shift).reshape(broadcast)
            values *= _array(self.scale).reshape(broadcast)
        if self.scaling == "unit":
            flat = values.reshape(len(values), math.prod(self.input_shape))
            norms = numpy.linalg.norm(flat, axis=1, keepdims=True)
            values = (flat / numpy.where(norms == 0, 1, norms)).reshape(values.shape)
        return torch.from_numpy(numpy.ascontiguousarray(values, dtype=numpy.float32))

    def _numbers(self, features: Features) -> NDArray[numpy.floating[Any]]:
        if not self.projection:
            return self._filled(features, self.input_shape)
        values = self._filled(features, (sum(block.columns for block in self.projection),))
        return project(values, self.projection).reshape(len(values), *self.input_shape)

    def _filled(self, features: Features, shape: tuple[int, ...]) -> NDArray[numpy.floating[Any]]:
        if self.columns:
            if not isinstance(features, pandas.DataFrame):
                raise DataError("the network was trained on a table with named columns; found an array")
            return encode(features, self.columns).reshape(len(features), *shape)
        values = as_array(features)
        found = values.shape[1:]
        if found != shape and numpy.prod(found) == numpy.prod(shape):
            values = values.reshape(len(values), *shape)
        if values.shape[1:] != shape:
            raise DataError(f"the network reads samples of shape {shape}; found {found}")
        return finite(impute(values, _array(self.fill).reshape(shape)) if self.fill else values)

    def to_json(self) -> dict[str, Any]:
        """Give plain lists, numbers and texts, for a file's header; a projection only where there is one."""
        record = asdict(self)
        del record["projection"]
        return record | ({"projection": [block.to_json() for block in self.projection]} if self.projection else {})

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Self:
        """Read what `to_json` gave."""
        columns = tuple(
            Column(**{**column, "categories": tuple(column["categories"]), "known": tuple(column["known"])})
            for column in record["columns"]
        )
        numbers = {name: tuple(record[name]) for name in ("fill", "shift", "scale", "input_shape")}
        projection = tuple(Block.from_json(block) for block in record.get("projection", ()))
        return cls(scaling=record["scaling"], columns=columns, projection=projection, **numbers)


def fit_preprocessing(
    features: Features,
    training_rows: NDArray[numpy.intp],
    *,
    scaling: Scaling,
    input_shape: tuple[int, ...] | None = None,
    projection: Sizes | None = None,
) -> Preprocessing:
    """Learn the numbers from the training rows, and only the columns from the whole."""
    plain = fit_filling(features, training_rows)
    chosen = features.iloc[training_rows] if isinstance(features, pandas.DataFrame) else features[training_rows]
    if projection is not None:
        check_flat_numbers(plain)
        blocks = fit_projection(plain._numbers(chosen), projection)
        width = sum(block.components for block in blocks)
        plain = replace(plain, projection=blocks, input_shape=(width,))
    plain = replace(plain, input_shape=seen_as(plain.input_shape, input_shape))
    training = plain._numbers(chosen)
    shift, scale = affine(training, scaling)
    if shift.size and training.ndim == 2 and plain.columns and not plain.projection:
        one_hot = numpy.repeat([c.kind == "text" for c in plain.columns], [c.width for c in plain.columns])
        shift, scale = numpy.where(one_hot, 0.0, shift), numpy.where(one_hot, 1.0, scale)
    return replace(plain, scaling=scaling, shift=tuple(shift.tolist()), scale=tuple(scale.tolist()))


def fit_filling(features: Features, training_rows: NDArray[numpy.intp]) -> Preprocessing:
    """Learn what stands for missing cells, and how text is encoded; nothing is scaled."""
    if isinstance(features, pandas.DataFrame):
        columns = tuple(describe_column(features[name], training_rows) for name in features.columns)
        return Preprocessing(scaling="none", input_shape=(sum(column.width for column in columns),), columns=columns)
    fill = missing_values(features, training_rows) if numpy.issubdtype(features.dtype, numpy.floating) else ()
    return Preprocessing(scaling="none", input_shape=features.shape[1:], fill=fill)


def check_flat_numbers(plain: Preprocessing) -> None:
    """Refuse samples that have no columns of numbers to project."""
    if len(plain.input_shape) != 1:
        raise DataError(f"a projection needs flat samples (n_samples, n_columns); found samples {plain.input_shape}")
    text = [column.name for column in plain.columns if column.kind == "text"]
    if text:
        raise DataError(f"a projection needs columns of numbers; found text in '{text[0]}'")


def seen_as(found: tuple[int, ...], wanted: tuple[int, ...] | None) -> tuple[int, ...]:
    """Give the shape of a sample as asked for, which must hold as many values as were found."""
    if wanted is not None and numpy.prod(wanted) != numpy.prod(found):
        raise DataError(f"cannot see samples of shape {found} as {tuple(wanted)}: the number of values differs")
    return tuple(found if wanted is None else wanted)


def affine(training: NDArray[Any], scaling: Scaling) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return shift and scale per feature (or channel): zero for what is constant in training."""
    axes = (0, *range(2, training.ndim))
    if scaling == "pixels" and training.ndim == 2:
        shift, spread = (numpy.atleast_1d(statistic(training, dtype=float)) for statistic in MOMENTS)
    elif scaling in ("zscore", "pixels"):
        shift, spread = (statistic(training, axis=axes, dtype=float) for statistic in MOMENTS)
    elif scaling == "minmax":
        shift = training.min(axis=axes).astype(float)
        spread = training.max(axis=axes).astype(float) - shift
    else:
        return numpy.empty(0), numpy.empty(0)
    constant = spread <= 1e-12 * numpy.maximum(1.0, numpy.abs(shift))
    return shift, numpy.where(constant, 0.0, 1.0 / numpy.where(constant, 1.0, spread))


def as_array(features: Features) -> NDArray[Any]:
    """Give an array of numbers; a table of numbers will do."""
    if isinstance(features, pandas.DataFrame):
        try:
            return features.to_numpy(dtype=float)
        except (TypeError, ValueError) as error:
            raise DataError(f"the network was trained on an array of numbers; found text ({error})") from error
    return features if features.dtype != numpy.float16 else features.astype(numpy.float32)


def missing_values(features: NDArray[Any], training_rows: NDArray[numpy.intp]) -> tuple[float, ...]:
    """Give the median of each feature in training where any sample has gaps; nothing where none has."""
    if features.ndim != 2 or not numpy.isnan(features).any():
        return ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a feature with no value at all: filled with 0
        medians = numpy.nanmedian(features[training_rows], axis=0)
    return tuple(numpy.nan_to_num(medians).tolist())


def impute(values: NDArray[Any], fill: NDArray[Any]) -> NDArray[Any]:
    """Put the training medians (*input_shape) in the place of missing numbers."""
    return numpy.where(numpy.isnan(values), fill, values)


def finite(values: NDArray[Any]) -> NDArray[Any]:
    """Refuse what no network can read: infinite numbers, and missing ones that nothing stands for."""
    if numpy.issubdtype(values.dtype, numpy.floating) and not numpy.isfinite(values).all():
        missing = int(numpy.isnan(values).sum())
        found = f"{missing} missing" if missing else f"{int(numpy.isinf(values).sum())} infinite"
        raise DataError(f"the samples must hold finite numbers; found {found}: fill or replace them")
    return values


def _array(numbers: tuple[float, ...]) -> NDArray[numpy.float64]:
    return numpy.array(numbers, dtype=float)
