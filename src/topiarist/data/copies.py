"""Augmented copies of samples: where they may be, and that they are what they say.

Parts and folds are decided on the originals alone. A copy is trained on exactly where its original is, and is in no
other part.
"""

from dataclasses import replace
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.data.source import Rows, Source
from topiarist.data.split import Split, SplitRule, split_rows
from topiarist.errors import DataError


def original_rows(source: Source) -> Rows:
    """Give the rows that are no copies; refuse copies that cannot be told where they belong."""
    count, originals = len(source), source.originals
    if originals is None:
        return numpy.arange(count)
    check_numbers(source.name, originals, count)
    for what, values in {"label": source.labels, "group": source.groups, "finer class": source.finer}.items():
        if values is not None:
            check_alike(source.name, what, values, originals)
    return numpy.flatnonzero(originals == numpy.arange(count))


def check_numbers(name: str, originals: NDArray[Any], count: int) -> None:
    """Refuse anything but the number of an original for each row."""
    if originals.shape != (count,) or originals.dtype.kind not in "iu":
        raise DataError(
            f"{name}: original must hold one row number for each of {count} samples;"
            f" found {originals.shape} of type {originals.dtype}"
        )
    outside = numpy.flatnonzero((originals < 0) | (originals >= count))
    if len(outside):
        row = int(outside[0])
        raise DataError(f"{name}: rows are numbered 0 to {count - 1}; row {row} is a copy of {originals[row]}")
    chained = numpy.flatnonzero(originals[originals] != originals)
    if len(chained):
        row = int(chained[0])
        raise DataError(
            f"{name}: row {row} is a copy of row {originals[row]}, which is a copy itself: name the original"
        )


def check_alike(name: str, what: str, values: NDArray[Any], originals: NDArray[Any]) -> None:
    """Refuse a copy whose label or group is not that of its original."""
    differ = numpy.flatnonzero(values != values[originals])
    if len(differ):
        row = int(differ[0])
        first, second = values[row], values[originals[row]]
        raise DataError(
            f"{name}: a copy has the {what} of its original; found {first} in row {row}"
            f" and {second} in row {originals[row]}"
        )


def split_originals(source: Source, labels: NDArray[numpy.int64], rule: SplitRule) -> Split:
    """Give the rows of each part, no copies among them."""
    rows = original_rows(source)
    found = split_rows(
        labels[rows],
        groups=None if source.groups is None else source.groups[rows],
        parts=None if source.parts is None else source.parts[rows],
        rule=rule,
    )
    return Split(train=rows[found.train], validation=rows[found.validation], test=rows[found.test])


def with_copies(split: Split, originals: NDArray[Any] | None) -> Split:
    """Add to the training part all copies of the originals that are in it."""
    if originals is None:
        return split
    return replace(split, train=numpy.flatnonzero(numpy.isin(originals, split.train)))


def renumbered(originals: NDArray[Any] | None, rows: Rows) -> NDArray[Any] | None:
    """Give the numbers of originals among some rows, which hold the original of every copy in them."""
    return None if originals is None else numpy.searchsorted(rows, originals[rows])
