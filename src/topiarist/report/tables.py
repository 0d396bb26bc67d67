"""A table as a file: exact for programs (CSV, JSON, Parquet), rounded for people (LaTeX, Markdown)."""

import csv
import importlib
import json
import math
from collections.abc import Mapping
from datetime import date
from typing import Any, Literal

import numpy as np
import pandas as pd

from topiarist.errors import DataError, MissingExtraError, SettingsError
from topiarist.report.cells import is_missing
from topiarist.report.latex import latex_table
from topiarist.report.markdown import markdown_table

TableForm = Literal["csv", "json", "parquet", "latex", "markdown"]


def format_table(frame: pd.DataFrame, form: TableForm, *, caption: str | None = None) -> bytes:
    """Write the columns of a frame, without its index; the same frame gives the same bytes.

    The caption is for LaTeX and Markdown: the other forms have no place for it.
    """
    named = frame.set_axis([str(name) for name in frame.columns], axis="columns")
    check_columns(named)
    match form:
        case "csv":
            text = csv_table(named)
        case "json":
            text = json_table(named)
        case "parquet":
            return parquet_table(named)
        case "latex":
            text = latex_table(columns_of(named), caption=caption)
        case "markdown":
            text = markdown_table(columns_of(named), caption=caption)
        case _:
            raise SettingsError(f"no such form of a table: '{form}'")
    return text.encode("utf-8", errors="replace")


def check_columns(frame: pd.DataFrame) -> None:
    """Refuse a frame that could not be read back."""
    if frame.columns.empty:
        raise DataError("cannot write a table without columns")
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise DataError(f"cannot write a table with two columns called '{twice}'")


def columns_of(frame: pd.DataFrame) -> dict[str, list[object]]:
    """Give the cells of each column as plain Python values."""
    return {str(name): [plain(value) for value in column] for name, column in frame.items()}


def csv_table(frame: pd.DataFrame) -> str:
    """Write commas and quotes where they are needed, numbers with all their digits."""
    text = frame.to_csv(index=False, lineterminator="\n")
    # Python leaves a carriage return within a cell unquoted, and readers take it for the end of the row.
    return text if "\r" not in text else frame.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)


def json_table(frame: pd.DataFrame) -> str:
    """Write one object a row; what JSON cannot say (NaN, infinity) becomes null."""
    columns = {name: [finite(value) for value in values] for name, values in columns_of(frame).items()}
    rows = (dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True))
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
    return f"[\n{lines}\n]\n" if lines else "[]\n"


def parquet_table(frame: pd.DataFrame) -> bytes:
    """Write a Parquet file, for which the extra 'tables' is needed."""
    try:
        arrow = importlib.import_module("pyarrow")
    except ImportError as error:
        raise MissingExtraError(what="a Parquet table", extra="tables") from error
    try:
        content: bytes = frame.to_parquet(index=False, engine="pyarrow")
    except arrow.ArrowException as error:
        raise DataError(f"cannot write the table as Parquet: {error}") from error
    return content


def plain(value: Any) -> Any:
    """Give a value of numpy or pandas as one of Python, with None for what is missing."""
    if is_missing(value):
        return None
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(part) for part in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, bool | int | float | str) else str(value)


def finite(value: Any) -> Any:
    """Give None for a number that is not finite, also deep inside a value."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
