"""`Data`: train, validation and test parts with input shape, classes and, where known, groups."""

import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy
import pandas
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.utils.data import Dataset

from topiarist.data.columns import wide_text_notes
from topiarist.data.copies import original_rows, split_originals, with_copies
from topiarist.data.labels import number_labels, small_class_notes
from topiarist.data.preprocessing import Preprocessing, fit_preprocessing
from topiarist.data.projection import Sizes
from topiarist.data.source import Features, Rows, Scaling, Source
from topiarist.data.split import Split, SplitRule, fold_tests, hold_out, with_fewer_rows
from topiarist.errors import DataError, TopiaristWarning

DEFAULT = SplitRule()


@dataclass(frozen=True)
class Part:
    """Samples in memory: x (n_samples, *input_shape) and y (n_samples,) of class numbers."""

    x: Tensor
    y: Tensor
    groups: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class Stream:
    """Samples of a `torch.utils.data.Dataset` that gives (x, class number) pairs, read batch by batch."""

    dataset: Dataset[Any]
    workers: int = 0

    def __len__(self) -> int:
        return len(self.dataset)  # type: ignore[arg-type]  # a sized dataset, checked where Data is made


AnyPart = Part | Stream


@dataclass(frozen=True, kw_only=True)
class Data:
    """A classification task: three parts that never mix, and what is known of them.

    Made by `load_data`, `Data.from_arrays` or `Data.from_datasets`. `notes` say what was decided on the way.
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
        x: ArrayLike | pandas.DataFrame,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        originals: ArrayLike | None = None,
        name: str = "arrays",
        scaling: Scaling = "zscore",
        **options: Any,
    ) -> Self:
        """Split samples in memory: `x` (n_samples, …) of numbers or a table, `y` (n_samples,) of labels.

        `originals` (n_samples,) says of which sample each is an augmented copy: of itself where it is none.
        """
        features = x if isinstance(x, pandas.DataFrame) else numpy.asarray(x)
        labels, known = numpy.asarray(y), None if groups is None else numpy.asarray(groups)
        copied = None if originals is None else numpy.asarray(originals)
        check_arrays(features, labels, known)
        return cls.from_source(
            Source(name=name, features=features, labels=labels, groups=known, originals=copied, scaling=scaling),
            **options,
        )

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
        """Take map-style datasets as they are: samples are read batch by batch and need not fit in memory."""
        if not all(hasattr(part, "__len__") for part in (train, validation, test)):
            raise DataError("datasets must have a length: iterable datasets are not supported")
        shape = tuple(torch.as_tensor(train[0][0]).shape)
        return cls(
            name=name,
            classes=tuple(classes),
            input_shape=shape,
            train=Stream(train, workers),
            validation=Stream(validation, workers),
            test=Stream(test, workers),
        )

    @classmethod
    def from_source(
        cls,
        source: Source,
        *,
        seed: int = 0,
        test_fraction: float = DEFAULT.test_fraction,
        validation_fraction: float = DEFAULT.validation_fraction,
        scaling: Scaling | None = None,
        input_shape: tuple[int, ...] | None = None,
        samples: int | None = None,
        projection: Sizes | None = None,
    ) -> Self:
        """Split what a loader found; a split that comes with the source is respected.

        `samples` limits the training part, and the validation part in proportion; copies are not counted. `projection`
        takes principal components of blocks of columns: ((4096, 5), (5456, 5)) makes 10 inputs of 9552 columns.
        """
        labels, classes = number_labels(source)
        rule = SplitRule(seed=seed, test_fraction=test_fraction, validation_fraction=validation_fraction)
        chosen = split_originals(source, labels, rule)
        notes = (*source.notes, *wide_text_notes(source.features), *small_class_notes(labels, classes, chosen))
        for note in notes:
            warnings.warn(note, TopiaristWarning, stacklevel=2)
        if samples is not None:
            chosen = with_fewer_rows(chosen, labels, samples=samples, seed=seed)
        settled = source if scaling is None else replace(source, scaling=scaling)
        return cls._of_split(settled, chosen, input_shape=input_shape, projection=projection, notes=notes, rule=rule)

    @classmethod
    def _of_split(
        cls,
        source: Source,
        of_originals: Split,
        *,
        input_shape: tuple[int, ...] | None,
        projection: Sizes | None,
        notes: tuple[str, ...] = (),
        rule: SplitRule | None = None,
    ) -> Self:
        split = with_copies(of_originals, source.originals)
        preprocessing = fit_preprocessing(
            source.features, split.train, scaling=source.scaling, input_shape=input_shape, projection=projection
        )
        return cls.of_parts(source, split, preprocessing, notes=notes, rule=rule)

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
        """Give the parts of a split, seen through preprocessing that is known."""
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
        """Give one `Data` per fold, its `test` part the fold, its preprocessing fitted on the fold's training rows.

        `of="development"` leaves the test part out, for choices that must not see it. A source with a test part of its
        own is always treated so. `samples` limits the training parts, and the validation parts in proportion.
        """
        if self.source is None or self.split is None:
            raise DataError("folds need samples in memory; these are datasets read batch by batch")
        source, (labels, _) = self.source, number_labels(self.source)
        rows = original_rows(source)
        if of == "development" or source.parts is not None:
            rows = numpy.setdiff1d(rows, self.split.test)
        groups = None if source.groups is None else source.groups[rows]
        made = []
        for number, test in enumerate(fold_tests(labels[rows], groups, folds=count, seed=seed)):
            rest = numpy.delete(numpy.arange(len(rows)), test)
            held = hold_out(
                labels[rows[rest]],
                None if groups is None else groups[rest],
                fraction=validation_fraction,
                seed=seed,
                name=f"validation of fold {number}",
            )
            split = Split(train=rows[rest[~held]], validation=rows[rest[held]], test=rows[test])
            if samples is not None:
                split = with_fewer_rows(split, labels, samples=samples, seed=seed)
            made.append(type(self)._of_split(source, split, input_shape=self.input_shape, projection=self.projection))
        return made

    @property
    def projection(self) -> Sizes | None:
        """How many columns and components each block of the projection has; None where nothing is projected."""
        blocks = () if self.preprocessing is None else self.preprocessing.projection
        return tuple((block.columns, block.components) for block in blocks) or None


def check_arrays(features: Features, labels: NDArray[Any], groups: NDArray[Any] | None) -> None:
    """Refuse arrays that are not samples of numbers with one label, and perhaps one group, each."""
    if not isinstance(features, pandas.DataFrame):
        if features.ndim < 2:
            raise DataError(f"x must be (n_samples, n_features) or more; found shape {features.shape}")
        if features.dtype.kind not in "biuf":
            raise DataError(f"x must hold real numbers, or be a table; found type {features.dtype}")
    for name, values in {"y": labels, "groups": groups}.items():
        if values is not None and values.shape != (len(features),):
            raise DataError(f"{name} must hold one value for each of {len(features)} samples; found {values.shape}")


def split_source(source: Source, labels: NDArray[numpy.int64], rule: SplitRule) -> Split:
    """Give the rows of each part, copies in training alone; the same source and rule give the same rows."""
    return with_copies(split_originals(source, labels, rule), source.originals)


def make_part(source: Source, labels: NDArray[numpy.int64], rows: Rows, preprocessing: Preprocessing) -> Part:
    """Turn some rows of a source into what a network reads."""
    features = source.features
    chosen = features.iloc[rows] if isinstance(features, pandas.DataFrame) else features[rows]
    groups = None if source.groups is None else source.groups[rows]
    return Part(preprocessing(chosen), torch.from_numpy(labels[rows]), groups)
