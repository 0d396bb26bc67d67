"""The data sets of the Surgeon: whatever `load_data` reads, each with its row of the paper, or digits as a stand-in."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch

from topiarist.data import AnyPart, Data, Part, Source, find_source
from topiarist.data.readers.catalogue import CATALOGUE
from topiarist.errors import SettingsError
from topiarist.reproductions.claims import Chance
from topiarist.reproductions.findings import file_stem
from topiarist.reproductions.surgeon.paper import CLASSES

STAND_IN = "digits"
PartName = Literal["train", "validation", "test"]


@dataclass(frozen=True)
class PartSummary:
    """How many samples a part has, and the share of its largest class, which one answer for all samples reaches."""

    samples: int
    majority: float

    def is_at_chance(self, accuracy: float) -> bool:
        """Return whether one answer for all samples may reach an accuracy."""
        return accuracy <= Chance(self.majority, self.samples).highest


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """Samples, and the name that the paper's table has for them; None where they are not those of the paper."""

    source: Source
    row: str | None
    parts: Mapping[PartName, PartSummary]
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name under which it is shown."""
        return self.source.name


def read_data_sets(texts: Sequence[str], *, seed: int = 0, samples: int | None = None) -> list[DataSet]:
    """Read every data set, given as NAME=DATA or DATA alone, or the stand-in where none is.

    A file or folder that exists is taken as it is, whatever its name; the paper's spelling may name what is known.
    `seed` and `samples` decide the parts, as in `Data.from_source`.
    """
    found = [_read(text, seed, samples) for text in texts or [STAND_IN]]
    stems = [file_stem(each.name) for each in found]
    twice = next((each.name for each, stem in zip(found, stems, strict=True) if stems.count(stem) > 1), None)
    if twice is not None:
        raise SettingsError(f"two data sets are called '{twice}': give one of them another name, as NAME=PATH")
    return found


def _read(text: str, seed: int, samples: int | None) -> DataSet:
    name, equals, location = text.partition("=")
    if not equals or Path(text).exists():
        name, location = "", text
    elif not name or not location:
        raise SettingsError(f"data are written as NAME=DATA, or DATA alone; found '{text}'")
    known = None if Path(location).exists() else _same_letters(location, CATALOGUE)
    source = find_source(known or location)
    source = replace(source, name=name or source.name)
    data = Data.from_source(source, seed=seed, samples=samples)
    row, notes, classes = row_named(source.name), source.notes, len(data.classes)
    if row is not None and classes != CLASSES[row]:  # another task
        note = f"{source.name} has {classes} classes, {row} in the paper {CLASSES[row]}: compared with no row of it"
        row, notes = None, (*notes, note)
    parts: dict[PartName, AnyPart] = {"train": data.train, "validation": data.validation, "test": data.test}
    return DataSet(source=source, row=row, parts={name: _summary(part) for name, part in parts.items()}, notes=notes)


def _summary(part: AnyPart) -> PartSummary:
    assert isinstance(part, Part)
    largest = int(torch.bincount(part.y, minlength=1).max())
    return PartSummary(len(part), largest / max(len(part), 1))


def row_named(name: str) -> str | None:
    """Return the paper's name of a data set whose own begins with it, whatever its case, dots and hyphens."""
    return max((row for row in CLASSES if _letters(name).startswith(_letters(row))), key=len, default=None)


def _same_letters(name: str, known: Iterable[str]) -> str | None:
    return next((each for each in known if _letters(each) == _letters(name)), None)


def _letters(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())
