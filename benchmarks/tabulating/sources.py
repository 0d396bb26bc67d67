"""Ten tables of classes and four of numbers: from R's mlbench and kernlab, and bundled with scikit-learn."""

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import pandas

from topiarist import Data
from topiarist.tasks import TaskKind

LIBRARY = Path(os.environ.get("R_LIBRARY", "/usr/lib/R/site-library"))  # where Debian's r-cran packages are
TEST_FRACTION = 0.2


@dataclass(frozen=True)
class RTable:
    """A table of an R package: its file, the column to predict, and columns that name rows."""

    package: str
    name: str
    target: str
    task: TaskKind = "classes"
    dropped: tuple[str, ...] = ()

    def __call__(self) -> tuple[pandas.DataFrame, Any]:
        """Return features and targets; rows without a target are left out."""
        import pyreadr

        (frame,) = pyreadr.read_r(LIBRARY / self.package / "data" / f"{self.name}.rda").values()
        frame = frame[frame[self.target].notna()].drop(columns=list(self.dropped)).reset_index(drop=True)
        features = frame.drop(columns=self.target).apply(_plain)
        values = frame[self.target]
        return features, values.astype(float if self.task == "numbers" else str).to_numpy()


def _plain(column: "pandas.Series[Any]") -> "pandas.Series[Any]":
    """Return numbers as float, and the levels of a factor as text, as a file has them."""
    if pandas.api.types.is_numeric_dtype(column.dtype):
        return column.astype(float)
    return column.astype(object).where(column.notna(), None)


@dataclass(frozen=True)
class BundledTable:
    """A table that comes with scikit-learn."""

    name: str
    task: TaskKind

    def __call__(self) -> tuple[pandas.DataFrame, Any]:
        """Return features and targets."""
        from sklearn import datasets

        found = getattr(datasets, f"load_{self.name}")()
        return pandas.DataFrame(found.data).rename(columns=str), numpy.asarray(found.target, dtype=float)


Table = RTable | BundledTable
TABLES: Mapping[str, Table] = {
    "BreastCancer": RTable("mlbench", "BreastCancer", "Class", dropped=("Id",)),
    "Glass": RTable("mlbench", "Glass", "Type"),
    "Ionosphere": RTable("mlbench", "Ionosphere", "Class"),
    "PimaIndiansDiabetes2": RTable("mlbench", "PimaIndiansDiabetes2", "diabetes"),
    "Satellite": RTable("mlbench", "Satellite", "classes"),
    "Sonar": RTable("mlbench", "Sonar", "Class"),
    "Soybean": RTable("mlbench", "Soybean", "Class"),
    "spam": RTable("kernlab", "spam", "type"),
    "Vehicle": RTable("mlbench", "Vehicle", "Class"),
    "Vowel": RTable("mlbench", "Vowel", "Class"),
    "BostonHousing": RTable("mlbench", "BostonHousing", "medv", "numbers"),
    "diabetes": BundledTable("diabetes", "numbers"),
    "Ozone": RTable("mlbench", "Ozone", "V4", "numbers"),
    "Servo": RTable("mlbench", "Servo", "Class", "numbers"),
}


def load_split(name: str, number: int) -> Data:
    """Return one random split of a table: a fifth to test on, the rest to learn from and to choose by."""
    table = TABLES[name]
    features, targets = table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notes on columns and on small classes
        return Data.from_arrays(
            features,
            targets,
            name=name,
            task=table.task,
            scaling="auto",
            seed=number,
            test_fraction=TEST_FRACTION,
            validation_fraction=0.0,
        )
