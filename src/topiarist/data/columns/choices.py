"""What the user decides about columns, in place of what their cells suggest."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Literal

from topiarist.data.columns.dates import EPOCHS
from topiarist.data.columns.names import check_column
from topiarist.errors import DataError

Choice = Literal["drop", "category", "number", "date"]


@dataclass(frozen=True, kw_only=True)
class ColumnChoices:
    """Columns by name that are left out, or read as categories, numbers or dates whatever their cells suggest.

    A date may be followed by its form, as in `datetime.strptime`, "day=%d/%m/%Y", or by "seconds" or "milliseconds"
    since 1970. Commas may join several names.

    Examples
    --------
    >>> ColumnChoices(drop=("id",), date=("day=%d/%m/%Y",)).resolve("t", ["id", "day", "size"])
    {'id': ('drop', None), 'day': ('date', '%d/%m/%Y')}
    """

    drop: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    number: tuple[str, ...] = ()
    date: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))

    def resolve(self, name: str, columns: Sequence[str]) -> dict[str, tuple[Choice, str | None]]:
        """Return the choice for each column that has one, with the form of a date; raise for a column not there."""
        found: dict[str, tuple[Choice, str | None]] = {}
        choices: tuple[Choice, ...] = ("drop", "category", "number", "date")
        for choice in choices:
            for written in _separate(getattr(self, choice), columns):
                column, form = (written, None) if choice != "date" else _with_form(written, columns)
                check_column(name, columns, column, option=f"--{choice}")
                if column in found:
                    raise DataError(f"{name}: --{found[column][0]} and --{choice} both name {column}: choose one")
                found[column] = (choice, form)
        return found


def _separate(written: Iterable[str], columns: Sequence[str]) -> list[str]:
    """Return names one by one: a comma that is no part of a column's name stands between two."""
    return [
        name
        for text in written
        for name in ([text] if text in columns else [part.strip() for part in text.split(",") if part.strip()])
    ]


def _with_form(written: str, columns: Sequence[str]) -> tuple[str, str | None]:
    column, equals, form = written.rpartition("=")
    return (column, form) if equals and written not in columns and ("%" in form or form in EPOCHS) else (written, None)
