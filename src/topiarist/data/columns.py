"""The columns of a table: which can be features, and how they become numbers (gaps filled, text as one-hot).

pandas is imported where a table is at hand: networks and arrays are handled without it, in half a second less.
"""

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy
from numpy.typing import NDArray

from topiarist.data.source import Features, is_table
from topiarist.errors import DataError

if TYPE_CHECKING:
    import pandas

    Cells = pandas.Series[Any]

MOST_CATEGORIES = 50  # trades off width against rare texts: a column of names would make thousands of inputs
_MOST_NAMED = 20  # in one line of a message
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "boolean")
_NESTED = (list, dict, set, tuple, bytes, numpy.ndarray)


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table: numbers with the value that replaces a missing cell, or text with its categories.

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


def describe_column(values: "Cells", training_rows: NDArray[numpy.intp]) -> Column:
    """Decide whether a column is numbers or text, and what replaces its missing cells."""
    import pandas  # noqa: PLC0415  # see the top of the file

    training = values.iloc[training_rows]
    if pandas.api.types.is_numeric_dtype(values):
        median = training.astype(float).median()
        return Column(name=str(values.name), kind="number", fill=0.0 if pandas.isna(median) else float(median))
    counts = _texts(values).dropna().value_counts()
    categories = tuple(sorted(sorted(counts.index, key=lambda text: (-counts[text], text))[:MOST_CATEGORIES]))
    seen = set(_texts(training).dropna())
    known = tuple(text for text in categories if text in seen)
    return Column(name=str(values.name), kind="text", categories=categories, known=known)


def encode(table: "pandas.DataFrame", columns: tuple[Column, ...]) -> NDArray[numpy.float64]:
    """Return the table as numbers (n_samples, width): missing numbers filled, text as one-hot.

    Text that is missing, or that training did not show, is all zeros.
    """
    absent = [column.name for column in columns if column.name not in table.columns]
    if absent:
        raise DataError(f"columns that the network was trained on are missing: {', '.join(absent)}")
    parts = [(_numbers if column.kind == "number" else _one_hot)(table[column.name], column) for column in columns]
    return numpy.concatenate(parts, axis=1) if parts else numpy.empty((len(table), 0))


def _numbers(values: "Cells", column: Column) -> NDArray[numpy.float64]:
    import pandas  # noqa: PLC0415  # see the top of the file

    numbers = pandas.to_numeric(values, errors="coerce").astype(float)
    wrong = values[numbers.isna() & values.notna()]
    if len(wrong):
        raise DataError(f"column '{column.name}' must hold numbers; found {wrong.iloc[0]!r}")
    found = numpy.asarray(numbers, dtype=numpy.float64)
    return numpy.where(numpy.isfinite(found), found, column.fill)[:, None]


def _one_hot(values: "Cells", column: Column) -> NDArray[numpy.float64]:
    import pandas  # noqa: PLC0415  # see the top of the file

    texts = _texts(values)
    shown = pandas.Categorical(texts.where(texts.isin(column.known)), categories=list(column.categories))
    return numpy.ascontiguousarray(pandas.get_dummies(shown, dtype=float))  # the order of sums depends on the layout


def _texts(values: "Cells") -> "Cells":
    """Return cells as text, missing ones as they are; 12.0 is '12', as in a file that has words beside it."""
    return values.astype(object).map(
        lambda cell: str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell), na_action="ignore"
    )


def wide_text_notes(features: Features) -> tuple[str, ...]:
    """Note which text columns have more different texts than are used."""
    if not is_table(features):
        return ()
    import pandas  # noqa: PLC0415  # see the top of the file

    text = [name for name in features.columns if not pandas.api.types.is_numeric_dtype(features[name])]
    counts = {name: features[name].nunique() for name in text}
    return tuple(
        f"column '{name}' has {count} different texts: the {MOST_CATEGORIES} most frequent are used"
        for name, count in counts.items()
        if count > MOST_CATEGORIES
    )


def listed(names: Sequence[str]) -> str:
    """Return the names of columns in one line, the first ones where there are many."""
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def check_header(name: str, header: Sequence[str]) -> None:
    """Raise where two columns have one name."""
    repeated = [column for column, count in Counter(header).items() if count > 1 and column]
    if repeated:
        raise DataError(f"{name}: columns must have distinct names, found more than once: {listed(repeated)}")


def check_column(name: str, columns: Sequence[str], wanted: str, *, option: str) -> None:
    """Raise where a column is not there, and name those that are and the closest."""
    if wanted not in columns:
        close = difflib.get_close_matches(wanted, columns, n=1, cutoff=0.5)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise DataError(f"{name}: {option} {wanted} is not a column, found {listed(columns)}{hint}")


def tidy(name: str, frame: "pandas.DataFrame") -> "tuple[pandas.DataFrame, list[str]]":
    """Return each column as floats, truth values or text, without infinite numbers, and notes of what was changed."""
    import pandas  # noqa: PLC0415  # see the top of the file

    unnamed = [column for column in frame.columns if not column]
    notes = [f"{len(unnamed)} column(s) without a name left out"] if unnamed else []
    named = frame.loc[:, [bool(column) for column in frame.columns]]
    tidied = pandas.DataFrame({column: _tidy(name, named[column]) for column in named.columns}, index=named.index)
    infinite = numpy.isinf(tidied.select_dtypes("float64")).sum()
    if infinite.sum():
        tidied = tidied.replace([numpy.inf, -numpy.inf], numpy.nan)
        where = listed([str(column) for column in infinite.index[infinite > 0]])
        notes.append(f"{infinite.sum()} infinite number(s) taken as missing in {where}")
    return tidied, notes


def _tidy(name: str, column: "Cells") -> "Cells":
    """Return numbers as float64, truth values as bool where none is missing, everything else as text."""
    import pandas  # noqa: PLC0415  # see the top of the file

    kind = pandas.api.types.infer_dtype(column, skipna=True)
    if kind == "boolean" and column.notna().all():
        return column.astype(bool)
    if kind in _NUMBERS or column.isna().all():
        return column.astype("float64")
    if any(isinstance(value, _NESTED) for value in column):
        raise DataError(f"{name}: column {column.name} holds {kind} values; use numbers or text")
    return column.astype(object).map(str, na_action="ignore")


def drop_uninformative(frame: "pandas.DataFrame") -> "tuple[pandas.DataFrame, list[str]]":
    """Leave out columns that are empty, constant, or text that differs in every row, and note which."""
    distinct = frame.nunique(dropna=False)
    empty = [column for column in frame.columns if frame[column].isna().all()]
    constant = [column for column in frame.columns if distinct[column] <= 1 and column not in empty]
    text = frame.select_dtypes(["object", "str"]).columns
    identifiers = [column for column in text if distinct[column] == len(frame) > 1]
    reasons = {"empty": empty, "constant": constant, "different in every row": identifiers}
    notes = [f"left out, {reason}: {listed(columns)}" for reason, columns in reasons.items() if columns]
    return frame.drop(columns=[*empty, *constant, *identifiers]), notes
