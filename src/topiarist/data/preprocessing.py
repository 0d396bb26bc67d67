"""Filling gaps, one-hot, projection and scaling: fitted on a training part, JSON-able, saved with the model.

The columns of the result follow from the whole table, so that every fold gives networks of one shape; every number
in it follows from the training rows alone. A category that no training row shows is encoded as all zeros.
"""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy
from numpy.typing import NDArray

from topiarist.data.columns.column import Column, Encoding, encode
from topiarist.data.columns.effect_inputs import EffectColumn, EffectInputs
from topiarist.data.columns.effects import EffectTargets, crossed_effects
from topiarist.data.columns.fitting import fit_columns
from topiarist.data.columns.forms import CellForm
from topiarist.data.joined import LARGE_BYTES, JoinedArrays
from topiarist.data.sound_form import SoundForm
from topiarist.data.source import Features, RawFeatures, Rows, Scaling, is_table, take_rows
from topiarist.errors import DataError
from topiarist.files import JsonObject

if TYPE_CHECKING:
    from torch import Tensor

    from topiarist.data.projection import BlockSizes, ColumnBlock

_MOMENTS = (numpy.mean, numpy.std)
CHUNK_BYTES = 2**20  # 1 MB of samples in the file, 8 MB of pixels in float64: smaller chunks are no faster
CACHED_BYTES = 2**16  # of bytes, 512 KB in float64: a core's own cache
LARGE_TABLE = 2**22  # cells of a table, 32 MB in float64: one-hot inputs are more
MOST_AXES, MOST_NUMBERS = 16, 2**26  # of a sample in a file: 256 MB as float32, an image of 8,000 × 8,000
_CONSTANT = 1e-12  # a spread below this part of the mean is rounding: dividing by it would blow noise up


def check_shape(sizes: Sequence[int]) -> None:
    """Raise ValueError where no sample of a model file has that shape."""
    if not all(type(size) is int and size > 0 for size in sizes):
        raise ValueError(f"no sample has the shape {tuple(sizes)}")
    if len(sizes) > MOST_AXES or math.prod(sizes) > MOST_NUMBERS:
        raise ValueError(f"a sample has at most {MOST_AXES} axes and {MOST_NUMBERS:,} numbers")


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """What turns raw samples into the input of a network, (n_samples, *input_shape) of float32.

    `columns` is empty for arrays; `ignored` are columns of the table that are no features: its target, its groups,
    what was left out. `sound` is how sounds become such samples. `projection`, where there is one, comes between
    filling and scaling and makes fewer inputs of the columns. `shift` and `scale`, (x − shift) · scale, have one
    entry per feature, per channel where a sample has more than one axis, or one in all; scaling `unit` divides each
    sample by its norm instead. `zscore` and `pixels` centre and scale to a standard deviation of 1, but `pixels`
    takes a flat sample as the pixels of one channel, with one mean and one deviation: a pixel that is rarely lit
    would otherwise become a huge number.

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
    ignored: tuple[str, ...] = ()
    sound: SoundForm | None = None

    @property
    def reads_text(self) -> bool:
        """Whether cells of a table are read as they are written; files of before had them read by pandas."""
        return all(column.form is not None for column in self.columns)

    @property
    def cells(self) -> Literal["written", "inferred"]:
        """How a file is read for it, as in `read_table`."""
        return "written" if self.reads_text else "inferred"

    @property
    def embedded(self) -> dict[int, int]:
        """Which inputs are indices of categories, by their number, and how many different ones each may be."""
        starts = numpy.cumsum([0, *(column.width for column in self.columns)])
        return {
            int(start): column.places
            for start, column in zip(starts, self.columns, strict=False)
            if column.kind == "text" and column.encoding == "index"
        }

    def unknown_columns(self, names: Sequence[str]) -> list[str]:
        """Return the columns of a table that the network was not trained with; none where it was not saved."""
        known = {*(column.name for column in self.columns), *self.ignored}
        return [name for name in names if name and name not in known] if self.columns and self.reads_text else []

    def __call__(self, features: RawFeatures) -> "Tensor":
        """Return raw samples, of training or not, as a network reads them."""
        return self.of_rows(features, numpy.arange(len(features)))

    def of_rows(self, features: RawFeatures, rows: Rows) -> "Tensor":
        """Return some raw samples as a network reads them; of large arrays, few are in memory in a wider type."""
        import torch  # noqa: PLC0415  # splitting and describing data need no torch

        if self.projection or not (is_large(features) or _widen(features, rows)):
            return self._scaled(take_rows(features, rows))
        made = torch.empty((len(rows), *self.input_shape), dtype=torch.float32)
        for some in chunks(features, rows):
            made[some] = self._scaled(take_rows(features, rows[some]))
        return made

    def _scaled(self, features: Features) -> "Tensor":
        import torch  # noqa: PLC0415  # splitting and describing data need no torch

        values = self.numbers(features)
        if self.shift and values.dtype == numpy.uint8:
            return torch.from_numpy(self._scaled_bytes(values))
        if self.shift:
            broadcast = (-1, *[1] * (values.ndim - 2))
            values = values - numpy.array(self.shift).reshape(broadcast)
            values *= numpy.array(self.scale).reshape(broadcast)
        if self.scaling == "unit":
            flat = values.reshape(len(values), math.prod(self.input_shape))
            norms = numpy.linalg.norm(flat, axis=1, keepdims=True)
            values = (flat / numpy.where(norms == 0, 1, norms)).reshape(values.shape)
        return torch.from_numpy(numpy.ascontiguousarray(values, dtype=numpy.float32))

    def _scaled_bytes(self, values: NDArray[Any]) -> NDArray[numpy.float32]:
        """Return scaled bytes, in float64 a few at a time: what fits in a cache takes a sixth less time."""
        broadcast = (-1, *[1] * (values.ndim - 2))
        shift, scale = (numpy.array(numbers).reshape(broadcast) for numbers in (self.shift, self.scale))
        made = numpy.empty(values.shape, dtype=numpy.float32)
        together = max(1, CACHED_BYTES // max(math.prod(values.shape[1:]), 1))
        for start in range(0, len(values), together):
            some = values[start : start + together] - shift
            numpy.multiply(some, scale, out=made[start : start + together], casting="same_kind")
        return made

    def effect_inputs(self, features: RawFeatures, rows: Rows, targets: EffectTargets) -> EffectInputs | None:
        """Return the inputs of training rows that effects of texts make; None where there are none."""
        found, start = [], 0
        for column in self.columns:
            if column.encoding == "effect":
                assert is_table(features)
                places = column.places_of(features[column.name].iloc[rows])
                found.append(EffectColumn(name=column.name, start=start, count=column.places, places=places))
            start += column.width
        own = EffectInputs(columns=tuple(found), targets=targets.of_rows(rows), scaled=bool(self.shift))
        return own if found else None

    def crossed(self, x: "Tensor", known: EffectInputs) -> "Tensor":
        """Return training rows as `of_rows` makes them, `x`, but with effects of texts from the rows of other folds."""
        import torch  # noqa: PLC0415  # splitting and describing data need no torch

        found, targets = x.clone(), known.targets.take(numpy.arange(len(x)))
        shrinking = {column.name: column.shrinking for column in self.columns}
        for column in known.columns:
            values = crossed_effects(column.name, column.places, targets, column.count, shrinking[column.name])
            inputs = slice(column.start, column.start + values.shape[1])
            if self.shift:
                values = (values - numpy.array(self.shift)[inputs]) * numpy.array(self.scale)[inputs]
            found.view(len(found), -1)[:, inputs] = torch.from_numpy(values).float()
        return found

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
        record = asdict(replace(self, columns=(), projection=()))
        del record["projection"], record["ignored"]
        if self.sound is None:
            del record["sound"]
        record["columns"] = [column.to_json() for column in self.columns]
        record |= {"ignored": list(self.ignored)} if self.ignored else {}
        return record | ({"projection": [block.to_json() for block in self.projection]} if self.projection else {})

    @classmethod
    def from_json(cls, record: JsonObject) -> Self:
        """Return what `to_json` wrote down."""
        columns = tuple(Column.from_json(column) for column in record["columns"])
        ignored = tuple(str(name) for name in record.get("ignored", ()))
        numbers = {name: tuple(record[name]) for name in ("fill", "shift", "scale", "input_shape")}
        sound = SoundForm(**record["sound"]) if "sound" in record else None
        plain = cls(scaling=record["scaling"], columns=columns, ignored=ignored, sound=sound, **numbers)
        if "projection" in record:
            from topiarist.data.projection import ColumnBlock  # noqa: PLC0415  # it computes with torch

            plain = replace(plain, projection=tuple(ColumnBlock.from_json(block) for block in record["projection"]))
        plain.check()
        return plain

    def check(self) -> None:
        """Raise ValueError where the parts do not go together, as they may in a file that someone made up."""
        sizes, numbers = self.input_shape, (*self.fill, *self.shift, *self.scale)
        if self.scaling not in get_args(Scaling):
            raise ValueError(f"no scaling is called {self.scaling!r}")
        if not sizes:
            raise ValueError("no sample has no axis")
        check_shape(sizes)
        if not all(type(number) in (int, float) and math.isfinite(number) for number in numbers):
            raise ValueError("it fills or scales with what is no finite number")
        width, read = math.prod(sizes), math.prod(sizes)
        if self.projection:
            width = sum(block.components for block in self.projection)
            read = sum(block.columns for block in self.projection)
        made = sum(column.width for column in self.columns)
        whole = width == math.prod(sizes) and (not self.columns or made == read) and len(self.fill) in (0, read)
        if not whole or len(self.shift) != len(self.scale) or len(self.shift) not in (0, 1, sizes[0]):
            raise ValueError(f"its columns, fillings and scales do not make samples of shape {sizes}")


def fit_preprocessing(
    features: RawFeatures,
    training_rows: Rows,
    *,
    scaling: Scaling,
    input_shape: tuple[int, ...] | None = None,
    projection: "BlockSizes | None" = None,
    forms: Mapping[str, CellForm] | None = None,
    categories: Encoding = "one-hot",
    targets: EffectTargets | None = None,
) -> Preprocessing:
    """Learn the numbers from the training rows, and only the columns from the whole.

    `forms` say how the columns of a table are written; `categories` become one-hot inputs, or one index each; with
    `targets`, those that are too many are read by their effect on them. Inputs of their own mark the gaps of a table,
    unless the shape or the blocks that are asked for have no room for them.
    """
    if is_table(features):
        columns = fit_columns(
            features,
            training_rows,
            forms,
            encoding=categories,
            indicators=projection is None,
            targets=None if projection is not None or scaling == "unit" else targets,
        )
        if input_shape is not None and sum(each.raw_width for each in columns) == math.prod(input_shape):
            columns = tuple(replace(each, indicator=each.indicator and not each.marks_gaps) for each in columns)
        plain = Preprocessing(scaling="none", input_shape=(sum(each.width for each in columns),), columns=columns)
    else:
        try:  # a network that was trained with them could not be loaded
            check_shape(features.shape[1:])
        except ValueError as error:
            raise DataError(f"the data hold samples of shape {features.shape[1:]}: {error}") from error
        plain = _fit_filling(features, training_rows)
    if projection is None and is_large(features):
        from topiarist.data.chunked_fitting import fit_in_chunks  # noqa: PLC0415  # most data are small

        return fit_in_chunks(plain, features, training_rows, scaling, input_shape)
    chosen = take_rows(features, training_rows)
    if projection is not None:
        plain = _with_projection(plain, chosen, projection)
    plain = seen_as(plain, input_shape)
    training = plain.numbers(chosen)
    shift, scale = _affine(training, scaling)
    return with_scales(plain, scaling, shift, scale)


def with_scales(plain: Preprocessing, scaling: Scaling, shift: NDArray[Any], scale: NDArray[Any]) -> Preprocessing:
    """Return the preprocessing with shifts and scales; inputs of a table that are 0 or 1 have none."""
    if shift.size and len(plain.input_shape) == 1 and plain.columns and not plain.projection:
        scaled = numpy.array([each for column in plain.columns for each in column.scaled], dtype=bool)
        shift, scale = numpy.where(scaled, shift, 0.0), numpy.where(scaled, scale, 1.0)
    return replace(plain, scaling=scaling, shift=tuple(shift.tolist()), scale=tuple(scale.tolist()))


def seen_as(plain: Preprocessing, input_shape: tuple[int, ...] | None) -> Preprocessing:
    """Return preprocessing that makes samples of another shape, with as many values; raise DataError for others."""
    shape, found = plain.input_shape if input_shape is None else tuple(input_shape), plain.input_shape
    if math.prod(shape) != math.prod(found):
        raise DataError(f"cannot see samples of shape {found} as {shape}: the number of values differs")
    return replace(plain, input_shape=shape)


def is_large(features: RawFeatures) -> bool:
    """Return whether samples are better looked at some at a time: float64 takes eight times what bytes take."""
    return features.size > LARGE_TABLE if is_table(features) else features.nbytes > LARGE_BYTES


def _widen(features: RawFeatures, rows: Rows) -> bool:
    """Return whether some rows are bytes, and many: prepared at once, they would take eight times as much."""
    if is_table(features) or features.dtype != numpy.uint8:
        return False
    return len(rows) * math.prod(features.shape[1:]) > CHUNK_BYTES


def chunks(features: RawFeatures, rows: Rows) -> Iterator[slice]:
    """Yield slices of rows, each of so many samples as take CHUNK_BYTES in the file, or have as many cells."""
    taken = features.size if is_table(features) else features.nbytes
    step = max(1, CHUNK_BYTES * len(features) // max(int(taken), 1))
    yield from (slice(start, start + step) for start in range(0, len(rows), step))


def _fit_filling(features: "NDArray[Any] | JoinedArrays", training_rows: Rows) -> Preprocessing:
    """Learn what replaces missing numbers; nothing is scaled."""
    fill: tuple[float, ...] = ()
    missing = _count_missing(features) if features.dtype.kind == "f" and features.ndim == 2 else 0
    if missing == math.prod(features.shape) > 0:
        raise DataError("the samples hold no number at all: every value is missing")
    if missing:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a feature with no value at all: filled with 0
            fill = tuple(numpy.nan_to_num(_medians(features, training_rows)).tolist())
    return Preprocessing(scaling="none", input_shape=features.shape[1:], fill=fill)


def _count_missing(features: "NDArray[Any] | JoinedArrays") -> int:
    rows = numpy.arange(len(features))
    return sum(int(numpy.isnan(features[some]).sum()) for some in chunks(features, rows))


def _medians(features: "NDArray[Any] | JoinedArrays", rows: Rows) -> NDArray[Any]:
    """Return the median of what is there in each column; of large arrays, some columns at a time."""
    width = features.shape[1]
    together = width if not is_large(features) else max(1, LARGE_BYTES * width // (8 * features.nbytes))
    blocks = [slice(start, start + together) for start in range(0, width, together)]
    pieces = ([features[rows[some]][:, block] for some in chunks(features, rows)] for block in blocks)
    return numpy.concatenate([numpy.nanmedian(numpy.concatenate(piece), axis=0) for piece in pieces])


def _with_projection(plain: Preprocessing, training: Features, sizes: "BlockSizes") -> Preprocessing:
    from topiarist.data.projection import fit_projection  # noqa: PLC0415  # it computes with torch

    if len(plain.input_shape) != 1:
        raise DataError(f"a projection needs flat samples (n_samples, n_columns); found samples {plain.input_shape}")
    others = [column for column in plain.columns if column.kind != "number"]
    if others:
        found = {"text": "text", "date": "dates"}[others[0].kind]
        raise DataError(f"a projection needs columns of numbers; found {found} in '{others[0].name}'")
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
    return shift, scale_of(shift, spread)


def scale_of(shift: NDArray[Any], spread: NDArray[Any]) -> NDArray[Any]:
    """Return what scales a spread to 1; zero for what is constant in training."""
    constant = spread <= _CONSTANT * numpy.maximum(1.0, numpy.abs(shift))
    return numpy.where(constant, 0.0, 1.0 / numpy.where(constant, 1.0, spread))


def as_array(features: Features) -> NDArray[Any]:
    """Return an array of numbers; a table of numbers will do."""
    if is_table(features):
        try:
            return features.to_numpy(dtype=float)
        except (TypeError, ValueError) as error:
            raise DataError(f"the network was trained on an array of numbers; found text ({error})") from error
    return features if features.dtype != numpy.float16 else features.astype(numpy.float32)
