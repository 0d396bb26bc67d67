"""Raw samples as a reader found them, before any split or scaling."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy
from numpy.typing import NDArray

from topiarist.data.file_arrays import FileArray
from topiarist.data.joined import JoinedArrays, join_arrays
from topiarist.data.sound_form import SoundForm
from topiarist.errors import DataError
from topiarist.tasks import TaskKind

if TYPE_CHECKING:
    import pandas
    from typing_extensions import TypeIs

    from topiarist.data.columns.decisions import ColumnDecision

    Features = pandas.DataFrame | NDArray[Any]
    RawFeatures = Features | JoinedArrays
else:
    Features = RawFeatures = Any  # pandas takes half a second to import, and arrays do not need it

Scaling = Literal["none", "zscore", "minmax", "unit", "pixels"]
Rows = NDArray[numpy.intp]
ImagesAndLabels = tuple[NDArray[numpy.uint8] | FileArray, NDArray[Any] | None]


@dataclass(frozen=True, kw_only=True)
class Source:
    """Raw samples: a table with named columns, or an array (n_samples, *input_shape).

    Parameters
    ----------
    name, features
        What messages call the samples, and the samples themselves.
    labels, classes
        One label per sample as found in the file, numbers or text, or None; several are (n_samples, n_targets). All
        classes in order, where it is known.
    targets, task
        What the columns of the labels are called; "classes", "numbers" or "labels" where it was decided what they are.
    weights
        How much each sample counts (n_samples,), where samples do not count the same.
    raw_targets
        Whether numbers to predict are left in the user's units, as a network of the user's answers in them.
    groups, parts
        One group per sample, which no two parts may share; "train", "validation" or "test" per sample, where the source
        comes with a split of its own.
    originals
        The row of the sample that each one is an augmented copy of; its own row for an original.
    finer, mixtures
        A class per sample that is finer than its label; files of mixtures of the waveforms behind the samples, by the
        key of `block_mixing.mixture_key`.
    scaling, notes
        What suits the data; one line for each thing that the reader decided on the user's behalf.
    columns
        What was decided for each column of a table, those that are no features included; empty where nobody decided.
    sound
        How sounds were described, where the samples are spectrograms.
    """

    name: str
    features: RawFeatures
    labels: NDArray[Any] | None
    classes: tuple[str, ...] | None = None
    groups: NDArray[Any] | None = None
    parts: NDArray[numpy.str_] | None = None
    originals: NDArray[Any] | None = None
    finer: NDArray[Any] | None = None
    mixtures: Mapping[str, Path] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    task: TaskKind | None = None
    weights: NDArray[Any] | None = None
    raw_targets: bool = False
    scaling: Scaling = "zscore"
    notes: tuple[str, ...] = ()
    columns: "tuple[ColumnDecision, ...]" = ()
    sound: SoundForm | None = None

    def __len__(self) -> int:
        return len(self.features)


def is_table(samples: object) -> "TypeIs[pandas.DataFrame]":
    """Return whether samples are a pandas table; where pandas was never imported, they are not."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(samples, pandas.DataFrame)


def take_rows(features: RawFeatures, rows: Rows) -> Features:
    """Return a copy of some rows of a table or an array."""
    return features.iloc[rows] if is_table(features) else features[rows]


def join_parts(place: Path, parts: Mapping[str, ImagesAndLabels], *, notes: tuple[str, ...] = ()) -> Source:
    """Join the images of the parts of a data set; labels are dropped where one part has none."""
    shapes = {images.shape[1:] for images, _ in parts.values()}
    if len(shapes) > 1:
        raise DataError(f"{place}: train and test images differ in size: {sorted(shapes)}")
    labels = [found for _, found in parts.values() if found is not None]
    images = [found for found, _ in parts.values()]
    return Source(
        name=place.resolve().name,
        features=join_arrays(images),
        labels=numpy.concatenate(labels) if len(labels) == len(parts) else None,
        parts=numpy.repeat(list(parts), [len(found) for found in images]) if len(parts) > 1 else None,
        scaling="pixels",
        notes=notes,
    )
