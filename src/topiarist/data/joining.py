"""Train and test files of one data set, joined to one source that remembers which sample came from where."""

from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.data.source import Source
from topiarist.errors import DataError

Pair = tuple[NDArray[numpy.uint8], NDArray[Any] | None]


def join_pairs(folder: Path, pairs: dict[str, Pair], *, notes: tuple[str, ...] = ()) -> Source:
    """Join the images and labels of each part; labels are dropped where a part has none."""
    shapes = {images.shape[1:] for images, _ in pairs.values()}
    if len(shapes) > 1:
        raise DataError(f"{folder}: train and test images differ in size: {sorted(shapes)}")
    known = [labels for _, labels in pairs.values() if labels is not None]
    return Source(
        name=folder.resolve().name,
        features=numpy.concatenate([images for images, _ in pairs.values()]),
        labels=numpy.concatenate(known) if len(known) == len(pairs) else None,
        parts=numpy.repeat(list(pairs), [len(images) for images, _ in pairs.values()]) if len(pairs) > 1 else None,
        scaling="pixels",
        notes=notes,
    )
