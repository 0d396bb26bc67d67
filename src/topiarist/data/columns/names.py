"""The names of columns: listed in a line, checked, and found where a call spells them."""

import difflib
import re
from collections import Counter
from collections.abc import Sequence

from topiarist.errors import DataError

MOST_COLUMNS = 100_000  # the widest tables that are published, of genes, have some 60,000
_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)?")
_MOST_NAMED = 20  # in one line of a message


def listed(names: Sequence[str]) -> str:
    """Return the names of columns in one line, the first ones where there are many."""
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def check_header(name: str, header: Sequence[str]) -> None:
    """Raise where there are too many columns, or two of one name."""
    if len(header) > MOST_COLUMNS:
        raise DataError(
            f"{name}: a table has at most {MOST_COLUMNS:,} columns, found {len(header):,}; save numbers as .npz"
        )
    repeated = [column for column, count in Counter(header).items() if count > 1 and column]
    if repeated:
        raise DataError(
            f"{name}: columns must have distinct names, found more than once: {listed(repeated)}{_headless(header)}"
        )


def check_column(name: str, columns: Sequence[str], wanted: str, *, option: str) -> None:
    """Raise where a column is not there, and name those that are and the closest."""
    if wanted not in columns:
        close = difflib.get_close_matches(wanted, columns, n=1, cutoff=0.5)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise DataError(f"{name}: {option} {wanted} is not a column, found {listed(columns)}{hint}{_headless(columns)}")


def _headless(columns: Sequence[str]) -> str:
    """Return what to do about names that look like values."""
    numbers = any(_NUMBER.fullmatch(column) for column in columns)
    return "; some of these are numbers: the first line must be a header" if numbers else ""
