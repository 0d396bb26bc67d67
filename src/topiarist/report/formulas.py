"""Names in CSV files that a spreadsheet would take for formulas: an apostrophe before them makes them text."""

from typing import Any

import pandas as pd

BEGINNINGS = ("=", "+", "-", "@", "\t", "\r")  # of a formula, to spreadsheets; OWASP, CSV injection


def without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which no text, and no heading, begins as a formula does; numbers stay as they are.

    Examples
    --------
    >>> without_formulas(pd.DataFrame({"class": ["=1+2", "-1", "cat"], "p": [-0.5, 0, 1]}))["class"].tolist()
    ["'=1+2", '-1', 'cat']
    """
    columns = [
        column
        if column.dtype.kind in "biufcmM"
        else pd.Series([as_text(cell) for cell in column], index=frame.index, dtype=object)
        for _, column in frame.items()
    ]
    return pd.concat(columns, axis="columns").set_axis([as_text(name) for name in frame.columns], axis="columns")


def as_text(value: Any) -> Any:
    """Return a value that a spreadsheet takes for what it is."""
    if not isinstance(value, str) or not value.startswith(BEGINNINGS) or _is_number(value):
        return value
    return f"'{value}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
