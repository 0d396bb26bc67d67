"""The columns of a table: numbers with gaps filled, text as one-hot."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy
import pandas
from numpy.typing import NDArray

from topiarist.data.source import Features
from topiarist.errors import DataError

MOST_CATEGORIES = 50


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table: numbers with the value that stands for a missing cell, or text with its categories.

    `known` are the categories seen in training; the others of `categories` keep their place but stay zero.
    """

    name: str
    kind: Literal["number", "text"]
    fill: float = 0.0
    categories: tuple[str, ...] = ()
    known: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """How many inputs of the network this column takes."""
        return 1 if self.kind == "number" else len(self.categories)


def describe_column(values: "pandas.Series[Any]", training_rows: NDArray[numpy.intp]) -> Column:
    """Decide whether a column is numbers or text, and what stands for its missing cells."""
    training = values.iloc[training_rows]
    if pandas.api.types.is_numeric_dtype(values):
        median = training.astype(float).median()
        return Column(name=str(values.name), kind="number", fill=0.0 if pandas.isna(median) else float(median))
    counts = texts_of(values).dropna().value_counts()
    frequent = sorted(counts.index, key=lambda text: (-counts[text], text))[:MOST_CATEGORIES]
    seen = set(texts_of(training).dropna())
    categories = tuple(sorted(frequent))
    known = tuple(text for text in categories if text in seen)
    return Column(name=str(values.name), kind="text", categories=categories, known=known)


def encode(table: pandas.DataFrame, columns: tuple[Column, ...]) -> NDArray[numpy.float64]:
    """Give the table as numbers (n_samples, width): missing numbers filled, text as one-hot."""
    absent = [column.name for column in columns if column.name not in table.columns]
    if absent:
        raise DataError(f"columns that the network was trained on are missing: {', '.join(absent)}")
    parts = [
        numbers_of(table[column.name], column)[:, None]
        if column.kind == "number"
        else one_hot(table[column.name], column)
        for column in columns
    ]
    return numpy.concatenate(parts, axis=1) if parts else numpy.empty((len(table), 0))


def numbers_of(values: "pandas.Series[Any]", column: Column) -> NDArray[numpy.float64]:
    """Give a column as floats with its missing cells filled; text in it is an error that shows the cell."""
    numbers = pandas.to_numeric(values, errors="coerce").astype(float)
    wrong = values[numbers.isna() & values.notna()]
    if len(wrong):
        raise DataError(f"column '{column.name}' must hold numbers; found {wrong.iloc[0]!r}")
    found = numpy.asarray(numbers, dtype=numpy.float64)
    return numpy.where(numpy.isfinite(found), found, column.fill)


def texts_of(values: "pandas.Series[Any]") -> "pandas.Series[Any]":
    """Give cells as text, missing ones as they are; 12.0 is '12', as it stands in a file that has words beside it."""
    return values.astype(object).map(
        lambda cell: str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell), na_action="ignore"
    )


def one_hot(values: "pandas.Series[Any]", column: Column) -> NDArray[numpy.float64]:
    """Give a column as zeros with a one at the category; all zeros where the text is missing or was not in training."""
    place = {text: column.categories.index(text) for text in column.known}
    chosen = numpy.array([place.get(text, -1) for text in texts_of(values)], dtype=numpy.intp)
    hot = numpy.zeros((len(chosen), column.width))
    rows = numpy.flatnonzero(chosen >= 0)
    hot[rows, chosen[rows]] = 1.0
    return hot


def wide_text_notes(features: Features) -> tuple[str, ...]:
    """Say which text columns have more different texts than are used."""
    if not isinstance(features, pandas.DataFrame):
        return ()
    text = [name for name in features.columns if not pandas.api.types.is_numeric_dtype(features[name])]
    counts = {name: features[name].nunique() for name in text}
    return tuple(
        f"column '{name}' has {count} different texts: the {MOST_CATEGORIES} most frequent are used"
        for name, count in counts.items()
        if count > MOST_CATEGORIES
    )
