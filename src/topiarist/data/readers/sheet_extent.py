"""How much a workbook asks for: one cell in the last corner makes a sheet 17 billion cells, and 300 KB 200 MB."""

import zipfile
from pathlib import Path
from xml.parsers import expat

from topiarist.errors import DataError

FEW_CELLS = 2**22  # 32 MB of references: any sheet may be that large
MOST_BLANK = 100  # blank cells for each one that is written: what people write by hand has a few
MOST_EXPANDED = 300  # bytes for each that is stored: deflate makes at most 1,032; rows that only differ in place, 30
_EXPANDED_BYTES = 2**24  # which are parsed in a second or two, whatever they are
_LETTERS = 26
_LONGEST = 8  # letters or digits of a place: no sheet has as many columns or rows


class _Extent:
    """The rows and columns of a sheet, as its elements tell."""

    def __init__(self) -> None:
        self.rows = self.columns = self.cells = self._row = self._column = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Take an element into account; rows and cells without a place follow the one before."""
        kind, place = name.rpartition("}")[2], attributes.get("r", "")
        if kind == "row":
            self._row = int(place[:_LONGEST]) if place.isdecimal() else self._row + 1
            self._column = 0
        elif kind == "c":
            letters = place.rstrip("0123456789")
            digits = place[len(letters) :][:_LONGEST]
            self._row = int(digits) if digits else self._row
            self._column = _number_of(letters[:_LONGEST]) if letters else self._column + 1
            self.cells += 1
            self.rows, self.columns = max(self.rows, self._row), max(self.columns, self._column)

    @property
    def is_sparse(self) -> bool:
        """Return whether it is far more than what is written in it."""
        return self.rows * self.columns > max(FEW_CELLS, MOST_BLANK * self.cells)


def check_extent(path: Path, archive: zipfile.ZipFile) -> None:
    """Raise where a part of a workbook would be far larger in memory, or to parse, than what is written in it."""
    for member in archive.infolist():
        if member.file_size > max(_EXPANDED_BYTES, MOST_EXPANDED * member.compress_size):
            raise DataError(
                f"{path}: {member.filename} of {member.compress_size:,} bytes takes {member.file_size:,} when"
                " expanded, which no table does: save it as .csv"
            )
        if not member.filename.lower().endswith(".xml") or "worksheet" not in member.filename.lower():
            continue
        found, parser = _Extent(), expat.ParserCreate(namespace_separator="}")
        parser.StartElementHandler = found.start
        try:
            with archive.open(member) as stream:
                parser.ParseFile(stream)
        except expat.ExpatError:
            return  # who reads it says what is wrong with it
        if found.is_sparse:
            raise DataError(
                f"{path}: {member.filename} has {found.cells:,} cells that reach to row {found.rows:,} and column"
                f" {found.columns:,}: delete what is far from the table, or save it as .csv"
            )


def _number_of(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * _LETTERS + ord(letter) - ord("A") + 1
    return number
