"""The columns of a table: their names, and which of them can be features."""

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy
import pandas

from topiarist.errors import DataError

MOST_NAMED = 20
NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "boolean")
NESTED = (list, dict, set, tuple, bytes, numpy.ndarray)


def listed(names: Sequence[str]) -> str:
    """Name the columns in one line, the first ones where there are many."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def check_header(name: str, header: Sequence[str]) -> None:
    """Refuse a header in which two columns have one name."""
    repeated = [column for column, count in Counter(header).items() if count > 1 and column]
    if repeated:
        raise DataError(f"{name}: columns must have distinct names, found more than once: {listed(repeated)}")


def check_column(name: str, columns: Sequence[str], wanted: str, *, option: str) -> None:
    """Refuse a column that is not there, naming those that are and the closest."""
    if wanted not in columns:
        close = difflib.get_close_matches(wanted, columns, n=1, cutoff=0.5)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise DataError(f"{name}: {option} {wanted} is not a column, found {listed(columns)}{hint}")


def tidy(name: str, frame: pandas.DataFrame) -> tuple[pandas.DataFrame, list[str]]:
    """Give each column as floats, truth values or text, without infinite numbers, and notes of what was changed."""
    unnamed = [column for column in frame.columns if not column]
    notes = [f"{len(unnamed)} column(s) without a name left out"] if unnamed else []
    named = frame.loc[:, [bool(column) for column in frame.columns]]
    tidied = pandas.DataFrame({column: tidy_column(name, named[column]) for column in named.columns}, index=named.index)
    infinite = numpy.isinf(tidied.select_dtypes("float64")).sum()
    if infinite.sum():
        tidied = tidied.replace([numpy.inf, -numpy.inf], numpy.nan)
        where = listed([str(column) for column in infinite.index[infinite > 0]])
        notes.append(f"{infinite.sum()} infinite number(s) taken as missing in {where}")
    return tidied, notes


def tidy_column(name: str, column: "pandas.Series[Any]") -> "pandas.Series[Any]":
    """Give numbers as float64, truth values as bool where none is missing, everything else as text."""
    kind = pandas.api.types.infer_dtype(column, skipna=True)
    if kind == "boolean" and column.notna().all():
        return column.astype(bool)
    if kind in NUMBERS or column.isna().all():
        return column.astype("float64")
    if any(isinstance(value, NESTED) for value in column):
        raise DataError(f"{name}: column {column.name} holds {kind} values; give numbers or text")
    return column.astype(object).map(str, na_action="ignore")


def drop_uninformative(frame: pandas.DataFrame) -> tuple[pandas.DataFrame, list[str]]:
    """Leave out columns that are empty, constant, or text that differs in every row, and note which."""
    distinct = frame.nunique(dropna=False)
    empty = [column for column in frame.columns if frame[column].isna().all()]
    constant = [column for column in frame.columns if distinct[column] <= 1 and column not in empty]
    text = frame.select_dtypes(["object", "str"]).columns
    identifiers = [column for column in text if distinct[column] == len(frame) > 1]
    reasons = {"empty": empty, "constant": constant, "different in every row": identifiers}
    notes = [f"left out, {reason}: {listed(columns)}" for reason, columns in reasons.items() if columns]
    return frame.drop(columns=[*empty, *constant, *identifiers]), notes
