"""The data sets of the Surgeon: whatever `load_data` reads, each with its row of the paper, or digits as a stand-in."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from topiarist.data import Source, find_source, number_labels
from topiarist.data.readers.catalogue import CATALOGUE
from topiarist.errors import SettingsError
from topiarist.reproductions.surgeon.paper import CLASSES

STAND_IN = "digits"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A data set to read: a name that is known, a file or a folder, and what the user calls it."""

    location: str
    name: str | None = None


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """Samples, and the name that the paper's table has for them; None where they are not those of the paper."""

    source: Source
    row: str | None
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Give the name under which it is shown."""
        return self.source.name


def read_data_sets(asked: Sequence[Asked]) -> list[DataSet]:
    """Read all that is asked for, or the stand-in."""
    if not asked:
        return [DataSet(source=find_source(STAND_IN), row=None)]
    found = [with_row(read_named(each)) for each in asked]
    names = [each.name for each in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SettingsError(f"two data sets are called '{twice}': give one of them another name, as NAME=PATH")
    return found


def read_named(asked: Asked) -> Source:
    """Read a data set, and call it what the user calls it; one of the catalogue may be written as the paper does."""
    known = None if Path(asked.location).exists() else same_letters(asked.location, CATALOGUE)
    source = find_source(asked.location if known is None else known)
    return source if asked.name is None else replace(source, name=asked.name)


def same_letters(name: str, known: Iterable[str]) -> str | None:
    """Give the name that differs only in case, dots and hyphens."""
    return next((each for each in known if letters(each) == letters(name)), None)


def with_row(source: Source) -> DataSet:
    """Find the paper's row by the name of a data set; other classes are another task, and are compared with none."""
    row, (_, classes) = row_named(source.name), number_labels(source)
    if row is not None and len(classes) != CLASSES[row]:
        note = (
            f"{source.name} has {len(classes)} classes, {row} in the paper {CLASSES[row]}: compared with no row of it"
        )
        return DataSet(source=source, row=None, notes=(*source.notes, note))
    return DataSet(source=source, row=row, notes=source.notes)


def row_named(name: str) -> str | None:
    """Give the paper's name of a data set whose own begins with it, whatever its case, dots and hyphens."""
    plain = letters(name)
    return max((row for row in CLASSES if plain.startswith(letters(row))), key=len, default=None)


def letters(text: str) -> str:
    """Give the letters and digits of a name."""
    return "".join(letter for letter in text.lower() if letter.isalnum())
