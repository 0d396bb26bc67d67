"""Rows of results as a page shows them: a mean and its deviation in one cell, few columns in each of several tables."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas

from topiarist.report import Table, table_of

ResultRow = Mapping[Any, Any]
ShownRow = Mapping[str, object]


def with_sd(row: ResultRow, name: str, places: int = 4, *, ending: str = " sd", sign: str = "") -> str | None:
    """Return "0.8890±0.0058" from the columns `name` and `name + ending`, without spaces, at which lines would break.

    The deviation is left out where it is not known; where the mean is not, there is None.
    """
    mean, sd = row[name], row[f"{name}{ending}"]
    if pandas.isna(mean):
        return None
    spread = "" if pandas.isna(sd) else f"±{sd:,.{places}f}"
    return f"{mean:{sign},.{places}f}{spread}".replace("-", "−")


def in_parts(
    rows: Iterable[ResultRow], show: Callable[[ResultRow], Mapping[str, Iterable[ShownRow]]]
) -> tuple[Table, ...]:
    """Return one table per caption: `show` says which rows each has of a row of results."""
    parts: dict[str, list[ShownRow]] = {}
    for row in rows:
        for caption, shown in show(row).items():
            parts.setdefault(caption, []).extend(shown)
    return tuple(table_of(pandas.DataFrame(shown), caption) for caption, shown in parts.items())
