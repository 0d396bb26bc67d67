"""A part of the classes, or fewer samples to train on: for transfer, and for a quick look."""

from collections.abc import Sequence
from dataclasses import replace

import numpy
import pandas

from topiarist.data.dataset import Data
from topiarist.data.labels import look_up, number_labels
from topiarist.data.source import Source
from topiarist.data.split import hold_out
from topiarist.errors import DataError


def of_classes(source: Source, names: Sequence[str]) -> Source:
    """Give the samples of some classes alone."""
    numbers, classes = number_labels(source)
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
    )


def with_fewer_samples(data: Data, count: int, *, seed: int) -> Data:
    """Train on `count` samples only, stratified; the other parts stay as they are."""
    if data.source is None or data.split is None:
        raise DataError("fewer samples can be chosen in memory only; these are datasets read batch by batch")
    rows = data.split.train
    if count >= len(rows):
        return data
    labels = number_labels(data.source)[0][rows]
    if count < len(numpy.unique(labels)):
        raise DataError(f"{count} training samples cannot show {len(numpy.unique(labels))} classes")
    chosen = rows[hold_out(labels, None, fraction=count / len(rows), seed=seed, name="fewer samples")]
    return data.of_split(
        data.source, replace(data.split, train=chosen), input_shape=data.input_shape, notes=data.notes, rule=data.rule
    )
