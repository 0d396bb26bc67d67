"""`Data`: train, validation and test parts with input shape, task and, where known, groups and sample weights."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

import numpy
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.utils.data import Dataset, Subset

from topiarist.data.columns.deciding import read_source_columns
from topiarist.data.columns.effect_inputs import EffectInputs
from topiarist.data.preparation import PreparationOptions, PreparedSource, fit_split, prepare
from topiarist.data.preprocessing import Preprocessing
from topiarist.data.samples import Samples, prepared, some_of
from topiarist.data.source import Features, Rows, Scaling, Source, is_table
from topiarist.data.split import Split, SplitRule, fold_splits, original_rows, with_fewer_rows
from topiarist.data.targets import Targets, check_weights, effect_targets, targets_of
from topiarist.errors import DataError
from topiarist.tasks import Classification, Task, TaskKind

if TYPE_CHECKING:
    import pandas

    from topiarist.statistics.metrics import Metric


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
    """Samples (n_samples, *input_shape) and targets y as the task learns them, both found by the number of a row.

    Targets are class numbers (n_samples,), or numbers or labels (n_samples, n_outputs). `weights` (n_samples,) say how
    much each sample counts, where they do not count the same. Many samples are prepared when they are asked for:
    slices and rows of `samples` are tensors; `x` is all of them in memory. `effects` are the inputs of a training part
    that were made of targets: where it is divided again, they are made anew.
    """

    samples: Samples
    y: Tensor
    groups: NDArray[Any] | None = None
    weights: Tensor | None = None
    effects: EffectInputs | None = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def x(self) -> Tensor:
        """All samples as one tensor; where they are many, it is made anew at each call, and takes its memory."""
        return self.samples if isinstance(self.samples, Tensor) else self.samples[:]

    def take(self, rows: Tensor) -> "Part":
        """Return the samples of some rows."""
        groups = None if self.groups is None else self.groups[rows.numpy()]
        effects = None if self.effects is None else self.effects.take(rows.numpy())
        weights = None if self.weights is None else self.weights[rows]
        return Part(some_of(self.samples, rows), self.y[rows], groups, weights, effects)

    def divided(self, learned: Tensor, judged: Tensor) -> "tuple[Part, Part]":
        """Return some rows to learn from and others to judge by, with inputs that know the targets of the former alone.

        Effects of texts are measured anew on the rows to learn from; all else is as it was in this part.
        """
        first, second = self.take(learned), self.take(judged)
        if self.effects is None:
            return first, second
        x, held = first.x.clone(), second.x.clone()
        for inputs, of_learned, of_judged in self.effects.divided(learned.numpy(), judged.numpy()):
            x[:, inputs], held[:, inputs] = torch.from_numpy(of_learned).float(), torch.from_numpy(of_judged).float()
        return replace(first, samples=x), replace(second, samples=held, effects=None)

    def draw(self, most: int | None, generator: torch.Generator) -> "Part":
        """Return at most `most` samples, drawn by `draw_rows`; this part itself where it has no more."""
        return self if most is None or len(self) <= most else self.take(draw_rows(len(self), most, generator))


@dataclass(frozen=True)
class Stream:
    """Samples of a `torch.utils.data.Dataset` of (x, target) pairs, read batch by batch."""

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
    """Samples to learn a task from: three parts that never mix, and what is known of them.

    Made by `load_data`, `Data.from_arrays` or `Data.from_datasets`. `notes` record what was decided on the way.
    """

    name: str
    task: Task
    input_shape: tuple[int, ...]
    train: AnyPart
    validation: AnyPart
    test: AnyPart
    preprocessing: Preprocessing | None = None
    notes: tuple[str, ...] = ()
    source: Source | None = None
    split: Split | None = None
    rule: SplitRule | None = None

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes; raise DataError where what is predicted has none."""
        if not isinstance(self.task, Classification):
            raise DataError(f"{self.name} has no classes: what is predicted is {self.task}")
        return self.task.classes

    def with_metric(self, metric: "str | Metric | None") -> Self:
        """Return data whose task decides by another metric, by name or one's own; None changes nothing."""
        return self if metric is None else replace(self, task=self.task.with_metric(metric))

    @classmethod
    def from_arrays(
        cls,
        x: "ArrayLike | pandas.DataFrame",
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        originals: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        task: TaskKind | None = None,
        targets: Sequence[str] | None = None,
        name: str = "arrays",
        scaling: Scaling | Literal["auto"] = "none",
        **options: Unpack[PreparationOptions],
    ) -> Self:
        """Split samples in memory.

        Parameters
        ----------
        x
            Numbers (n_samples, …) or a table. Columns of numbers and dates are kept as they are, and a table of numbers
            alone has an input per column; what columns of text hold is decided as in a file. Of an array that would
            take more than 256 MB as float32, samples are prepared batch by batch: it must not change meanwhile.
        y
            Targets (n_samples,), or several (n_samples, n_targets).
        groups
            A group per sample; no group is shared between parts.
        originals
            For each sample, the row of which it is an augmented copy: its own row where it is none.
        sample_weight
            How much each sample counts in losses and metrics.
        task
            "classes", "numbers" or "labels", in place of what the targets suggest.
        targets
            What the columns of y are called.
        name
            What messages call the data.
        scaling
            "none" leaves the numbers, also those to predict, exactly as they are, as a trained network needs them;
            "auto" scales as `load_data` does: "pixels" for bytes, "zscore" for all else, and targets standardised.
        options
            As in `Data.from_source`.

        Examples
        --------
        >>> data = Data.from_arrays([[0.0], [1.0], [2.0], [3.0]] * 10, ["low", "low", "high", "high"] * 10)
        >>> data.classes, len(data.train), len(data.validation), len(data.test)
        (('high', 'low'), 26, 6, 8)
        >>> str(Data.from_arrays([[0.0], [1.0], [2.0], [3.0]] * 10, [0.1, 0.9, 2.2, 2.8] * 10).task)
        'a number: y'
        """
        features = x if is_table(x) else numpy.asarray(x)
        labels, known = numpy.asarray(y), None if groups is None else numpy.asarray(groups)
        _check_arrays(features, labels, known)
        weights = None if sample_weight is None else check_weights(name, numpy.asarray(sample_weight), len(labels))
        if scaling == "auto":
            pixels = not is_table(features) and features.dtype == numpy.uint8
            scaling = "pixels" if pixels else "zscore"
        copied = None if originals is None else numpy.asarray(originals)
        source = Source(
            name=name,
            features=features,
            labels=labels,
            groups=known,
            originals=copied,
            scaling=scaling,
            targets=target_names(y, targets),
            task=task,
            weights=weights,
            raw_targets=scaling == "none",
        )
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
        classes: tuple[str, ...] | None = None,
        task: Task | None = None,
        name: str = "datasets",
        workers: int = 0,
    ) -> Self:
        """Take map-style datasets of (x, target) pairs as they are: class numbers, or what another `task` learns.

        Samples are read batch by batch, by so many `workers`, and need not fit in memory.
        """
        if not all(hasattr(part, "__len__") for part in (train, validation, test)):
            raise DataError("datasets must have a length: iterable datasets are not supported")
        if (classes is None) == (task is None):
            raise DataError("datasets need either the names of the classes or a task")
        return cls(
            name=name,
            task=Classification(tuple(classes or ())) if task is None else task,
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
        return cls.of_parts(
            found.source,
            found.split,
            found.preprocessing,
            notes=found.notes,
            rule=found.rule,
            task=found.task,
            targets=found.targets,
        )

    @classmethod
    def of_parts(
        cls,
        source: Source,
        split: Split,
        preprocessing: Preprocessing,
        *,
        notes: tuple[str, ...] = (),
        rule: SplitRule | None = None,
        task: Task | None = None,
        targets: Targets | None = None,
    ) -> Self:
        """Return the parts of a split as preprocessing, and a task, that are already fitted make them."""
        found = targets_of(source) if targets is None else targets
        fitted = found.task(split.train, name=source.name, scaled=not source.raw_targets) if task is None else task
        learned = found.as_learned(fitted)
        count = len(split.train) + len(split.validation) + len(split.test)
        make = partial(make_part, source, learned, preprocessing=preprocessing, of_all=count)
        return cls(
            name=source.name,
            task=fitted,
            input_shape=preprocessing.input_shape,
            train=with_crossed_effects(make(split.train), source, split.train, preprocessing, found),
            validation=make(split.validation),
            test=make(split.test),
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
        source, targets = self.source, targets_of(self.source)
        classes = targets.in_every_fold
        rows = original_rows(source)
        if of == "development" or source.parts is not None:
            rows = numpy.setdiff1d(rows, self.split.test)
        projection = tuple((block.columns, block.components) for block in self.preprocessing.projection) or None
        made = []
        splits = fold_splits(
            source,
            targets.strata,
            rows,
            count=count,
            seed=seed,
            validation_fraction=validation_fraction,
            classes=classes,
        )
        for split in splits:
            chosen = split
            if samples is not None:
                chosen = with_fewer_rows(split, targets.strata, samples=samples, seed=seed, classes=classes)
            fold = type(self)._of(fit_split(source, targets, chosen, self.input_shape, projection))
            made.append(replace(fold, task=fold.task.asked_like(self.task)))
        return made


def _check_arrays(features: Features, labels: NDArray[Any], groups: NDArray[Any] | None) -> None:
    if not is_table(features):
        if features.ndim < 2:
            raise DataError(f"x must be (n_samples, n_features) or more; found shape {features.shape}")
        if features.dtype.kind not in "biuf":
            raise DataError(f"x must hold real numbers, or be a table; found type {features.dtype}")
    several = labels.ndim == 2 and labels.shape[1] > 0
    for name, values in {"y": labels[:, 0] if several else labels, "groups": groups}.items():
        if values is not None and values.shape != (len(features),):
            found = labels.shape if name == "y" else values.shape
            raise DataError(f"{name} must hold one value for each of {len(features)} samples; found {found}")


def target_names(y: object, given: Sequence[str] | None) -> tuple[str, ...]:
    """Return what targets are called: as given, or as a column or table of pandas is; nothing where nobody says."""
    if given is not None:
        return tuple(given)
    if is_table(y):
        return tuple(str(column) for column in y.columns)
    name = getattr(y, "name", None)
    return () if name is None else (str(name),)


def with_crossed_effects(
    part: Part, source: Source, rows: Rows, preprocessing: Preprocessing, targets: Targets
) -> Part:
    """Return the training part with effects of texts that do not know the targets of their own rows."""
    if not any(column.encoding == "effect" for column in preprocessing.columns):
        return part
    known = preprocessing.effect_inputs(source.features, rows, effect_targets(source, targets))
    return part if known is None else replace(part, samples=preprocessing.crossed(part.x, known), effects=known)


def make_part(
    source: Source, learned: NDArray[Any], rows: Rows, preprocessing: Preprocessing, *, of_all: int | None = None
) -> Part:
    """Return some rows of a source as a network reads them, with what it learns of all samples (n_samples, …).

    `of_all` is how many rows all parts together have, where there are others; many are prepared batch by batch.
    """
    groups = None if source.groups is None else source.groups[rows]
    weights = None if source.weights is None else torch.from_numpy(source.weights[rows].astype(numpy.float32))
    samples = prepared(source.features, rows, preprocessing, of_all=len(rows) if of_all is None else of_all)
    return Part(samples, torch.from_numpy(learned[rows]), groups, weights)
