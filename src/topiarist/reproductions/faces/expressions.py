"""Facial expressions in film stills, five principal components of LPQ and five of PHOG: a spreadsheet, and a stand-in.

The spreadsheet has one header row with merged titles: an empty cell, `label`, a title over the five LPQ columns and one
over the five PHOG columns. Below, one row per image: its name, a label from 1 to 7, five LPQ and five PHOG numbers. Its
licence does not let it be passed on. The stand-in has its shape, class sizes and difficulty, and says nothing about
faces.
"""

import math
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy
import pandas

from topiarist.data.columns.names import listed
from topiarist.data.readers.table_files import read_excel
from topiarist.data.source import Source
from topiarist.errors import DataError
from topiarist.randomness import array_generator
from topiarist.reproductions.faces import paper

EXPRESSIONS = tuple(paper.CLASS_SIZES)
DESCRIPTORS = ("LPQ", "PHOG")
COMPONENTS = 5  # principal components of each descriptor, as in the paper's spreadsheet
FIRST_ROW = 2  # of the samples, as a spreadsheet counts
FORM = "an image name, 'label', 5 columns under a title for LPQ and 5 under a title for PHOG"

SPREAD = {"LPQ": (0.031, 0.022, 0.017, 0.014, 0.012), "PHOG": (0.105, 0.071, 0.052, 0.041, 0.034)}
MEAN = {"LPQ": 0.02, "PHOG": -0.06}  # of the leading component
SEPARATION = 0.48  # of a class mean from the centre, in standard deviations within a class
UNEVENNESS = 0.2  # standard deviation of the logarithm of a class's spread
FREEDOM = 4  # of Student's distribution: the tails are heavy


def read_expressions(path: str | Path) -> Source:
    """Read the spreadsheet (`.xlsx`); rows with empty cells are left out, with a note that names the images."""
    place = Path(path)
    try:
        frame, notes, *_ = read_excel(place)
    except OSError as error:
        raise DataError(f"cannot read {place}: {error.strerror or error}") from error
    columns = _column_names(place, [str(column) for column in frame.columns])
    rows = frame.set_axis(["image", "label", *columns], axis=1)
    rows.index = rows.index + FIRST_ROW
    rows = rows.dropna(how="all")
    complete = rows.drop(columns="image").notna().all(axis=1)
    if not complete.any():
        raise DataError(f"{place}: rows with {FORM} are needed; found {len(rows)} rows, none without empty cells")
    images = rows["image"].where(rows["image"].notna(), [f"row {row}" for row in rows.index]).astype(str)
    if not complete.all():
        left_out = images[~complete].tolist()
        notes = [*notes, f"{len(left_out)} row(s) with empty cells left out: {listed(left_out)}"]
    kept = rows[complete].set_axis(pandas.Index(images[complete], name="image"), axis=0)
    for name, column in kept[["label", *columns]].items():
        _check_cells(place, name, column)
    return Source(
        name=place.resolve().name,
        features=kept[columns].astype(float),
        labels=numpy.array(EXPRESSIONS)[kept["label"].astype(int).to_numpy() - 1],
        classes=EXPRESSIONS,
        notes=tuple(notes),
    )


def _column_names(place: Path, header: list[str]) -> list[str]:
    """Name the columns after the titles above them: LPQ 1 to LPQ 5 and PHOG 1 to PHOG 5."""
    titles = header[2::COMPONENTS][:2]
    wanted = ["label", *(title for start in titles for title in (start, *[""] * (COMPONENTS - 1)))]
    if len(titles) < 2 or not all(titles) or [header[1].lower(), *header[2:]] != wanted:
        shown = ", ".join(name or "(empty)" for name in header[:14])
        raise DataError(f"{place}: expected a header of 12 cells, {FORM}; found {len(header)}: {shown}")
    short = [next((name for name in DESCRIPTORS if name in title.upper()), title) for title in titles]
    distinct = short if len(set(short)) == 2 else titles
    return [f"{title} {number}" for title in distinct for number in range(1, COMPONENTS + 1)]


def _check_cells(place: Path, name: Hashable, column: "pandas.Series[Any]") -> None:
    """Raise DataError for a label that is none, and for a component that is a text, a date or a truth value."""
    what, wanted = name, "a number"
    if name == "label":
        what, wanted = "the label", f"a whole number from 1 to {len(EXPRESSIONS)}"
    for image, cell in column.items():
        number = isinstance(cell, int | float | numpy.number) and not isinstance(cell, bool | numpy.bool_)
        if not number or (name == "label" and cell not in range(1, len(EXPRESSIONS) + 1)):
            raise DataError(f"{place}: {what} of {image} must be {wanted}; found '{cell}'")


def face_stand_in(seed: int = 0) -> Source:
    """Return 674 synthetic samples of 10 features in 7 classes; every seed gives others of the same difficulty.

    The means of the seven classes are equally far from each other, so near that a 10–20–7 network names about a quarter
    of the samples; the classes differ a little in their spread too, and the tails are heavy. In each block the spread
    falls from component to component; the two blocks have units of their own.
    """
    random = array_generator(seed, "face stand-in")
    directions = numpy.linalg.qr(random.normal(size=(2 * COMPONENTS, len(EXPRESSIONS))))[0].T
    numbers = random.permutation(numpy.repeat(numpy.arange(len(EXPRESSIONS)), list(paper.CLASS_SIZES.values())))
    noise = random.standard_t(FREEDOM, size=(len(numbers), 2 * COMPONENTS)) * math.sqrt(1 - 2 / FREEDOM)
    unevenness = numpy.exp(UNEVENNESS * random.normal(size=directions.shape))
    values = SEPARATION * directions[numbers] + unevenness[numbers] * noise
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    spread = numpy.concatenate([SPREAD[name] for name in DESCRIPTORS])
    mean = numpy.concatenate([[MEAN[name], *[0.0] * (COMPONENTS - 1)] for name in DESCRIPTORS])
    columns = [f"{name} {number}" for name in DESCRIPTORS for number in range(1, COMPONENTS + 1)]
    return Source(
        name="face stand-in",
        features=pandas.DataFrame(values * spread + mean, columns=columns),
        labels=numpy.array(EXPRESSIONS)[numbers],
        classes=EXPRESSIONS,
    )
