"""The spreadsheet of facial expressions in film stills: principal components of LPQ and of PHOG descriptors.

One header row with merged titles: an empty cell, `label`, a title over the five LPQ columns and one over the five PHOG
columns. Below, a row an image: its name, a label from 1 to 7, five LPQ and five PHOG numbers.
"""

from pathlib import Path
from typing import Any

import numpy
import pandas

from topiarist.data.columns import listed
from topiarist.data.readers.tables import read_excel
from topiarist.data.source import Source
from topiarist.errors import DataError

EXPRESSIONS = ("angry", "disgust", "fear", "happy", "sad", "surprise", "neutral")
DESCRIPTORS = ("LPQ", "PHOG")
COMPONENTS = 5
FIRST_ROW = 2  # of the samples, as a spreadsheet counts
FORM = "an image name, 'label', 5 columns under a title for LPQ and 5 under a title for PHOG"


def read_expressions(path: str | Path) -> Source:
    """Read the spreadsheet (`.xlsx`); rows with empty cells are left out, with a note that names the images."""
    place = Path(path)
    try:
        frame, notes = read_excel(place)
    except OSError as error:
        raise DataError(f"cannot read {place}: {error.strerror or error}") from error
    columns = column_names(place, [str(column) for column in frame.columns])
    rows = frame.set_axis(["image", "label", *columns], axis=1)
    rows.index = rows.index + FIRST_ROW
    rows = rows.dropna(how="all")
    complete = rows.drop(columns="image").notna().all(axis=1)
    if not complete.any():
        raise DataError(f"{place}: rows with {FORM} are needed; found {len(rows)} rows, none without empty cells")
    if not complete.all():
        left_out = [image_of(rows, row) for row in rows.index[~complete]]
        notes = [*notes, f"{len(left_out)} row(s) with empty cells left out: {listed(left_out)}"]
    kept = rows[complete]
    return Source(
        name=place.resolve().name,
        features=numbers_by_image(place, kept, columns),
        labels=expressions(place, kept),
        classes=EXPRESSIONS,
        notes=tuple(notes),
    )


def column_names(place: Path, header: list[str]) -> list[str]:
    """Name the columns after the titles above them: LPQ 1 to LPQ 5 and PHOG 1 to PHOG 5."""
    starts = (2, 2 + COMPONENTS)
    titles = [header[start] for start in starts if start < len(header)]
    wanted = ["label", *(title for start in titles for title in (start, *[""] * (COMPONENTS - 1)))]
    if len(titles) < 2 or not all(titles) or [header[1].lower(), *header[2:]] != wanted:
        shown = ", ".join(name or "(empty)" for name in header[:14])
        raise DataError(f"{place}: expected a header of 12 cells, {FORM}; found {len(header)}: {shown}")
    short = [next((name for name in DESCRIPTORS if name in title.upper()), title) for title in titles]
    distinct = short if len(set(short)) == 2 else titles
    return [f"{title} {number}" for title in distinct for number in range(1, COMPONENTS + 1)]


def image_of(rows: pandas.DataFrame, row: Any) -> str:
    """Give the name of the image in a row, or the row's number where it has none."""
    name: Any = rows.at[row, "image"]
    return f"row {row}" if pandas.isna(name) else str(name)


def numbers_by_image(place: Path, rows: pandas.DataFrame, columns: list[str]) -> pandas.DataFrame:
    """Give the components as numbers, the names of the images as the index."""
    for column in columns:
        for row, cell in rows[column].items():
            if not is_number(cell):
                raise DataError(f"{place}: {column} of {image_of(rows, row)} must be a number; found '{cell}'")
    images = pandas.Index([image_of(rows, row) for row in rows.index], name="image")
    return rows[columns].astype(float).set_axis(images, axis=0)


def expressions(place: Path, rows: pandas.DataFrame) -> Any:
    """Give the name of the expression that each label stands for."""
    for row, cell in rows["label"].items():
        if not is_number(cell) or cell not in range(1, len(EXPRESSIONS) + 1):
            raise DataError(
                f"{place}: the label of {image_of(rows, row)} must be a whole number from 1 to {len(EXPRESSIONS)};"
                f" found '{cell}'"
            )
    return numpy.array(EXPRESSIONS)[rows["label"].astype(int).to_numpy() - 1]


def is_number(cell: object) -> bool:
    """Tell a number from a text, a date or a truth value."""
    return isinstance(cell, int | float | numpy.number) and not isinstance(cell, bool | numpy.bool_)
