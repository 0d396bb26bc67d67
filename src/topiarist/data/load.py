"""`load_data`: from a name or a path to a `Data`."""

from dataclasses import replace
from pathlib import Path

import numpy

from topiarist.data.catalogue import CATALOGUE
from topiarist.data.dataset import DEFAULT, Data
from topiarist.data.download import fetch
from topiarist.data.projection import Sizes
from topiarist.data.read import read_source
from topiarist.data.source import Scaling, Source


def load_data(
    location: str | Path,
    *,
    target: str | None = None,
    group: str | None = None,
    scaling: Scaling | None = None,
    input_shape: tuple[int, ...] | None = None,
    projection: Sizes | None = None,
    test_fraction: float = DEFAULT.test_fraction,
    validation_fraction: float = DEFAULT.validation_fraction,
    samples: int | None = None,
    seed: int = 0,
) -> Data:
    """Read and split data: a bundled name (`digits`), a downloadable one (`fashion-mnist`), or a file or folder.

    `target` names the label column of a table, `group` the column whose values must not be shared between parts.
    `scaling` and `input_shape` replace what suits the data by itself: `load_data("digits", input_shape=(1, 8, 8))`.
    `projection` takes principal components of blocks of columns: `((4096, 5), (5456, 5))` makes 10 inputs of 9552.
    `samples` limits the training part, and the validation part in proportion.
    """
    return Data.from_source(
        find_source(location, target=target, group=group),
        seed=seed,
        test_fraction=test_fraction,
        validation_fraction=validation_fraction,
        scaling=scaling,
        input_shape=input_shape,
        projection=projection,
        samples=samples,
    )


def find_source(
    location: str | Path, *, target: str | None = None, group: str | None = None, labelled: bool = True
) -> Source:
    """Read raw samples, fetching them into the cache first where the name is in the catalogue."""
    entry = None if Path(location).exists() else CATALOGUE.get(str(location))
    if entry is None:
        return read_source(location, target=target, group=group, labelled=labelled)
    source = read_source(fetch(entry.name), target=target, group=group, labelled=labelled)
    if source.classes is not None or source.labels is None:
        return source
    return replace(source, name=entry.name, labels=numpy.array(entry.classes)[source.labels], classes=entry.classes)
