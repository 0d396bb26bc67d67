"""From labels as found to class numbers."""

from collections.abc import Sequence
from typing import Any

import numpy
import pandas
from numpy.typing import NDArray

from topiarist.data.source import Source
from topiarist.data.split import Split
from topiarist.errors import DataError


def number_labels(source: Source) -> tuple[NDArray[numpy.int64], tuple[str, ...]]:
    """Give each sample its class number, and the names of the classes in that order."""
    if source.labels is None:
        raise DataError(f"{source.name} has no labels to learn from: name the label column with --target")
    if not len(source.labels):
        raise DataError(f"{source.name} has no samples")
    values, numbers = numpy.unique(comparable(source.labels), return_inverse=True)
    names = tuple(str(value) for value in values.tolist())
    if source.classes is not None:
        return look_up(names, source.classes, name=source.name)[numbers], source.classes
    if len(names) < 2:
        raise DataError(f"{source.name} has one class only ('{names[0]}'): there is nothing to tell apart")
    return numbers.astype(numpy.int64), names


def look_up(names: Sequence[str], classes: tuple[str, ...], *, name: str) -> NDArray[numpy.int64]:
    """Give the numbers of labels among known classes; one that is not known is an error that shows it."""
    unknown = sorted(set(names) - set(classes))
    if unknown:
        raise DataError(f"{name} has labels that are not among the classes {list(classes)[:12]}: {unknown[:12]}")
    return numpy.array([classes.index(label) for label in names], dtype=numpy.int64)


def comparable(labels: NDArray[Any]) -> NDArray[Any]:
    """Give labels that sort, numbers as numbers and all else as text; what is missing or has a fraction is an error."""
    if pandas.isna(labels).any():
        missing = int(pandas.isna(labels).sum())
        raise DataError(f"{missing} of {len(labels)} labels are missing: give every sample a label")
    if numpy.issubdtype(labels.dtype, numpy.floating):
        if not (numpy.isfinite(labels) & (labels == labels.round())).all():
            raise DataError("the labels are not whole numbers: only classification is supported, not regression")
        return labels.astype(numpy.int64)
    return labels if numpy.issubdtype(labels.dtype, numpy.number) else labels.astype(str)


def small_class_notes(labels: NDArray[numpy.int64], classes: tuple[str, ...], split: Split) -> tuple[str, ...]:
    """Say which classes are too small to be in every part; a class that training never sees is an error."""
    rows = {"train": split.train, "validation": split.validation, "test": split.test}
    present = {part: set(labels[chosen].tolist()) for part, chosen in rows.items()}
    unseen = sorted((present["validation"] | present["test"]) - present["train"])
    if unseen:
        raise DataError(f"classes that no training sample shows: {[classes[number] for number in unseen]}")
    notes = []
    for number in sorted(present["train"]):
        absent = [part for part in ("validation", "test") if len(rows[part]) and number not in present[part]]
        if absent:
            count = sum(int((labels[chosen] == number).sum()) for chosen in rows.values())
            plural = "" if count == 1 else "s"
            notes.append(f"class '{classes[number]}' has {count} sample{plural}: none in {' and '.join(absent)}")
    return tuple(notes)
