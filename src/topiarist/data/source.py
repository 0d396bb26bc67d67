"""What a loader found, before any split or scaling."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy
import pandas
from numpy.typing import NDArray

Scaling = Literal["none", "zscore", "minmax", "unit", "pixels"]
Features = pandas.DataFrame | NDArray[Any]
Rows = NDArray[numpy.intp]


@dataclass(frozen=True, kw_only=True)
class Source:
    """Raw samples: a table with named columns, or an array (n_samples, *input_shape).

    `labels` are as found in the file (numbers or text) and None where there are none; `parts` marks each sample
    "train", "validation" or "test" where the source comes with a split of its own; `originals` (n_samples,) gives the
    number of the sample that each one is an augmented copy of, its own number for an original; `finer` (n_samples,)
    are classes finer than the labels, where known; `mixtures` are files of mixtures of the wave forms behind the
    samples, by the key of `mixture_files`; `scaling` is what suits the data; `notes` say in one line each what the
    loader decided on the user's behalf.
    """

    name: str
    features: Features
    labels: NDArray[Any] | None
    classes: tuple[str, ...] | None = None
    groups: NDArray[Any] | None = None
    parts: NDArray[numpy.str_] | None = None
    originals: NDArray[Any] | None = None
    finer: NDArray[Any] | None = None
    mixtures: Mapping[str, Path] = field(default_factory=dict)
    scaling: Scaling = "zscore"
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.features)
