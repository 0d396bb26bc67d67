"""Labels: from the values found in a file to class numbers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.data.source import Source, take_rows
from topiarist.data.split import Split, original_rows
from topiarist.errors import DataError

_INTEGERS_END = 2.0**63  # whole floats below it fit an int64

_MANY_VALUES = 20  # texts that are all different: of fewer samples, each may be a class by chance


def number_labels(source: Source) -> tuple[NDArray[numpy.int64], tuple[str, ...]]:
    """Return the class number of each sample (n_samples,), and the names of the classes in that order.

    Classes that the source names keep their order; else numbers and texts are sorted.

    Raises
    ------
    DataError
        Where there are no labels, fewer than two classes, missing labels, labels of no known class, or fractions, which
        are numbers to predict unless the source says that they are classes.
    """
    if source.labels is None:
        raise DataError(f"{source.name} has no labels to learn from: name the label column with --target")
    if not len(source.labels):
        raise DataError(f"{source.name} has no samples")
    found = plain_values(source.name, source.labels)
    if found.dtype.kind == "f" and source.task != "classes":
        raise DataError(f"{source.name}: the labels are not whole numbers: they are numbers to predict, not classes")
    values, numbers = numpy.unique(found, return_inverse=True)
    names = tuple(str(value) for value in values.tolist())
    if source.classes is not None:
        return look_up(names, source.classes, name=source.name)[numbers], source.classes
    if len(names) < 2:
        raise DataError(f"{source.name} has one class only ('{names[0]}'): there is nothing to tell apart")
    return numbers.astype(numpy.int64), names


def look_up(names: Sequence[str], classes: tuple[str, ...], *, name: str) -> NDArray[numpy.int64]:
    """Return the numbers of labels among the classes; raise where one is not among them."""
    unknown = sorted(set(names) - set(classes))
    if unknown:
        raise DataError(f"{name} has labels that are not among the classes {list(classes)[:12]}: {unknown[:12]}")
    return numpy.array([classes.index(label) for label in names], dtype=numpy.int64)


def as_labels(name: str, values: NDArray[Any], *, training: bool) -> NDArray[Any]:
    """Return numbers, truth values or text (n_samples, …); for training, refuse a single value."""
    labels = plain_values(name, values.reshape(-1)).reshape(values.shape)
    if training and len(numpy.unique(labels)) < 2:
        found = f"only the class {labels.flat[0]}" if labels.size else "no labels"
        raise DataError(f"{name}: at least two classes are needed, found {found}")
    if training and labels.dtype.kind in "UO" and len(numpy.unique(labels)) == labels.size > _MANY_VALUES:
        raise DataError(f"{name}: each of {labels.size} samples is of a class of its own; choose another target")
    return labels


def _count_missing(values: NDArray[Any]) -> int:
    if values.dtype.kind == "f":
        return int((~numpy.isfinite(values)).sum())
    if values.dtype.kind in "biuU":
        return 0
    import pandas  # noqa: PLC0415  # only labels of other kinds need it

    return int(pandas.isna(values).sum())


def plain_values(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return text, truth values, integers or, where fractions occur, floats; refuse missing values."""
    if values.dtype.kind not in "fOiubU":
        raise DataError(f"{name}: labels of type {values.dtype} are not understood; use numbers or text")
    missing = _count_missing(values)
    if missing:
        raise DataError(
            f"{name}: {missing} of {len(values)} labels are missing or infinite: every sample needs a label"
        )
    if values.dtype.kind == "f":
        whole = ((values == numpy.floor(values)) & (numpy.abs(values) < _INTEGERS_END)).all()
        return values.astype(numpy.int64) if whole else values
    if values.dtype.kind == "O":
        return numpy.asarray([value if isinstance(value, bool) else str(value) for value in values])
    return values


def small_class_notes(labels: NDArray[numpy.int64], classes: tuple[str, ...], split: Split) -> tuple[str, ...]:
    """Note which classes are too small to be in every part; raise where training shows no sample of a class."""
    rows = {"train": split.train, "validation": split.validation, "test": split.test}
    present = {part: set(labels[chosen].tolist()) for part, chosen in rows.items()}
    unseen = sorted((present["validation"] | present["test"]) - present["train"])
    if unseen:
        raise DataError(f"classes without a training sample: {[classes[number] for number in unseen]}")
    notes = []
    for number in sorted(present["train"]):
        absent = [part for part in ("validation", "test") if len(rows[part]) and number not in present[part]]
        if absent:
            count = sum(int((labels[chosen] == number).sum()) for chosen in rows.values())
            plural = "" if count == 1 else "s"
            notes.append(f"class '{classes[number]}' has {count} sample{plural}: none in {' and '.join(absent)}")
    return tuple(notes)


def of_classes(source: Source, names: Sequence[str]) -> Source:
    """Return the samples of some classes alone, for transfer from some classes to others."""
    numbers, classes = number_labels(source)
    original_rows(source)  # raises where a copy has another class than its original
    if len(set(names)) < 2:
        raise DataError(f"a task needs at least 2 classes; asked for {list(names)}")
    wanted = look_up(sorted(set(names)), classes, name=source.name)
    rows = numpy.flatnonzero(numpy.isin(numbers, wanted))

    def some(values: NDArray[Any] | None) -> NDArray[Any] | None:
        return None if values is None else values[rows]

    originals = source.originals
    return replace(
        source,
        features=take_rows(source.features, rows),
        classes=tuple(name for name in classes if name in names),
        originals=None if originals is None else numpy.searchsorted(rows, originals[rows]),
        labels=some(source.labels),
        groups=some(source.groups),
        parts=some(source.parts),
        finer=some(source.finer),
        weights=some(source.weights),
    )
