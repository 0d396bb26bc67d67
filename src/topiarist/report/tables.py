"""A table as a file: exact for programs (CSV, JSON, Parquet), rounded for people (LaTeX, Markdown)."""

import csv
import importlib
import json
import math
from collections.abc import Callable, Mapping
from datetime import date
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd

from topiarist.errors import DataError, MissingExtraError, SettingsError
from topiarist.report.cells import format_column, is_missing, is_number, is_numeric
from topiarist.report.formulas import without_formulas
from topiarist.report.wording import clean

TableForm = Literal["csv", "json", "parquet", "latex", "markdown"]

MARKDOWN_ESCAPES = str.maketrans({sign: f"\\{sign}" for sign in r"\`*_[]<>|&~$#"})
LATEX_ESCAPES = str.maketrans(
    {sign: f"\\{sign}" for sign in "{}$&#%_"}
    # After a line break, brackets and stars would be read as its options, and two hyphens as a dash.
    | {"[": "{[}", "]": "{]}", "*": "{*}", "-": "-{}", "∞": r"$\infty$"}
    | {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "|": r"\textbar{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", '"': r"\textquotedbl{}"}
)


def format_table(frame: pd.DataFrame, form: TableForm, *, caption: str | None = None) -> bytes:
    """Return the columns of a frame, without its index, as a file; the same frame gives the same bytes.

    Parameters
    ----------
    frame : pandas.DataFrame
    form : "csv", "json", "parquet", "latex" or "markdown"
        The first three keep all digits; the others round, and align numbers to the right.
    caption : str, optional
        For LaTeX and Markdown: the other forms have no place for it.

    Raises
    ------
    DataError
        If the frame has no columns, or two of one name, or cannot be written as Parquet.

    Examples
    --------
    >>> format_table(pd.DataFrame({"units": [10, 7]}), "csv")
    b'units\\n10\\n7\\n'
    """
    named = frame.set_axis([str(name) for name in frame.columns], axis="columns")
    if named.columns.empty:
        raise DataError("cannot write a table without columns")
    twice = named.columns[named.columns.duplicated()]
    if len(twice):
        raise DataError(f"cannot write a table with two columns called '{twice[0]}'")
    if form == "parquet":
        return _parquet(named)
    writers: dict[str, Callable[[pd.DataFrame], str]] = {"csv": _csv, "json": _json}
    writers |= {"latex": partial(_latex, caption), "markdown": partial(_markdown, caption)}
    if form not in writers:
        raise SettingsError(f"no such form of a table: '{form}'")
    return writers[form](named).encode("utf-8", errors="replace")


def _csv(frame: pd.DataFrame) -> str:
    frame = without_formulas(frame)
    text = frame.to_csv(index=False, lineterminator="\n")
    # Python leaves a carriage return within a cell unquoted, and readers take it for the end of the row.
    return text if "\r" not in text else frame.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)


def _json(frame: pd.DataFrame) -> str:
    """Return one object per row; pandas' own `to_json` would round numbers to 15 digits."""
    rows = [dict(zip(frame.columns, map(_json_value, row), strict=True)) for row in frame.itertuples(index=False)]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
    return f"[\n{lines}\n]\n" if lines else "[]\n"


def _json_value(value: Any) -> Any:
    """Return a value of numpy or pandas as one of JSON, with None for what is missing or not finite."""
    if isinstance(value, np.generic):
        return _json_value(value.item())
    if is_missing(value) or (isinstance(value, float) and math.isinf(value)):
        return None
    if isinstance(value, Mapping):
        return {str(name): _json_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_json_value(part) for part in value]
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, bool | int | float | str) else str(value)


def _parquet(frame: pd.DataFrame) -> bytes:
    try:
        arrow = importlib.import_module("pyarrow")
    except ImportError as error:
        raise MissingExtraError(what="a Parquet table", extra="tables") from error
    try:
        content: bytes = frame.to_parquet(index=False, engine="pyarrow")
    except arrow.ArrowException as error:
        raise DataError(f"cannot write the table as Parquet: {error}") from error
    return content


def _latex(caption: str | None, frame: pd.DataFrame) -> str:
    texts, numeric = _texts(frame, LATEX_ESCAPES, missing="--", minus="$-$")
    return texts.style.hide(axis="index").to_latex(
        column_format="".join("r" if number else "l" for number in numeric),
        hrules=True,
        position_float="centering",
        caption=clean(caption).translate(LATEX_ESCAPES) if caption else None,
    )


def _markdown(caption: str | None, frame: pd.DataFrame) -> str:
    texts, numeric = _texts(frame, MARKDOWN_ESCAPES, missing="–", minus="-")
    alignment = ["right" if number else "left" for number in numeric] if len(frame) else None
    table = texts.to_markdown(index=False, disable_numparse=True, colalign=alignment)
    return (f"*{clean(caption).translate(MARKDOWN_ESCAPES)}*\n\n" if caption else "") + f"{table}\n"


def _texts(frame: pd.DataFrame, escapes: dict[int, str], missing: str, minus: str) -> tuple[pd.DataFrame, list[bool]]:
    """Return cells and headings as escaped texts, and whether each column holds numbers."""
    columns = [[value if is_number(value) else _json_value(value) for value in column] for _, column in frame.items()]
    numeric = [is_numeric(column) for column in columns]
    texts = []
    for column, number in zip(columns, numeric, strict=True):
        escaped = [missing if cell is None else cell.translate(escapes) for cell in format_column(column)]
        texts.append([text.replace("-".translate(escapes), minus) for text in escaped] if number else escaped)
    names = [clean(name).translate(escapes) for name in frame.columns]
    return pd.DataFrame(list(zip(*texts, strict=True)), columns=names), numeric
