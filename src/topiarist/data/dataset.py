"""`Data`: train, validation and test parts with input shape, classes and, where known, groups."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

import numpy
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.utils.data import Dataset, Subset

from topiarist.data.columns.deciding import read_source_columns
from topiarist.data.labels import number_labels
from topiarist.data.preparation import PreparationOptions, PreparedSource, fit_split, prepare
from topiarist.data.preprocessing import Preprocessing
from topiarist.data.source import Features, Rows, Scaling, Source, is_table
from topiarist.data.split import Split, SplitRule, fold_splits, original_rows, with_fewer_rows
from topiarist.errors import DataError

if TYPE_CHECKING:
    import pandas


def draw_rows(count: int, most: int | None, generator: torch.Generator) -> Tensor:
    """Return the numbers (int64) of at most `most` of `count` rows, drawn without replacement, in ascending order.

    All rows where `most` is None or there are no more; the generator is not used then.

    Examples
    --------
    >>> draw_rows(1000, 3, torch.Generator().manual_seed(0))
    tensor([ 37,  44, 675])
    """
    if most is None or count <= most:
        return torch.arange(count)
    return torch.randperm(count, generator=generator)[:most].sort().values


@dataclass(frozen=True)
class Part:
    """Samples in memory: x (n_samples, *input_shape) and y (n_samples,) of class numbers."""

    x: Tensor
    y: Tensor
    groups: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: Tensor) -> "Part":
        """Return the samples of some rows."""
        return Part(self.x[rows], self.y[rows], None if self.groups is None else self.groups[rows.numpy()])

    def draw(self, most: int | None, generator: torch.Generator) -> "Part":
        """Return at most `most` samples, drawn by `draw_rows`; this part itself where it has no more."""
        return self if most is None or len(self) <= most else self.take(draw_rows(len(self), most, generator))


@dataclass(frozen=True)
class Stream:
    """Samples of a `torch.utils.data.Dataset` of (x, class number) pairs, read batch by batch."""

    dataset: Dataset[Any]
    workers: int = 0

    def __len__(self) -> int:
        return len(self.dataset)  # type: ignore[arg-type]  # a sized dataset, checked where Data is made

    def draw(self, most: int | None, generator: torch.Generator) -> "Stream":
        """Return at most `most` samples, drawn by `draw_rows`; this stream itself where it has no more."""
        if most is None or len(self) <= most:
            return self
        return Stream(Subset(self.dataset, draw_rows(len(self), most, generator).tolist()), self.workers)


AnyPart = Part | Stream


@dataclass(frozen=True, kw_only=True)
class Data:
    """A classification task: three parts that never mix, and what is known of them.

    Made by `load_data`, `Data.from_arrays` or `Data.from_datasets`. `notes` record what was decided on the way.
    """

    name: str
    classes: tuple[str, ...]
    input_shape: tuple[int, ...]
    train: AnyPart
    validation: AnyPart
    test: AnyPart
    preprocessing: Preprocessing | None = None
    notes: tuple[str, ...] = ()
    source: Source | None = None
    split: Split | None = None
    rule: SplitRule | None = None

    @classmethod
    def from_arrays(
        cls,
        x: "ArrayLike | pandas.DataFrame",
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        originals: ArrayLike | None = None,
        name: str = "arrays",
        scaling: Scaling | Literal["auto"] = "none",
        **options: Unpack[PreparationOptions],
    ) -> Self:
        """Split samples in memory.

        Parameters
        ----------
        x
            Numbers (n_samples, …) or a table. Columns of numbers and dates are kept as they are, and a table of numbers
            alone has an input per column; what columns of text hold is decided as in a file.
        y
            Labels (n_samples,).
        groups
            A group per sample; no group is shared between parts.
        originals
            For each sample, the row of which it is an augmented copy: its own row where it is none.
        name
            What messages call the data.
        scaling
            "none" leaves the numbers exactly as they are, as a trained network needs them; "auto" scales as
            `load_data` does: "pixels" for bytes, "zscore" for all else.
        options
            As in `Data.from_source`.

        Examples
        --------
        >>> data = Data.from_arrays([[0.0], [1.0], [2.0], [3.0]] * 10, ["low", "low", "high", "high"] * 10)
        >>> data.classes, len(data.train), len(data.validation), len(data.test)
        (('high', 'low'), 26, 6, 8)
        """
        features = x if is_table(x) else numpy.asarray(x)
        labels, known = numpy.asarray(y), None if groups is None else numpy.asarray(groups)
        _check_arrays(features, labels, known)
        if scaling == "auto":
            pixels = not is_table(features) and features.dtype == numpy.uint8
            scaling = "pixels" if pixels else "zscore"
        copied = None if originals is None else numpy.asarray(originals)
        source = Source(name=name, features=features, labels=labels, groups=known, originals=copied, scaling=scaling)
        if is_table(features):
            source = read_source_columns(source)
            numbers = all(kind.kind in "biuf" for kind in features.dtypes)
            if numbers and not options.get("input_shape") and not options.get("projection"):
                options["input_shape"] = (len(features.columns),)  # an input per column, as in an array
        return cls._of(prepare(source, **options))

    @classmethod
    def from_datasets(
        cls,
        *,
        train: Dataset[Any],
        validation: Dataset[Any],
        test: Dataset[Any],
        classes: tuple[str, ...],
        name: str = "datasets",
        workers: int = 0,
    ) -> Self:
        """Take map-style datasets of (x, class number) pairs as they are.

        Samples are read batch by batch, by so many `workers`, and need not fit in memory.
        """
        if not all(hasattr(part, "__len__") for part in (train, validation, test)):
            raise DataError("datasets must have a length: iterable datasets are not supported")
        return cls(
            name=name,
            classes=tuple(classes),
            input_shape=tuple(torch.as_tensor(train[0][0]).shape),
            train=Stream(train, workers),
            validation=Stream(validation, workers),
            test=Stream(test, workers),
        )

    @classmethod
    def from_source(
        cls, source: Source, *, scaling: Scaling | None = None, **options: Unpack[PreparationOptions]
    ) -> Self:
        """Split what a reader found; a split that comes with the source is respected.

        Parameters
        ----------
        source
            The raw samples.
        scaling
            In place of the one that suits the source.
        seed, test_fraction, validation_fraction
            How parts are drawn; see `SplitRule`.
        input_shape
            The shape of a sample, where it is not that of the source: (1, 8, 8) for 64 columns.
        samples
            The most training samples; validation samples are limited in proportion. Copies are not counted.
        projection
            Principal components of blocks of columns: ((4096, 5), (5456, 5)) makes 10 inputs of 9552 columns.

        Raises
        ------
        DataError
            Where the samples cannot be used as asked.
        """
        return cls._of(prepare(source, scaling=scaling, **options))

    @classmethod
    def _of(cls, found: PreparedSource) -> Self:
        return cls.of_parts(found.source, found.split, found.preprocessing, notes=found.notes, rule=found.rule)

    @classmethod
    def of_parts(
        cls,
        source: Source,
        split: Split,
        preprocessing: Preprocessing,
        *,
        notes: tuple[str, ...] = (),
        rule: SplitRule | None = None,
    ) -> Self:
        """Return the parts of a split as preprocessing that is already fitted makes them."""
        labels, classes = number_labels(source)
        return cls(
            name=source.name,
            classes=classes,
            input_shape=preprocessing.input_shape,
            train=make_part(source, labels, split.train, preprocessing),
            validation=make_part(source, labels, split.validation, preprocessing),
            test=make_part(source, labels, split.test, preprocessing),
            preprocessing=preprocessing,
            notes=notes,
            source=source,
            split=split,
            rule=rule,
        )

    def folds(
        self,
        count: int = 10,
        *,
        seed: int = 0,
        validation_fraction: float = 0.0,
        of: Literal["all", "development"] = "all",
        samples: int | None = None,
    ) -> list["Data"]:
        """Return one `Data` per fold: its test part is the fold, its preprocessing fitted on the fold's training rows.

        `of="development"` leaves the test part out, for choices that must not see it; a source with a test part of its
        own is always treated so. `samples` limits the training parts, and the validation parts in proportion.
        """
        if self.source is None or self.split is None or self.preprocessing is None:
            raise DataError("folds need samples in memory; these are datasets read batch by batch")
        source, (labels, _) = self.source, number_labels(self.source)
        rows = original_rows(source)
        if of == "development" or source.parts is not None:
            rows = numpy.setdiff1d(rows, self.split.test)
        projection = tuple((block.columns, block.components) for block in self.preprocessing.projection) or None
        made = []
        for split in fold_splits(source, labels, rows, count=count, seed=seed, validation_fraction=validation_fraction):
            chosen = split if samples is None else with_fewer_rows(split, labels, samples=samples, seed=seed)
            made.append(type(self)._of(fit_split(source, chosen, self.input_shape, projection)))
        return made


def _check_arrays(features: Features, labels: NDArray[Any], groups: NDArray[Any] | None) -> None:
    if not is_table(features):
        if features.ndim < 2:
            raise DataError(f"x must be (n_samples, n_features) or more; found shape {features.shape}")
        if features.dtype.kind not in "biuf":
            raise DataError(f"x must hold real numbers, or be a table; found type {features.dtype}")
    for name, values in {"y": labels, "groups": groups}.items():
        if values is not None and values.shape != (len(features),):
            raise DataError(f"{name} must hold one value for each of {len(features)} samples; found {values.shape}")


def make_part(source: Source, labels: NDArray[numpy.int64], rows: Rows, preprocessing: Preprocessing) -> Part:
    """Return some rows of a source as a network reads them, with their class numbers `labels` (n_samples,)."""
    groups = None if source.groups is None else source.groups[rows]
    return Part(preprocessing.of_rows(source.features, rows), torch.from_numpy(labels[rows]), groups)
