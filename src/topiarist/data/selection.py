"""A part of the classes, for transfer from some to others."""

from collections.abc import Sequence
from dataclasses import replace

import numpy
import pandas

from topiarist.data.copies import original_rows, renumbered
from topiarist.data.labels import look_up, number_labels
from topiarist.data.source import Source
from topiarist.errors import DataError


def of_classes(source: Source, names: Sequence[str]) -> Source:
    """Give the samples of some classes alone."""
    numbers, classes = number_labels(source)
    original_rows(source)  # a copy that has another class than its original is refused
    if len(set(names)) < 2:
        raise DataError(f"a task needs at least 2 classes; asked for {list(names)}")
    wanted = look_up(sorted(set(names)), classes, name=source.name)
    rows = numpy.flatnonzero(numpy.isin(numbers, wanted))
    features, labels = source.features, source.labels
    assert labels is not None
    return replace(
        source,
        features=features.iloc[rows] if isinstance(features, pandas.DataFrame) else features[rows],
        labels=labels[rows],
        classes=tuple(name for name in classes if name in names),
        groups=None if source.groups is None else source.groups[rows],
        parts=None if source.parts is None else source.parts[rows],
        originals=renumbered(source.originals, rows),
        finer=None if source.finer is None else source.finer[rows],
    )
