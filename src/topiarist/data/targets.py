"""Targets: from the values found in a file to what a network learns, and to the task."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.data.columns.effects import EffectTargets
from topiarist.data.finding import are_binary, is_whole, kind_of_values, may_be_measures
from topiarist.data.labels import number_labels, plain_values, small_class_notes
from topiarist.data.source import Rows, Source, is_table
from topiarist.data.split import Split
from topiarist.errors import DataError
from topiarist.tasks import Classification, MultiLabel, Regression, Task, TaskKind
from topiarist.tasks.regression import fit_regression

STRATUM, MOST_STRATA = 20, 10  # samples, so that each tenth of the range is in every part and fold


@dataclass(frozen=True, kw_only=True)
class Targets:
    """Targets of all samples: class numbers (n_samples,), or numbers (n_samples, n_names), and what they are called.

    `note` says how whole numbers and several columns were read, where nobody decided it.
    """

    kind: TaskKind
    names: tuple[str, ...]
    values: NDArray[Any]
    note: str = ""

    @cached_property
    def strata(self) -> NDArray[numpy.int64]:
        """A number per sample: every part and fold gets as much of each as of all.

        Classes themselves; tenths of the range of numbers; of labels, the rarest that a sample has.
        """
        if self.kind == "classes":
            found: NDArray[numpy.int64] = self.values
            return found
        if self.kind == "labels":
            there = self.values > 0
            rarest = there.sum(axis=0).argsort(kind="stable")
            return numpy.where(there.any(axis=1), there[:, rarest].argmax(axis=1), len(rarest)).astype(numpy.int64)
        spread = self.values.std(axis=0)
        middle = ((self.values - self.values.mean(axis=0)) / numpy.where(spread > 0, spread, 1)).mean(axis=1)
        count = min(MOST_STRATA, max(1, len(middle) // STRATUM))
        ranks = middle.argsort(kind="stable").argsort(kind="stable")
        tenths: NDArray[numpy.int64] = (ranks * count // max(len(middle), 1)).astype(numpy.int64)
        return tenths

    @property
    def in_every_fold(self) -> bool:
        """Whether each fold must have some of every stratum: of classes it must, of tenths and labels it need not."""
        return self.kind == "classes"

    @property
    def most_folds(self) -> int:
        """How many folds there can be: as many as the rarest class has samples, or as there are samples."""
        if not self.in_every_fold:
            return len(self.values)
        return int(numpy.unique(self.values, return_counts=True)[1].min())

    def take(self, rows: Rows) -> "Targets":
        """Return the targets of some rows."""
        return replace(self, values=self.values[rows])

    def task(self, rows: Rows, *, name: str, scaled: bool) -> Task:
        """Return the task; numbers are standardised by the training rows where they are `scaled`."""
        if self.kind == "classes":
            return Classification(self.names)
        if self.kind == "labels":
            return MultiLabel(self.names)
        return fit_regression(self.names, self.values[rows], scaled=scaled, name=name)

    def as_learned(self, task: Task) -> NDArray[Any]:
        """Return all targets as a network for the task learns them."""
        if isinstance(task, Regression):
            return task.standardised(self.values)
        return self.values if self.kind == "classes" else self.values.astype(numpy.float32)

    def notes(self, split: Split) -> tuple[str, ...]:
        """Return what is to be said of the targets of each part."""
        said = (self.note,) if self.note else ()
        if self.kind == "classes":
            return (*said, *small_class_notes(self.values, self.names, split))
        if self.kind == "numbers":
            return said
        share = self.values[split.train].mean(axis=0)
        never = [name for name, part in zip(self.names, share, strict=True) if part in (0, 1)]
        return (*said, f"labels that all or no training samples have: {', '.join(never)}") if never else said


def effect_targets(source: Source, targets: Targets) -> EffectTargets:
    """Return what the effects of texts are measured on: of two classes the second, of more each, and numbers.

    Rows of a group, and copies of a row, are kept together.
    """
    numbers = targets.values
    if targets.kind == "classes":
        shown = numpy.arange(len(targets.names)) if len(targets.names) > 2 else numpy.array([1])
        numbers = targets.values[:, None] == shown
    together = source.originals if source.groups is None else source.groups  # a copy has the target of its original
    return EffectTargets(numbers=numbers.astype(float), weights=source.weights, groups=together)


def learned_targets(task: Task, y: NDArray[Any]) -> Targets:
    """Return targets as a network learns them: class numbers, or numbers or labels (n_samples, n_outputs)."""
    return Targets(kind=task.kind, names=task.names, values=y)


def targets_of(source: Source) -> Targets:
    """Return the targets of a source as its task says or, where it says nothing, as its values suggest.

    Raises
    ------
    DataError
        Where there are no targets, or not such as the task needs.
    """
    if source.labels is None or not len(source.labels):
        number_labels(source)  # raises, with what is missing
    assert source.labels is not None
    kind, note = source.task, ""
    if kind is None:
        kind, note = _found(source)
    if kind == "classes":
        numbers, classes = number_labels(_one_column(source))
        return Targets(kind=kind, names=classes, values=numbers, note=note)
    values = _numbers(source, source.labels)
    names = source.targets if len(source.targets) == values.shape[1] else _names(values.shape[1])
    if kind == "labels":
        _check_labels(source.name, values)
    return Targets(kind=kind, names=names, values=values, note=note)


def _found(source: Source) -> tuple[TaskKind, str]:
    labels = source.labels
    assert labels is not None
    if source.classes is not None:
        return "classes", ""
    if labels.ndim == 2 and labels.shape[1] > 1:
        names = ", ".join((source.targets or _names(labels.shape[1]))[:5])
        if are_binary(_plain(source.name, labels)):
            return "labels", f"{names}: read as labels, 0 or 1 each; the task numbers reads them as numbers"
        return "numbers", f"{names}: read as numbers to predict"
    values = plain_values(source.name, labels.reshape(-1))
    kind, why = kind_of_values(values, images=_are_images(source))
    name = source.targets[0] if source.targets else "the target"
    if kind == "classes":
        doubtful = is_table(source.features) and may_be_measures(values)
        return kind, f"{name} is read as classes: {why}; the task numbers reads it as a number" if doubtful else ""
    if not is_whole(values):
        return kind, ""
    return kind, f"{name} is read as a number: {why}; the task classes reads it as classes"


def _are_images(source: Source) -> bool:
    """Return whether samples are images or the like: arrays of bytes, or of more than one axis."""
    features = source.features
    return not is_table(features) and (features.ndim > 2 or features.dtype == numpy.uint8)


def _one_column(source: Source) -> Source:
    assert source.labels is not None
    if source.labels.ndim == 1:
        return source
    if source.labels.shape[1] > 1:
        raise DataError(
            f"{source.name}: classes are one column; found {source.labels.shape[1]}: choose the task labels or numbers"
        )
    return replace(source, labels=source.labels[:, 0])


def _names(count: int) -> tuple[str, ...]:
    return ("y",) if count == 1 else tuple(f"y{number}" for number in range(count))


def _plain(name: str, labels: NDArray[Any]) -> NDArray[Any]:
    return plain_values(name, labels.reshape(-1)).reshape(labels.shape)


def _numbers(source: Source, labels: NDArray[Any]) -> NDArray[numpy.float64]:
    """Return targets (n_samples, n_names) as numbers; refuse text and what is not finite."""
    columns = labels.reshape(len(labels), -1)
    try:
        found = columns.astype(numpy.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{source.name}: the target is text and no number ({error}): choose the task classes"
        ) from error
    wrong = ~numpy.isfinite(found)
    if wrong.any():
        what = "infinite" if numpy.isinf(found).any() else "missing"
        raise DataError(
            f"{source.name}: {int(wrong.sum())} of {found.size} targets are {what}: every one must be finite"
        )
    return found


def _check_labels(name: str, values: NDArray[numpy.float64]) -> None:
    wrong = values[(values != 0) & (values != 1)]
    if len(wrong):
        raise DataError(f"{name}: labels must be 0 or 1, there or not; found {wrong[0]:g}")


def check_weights(name: str, weights: NDArray[Any], count: int) -> NDArray[numpy.float64]:
    """Return how much each sample counts; refuse what is negative, missing or infinite, and all zeros."""
    try:
        found = numpy.asarray(weights).astype(numpy.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: weights must be numbers ({error})") from error
    if found.shape != (count,):
        raise DataError(f"{name}: there must be one weight for each of {count} samples; found {found.shape}")
    if not numpy.isfinite(found).all():
        raise DataError(f"{name}: {int((~numpy.isfinite(found)).sum())} weights are missing or infinite")
    if found.min(initial=0.0) < 0 or not found.any():
        raise DataError(
            f"{name}: weights must be at least 0, and one of them above 0; found {found.min(initial=0.0):g}"
        )
    return found
