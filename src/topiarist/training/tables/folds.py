"""Folds of the training part: what is chosen for a table is chosen on rows that were not learned from."""

from dataclasses import dataclass, replace

import numpy
import torch
from torch import Tensor

from topiarist.data import Data, Part
from topiarist.data.split import fold_tests
from topiarist.errors import DataError

STRATA = 10  # of numbers: each tenth of their range is in every fold


@dataclass(frozen=True)
class InnerFold:
    """The `rows` of a training part to validate on; the others are learned from."""

    whole: Data
    rows: Tensor

    def data(self) -> Data:
        """Return data whose training and validation part are of the training part; its rows are copied."""
        learned, left_out = self._parts()
        return replace(self.whole, train=learned, validation=left_out)

    def learned(self) -> Part:
        """Return the rows to learn from."""
        return self._parts()[0]

    def left_out(self) -> Part:
        """Return the rows to validate on; their inputs know no target of theirs, and neither do those of the others."""
        return self._parts()[1]

    def _parts(self) -> tuple[Part, Part]:
        part = training_part(self.whole)
        learned = torch.ones(len(part), dtype=torch.bool)
        learned[self.rows] = False
        return part.divided(learned.nonzero()[:, 0], self.rows)


def inner_folds(data: Data, count: int, *, seed: int) -> list[InnerFold]:
    """Return folds of the training part, as many as its rows allow; nothing else of the data is touched.

    Groups stay whole, and classes, or tenths of the range of numbers, are spread evenly.
    """
    part = training_part(data)
    different = len(part) if part.groups is None else len(numpy.unique(part.groups))
    folds = min(count, different)
    if folds < 2:
        raise DataError(f"{data.name} has {different} training sample(s) or group(s): folds need at least 2")
    strata = _strata(data, part)
    tests = fold_tests(strata, part.groups, folds=folds, seed=seed, classes=False)
    return [InnerFold(data, torch.from_numpy(test)) for test in tests]


def training_part(data: Data) -> Part:
    """Return the training part; raise where it is read batch by batch, or samples are no rows of a table."""
    if not isinstance(data.train, Part) or len(data.input_shape) != 1:
        raise DataError(f"{data.name}: rows of a table in memory are needed; found samples {data.input_shape}")
    return data.train


def _strata(data: Data, part: Part) -> "numpy.typing.NDArray[numpy.int64]":
    if data.task.kind == "classes":
        found: numpy.typing.NDArray[numpy.int64] = part.y.numpy()
        return found
    # Numbers by the tenths of their mean, labels by how many there are: all that folds need is to be alike.
    ranks = part.y.double().mean(dim=1).argsort(stable=True).argsort(stable=True)
    return (ranks * min(STRATA, len(part)) // len(part)).numpy()
