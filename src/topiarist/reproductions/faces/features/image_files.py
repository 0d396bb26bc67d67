"""Which pictures a folder of faces holds, and their labels: by a table beside them, or one folder a class."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray
from PIL import Image, ImageOps

from topiarist.data.columns import listed
from topiarist.data.labels import as_labels
from topiarist.data.readers.folders import (
    IMAGE_ENDINGS,
    LABEL_COLUMNS,
    TABLES,
    file_column,
    find_in_classes,
    first_of,
    ignored,
    located,
    media_in,
)
from topiarist.data.readers.images import DAMAGE, DEEP_MODES, eight_bits, opened
from topiarist.data.readers.tables import read_delimited, split_labels
from topiarist.errors import DataError
from topiarist.reproductions.faces.features.detection import Picture


@dataclass(frozen=True, kw_only=True)
class LabelledFiles:
    """Files of pictures with a label each (n,), and what was decided on the way."""

    paths: tuple[Path, ...]
    labels: NDArray[Any]
    notes: tuple[str, ...]


def find_labelled(folder: Path, *, target: str | None) -> LabelledFiles:
    """Find the pictures below a folder, by its labels.csv or meta.csv or else by its class folders."""
    if not folder.is_dir():
        found = "it is no folder" if folder.exists() else "there is no such folder"
        raise DataError(f"cannot read {folder}: {found}; give a folder of pictures")
    try:
        table = next((folder / name for name in TABLES if (folder / name).is_file()), None)
        if table is not None:
            return find_in_table(folder, table, target=target)
        if target is not None:
            raise DataError(f"{folder} has no labels.csv or meta.csv to choose a column from: leave out {target}")
        return find_in_folders(folder)
    except OSError as error:
        raise DataError(f"cannot read {folder}: {error.strerror or error}") from error


def find_in_table(folder: Path, table: Path, *, target: str | None) -> LabelledFiles:
    """Find the pictures that a table names; rows without a label are left out."""
    frame, notes = read_delimited(table)
    if frame.empty:
        raise DataError(f"{table} has a header and no rows")
    files, base = file_column(folder, table, frame)
    target = first_of(frame, LABEL_COLUMNS, other_than=files) if target is None else target
    if target is None:
        raise DataError(f"{table}: say with --target which column holds the label: {listed(list(frame.columns))}")
    frame, labels, dropped = split_labels(str(table), frame, target)
    paths = [located(folder, table, base, name) for name in frame[files]]
    check_pictures(paths)
    return LabelledFiles(paths=tuple(paths), labels=labels, notes=(*notes, *dropped))


def find_in_folders(folder: Path) -> LabelledFiles:
    """Find the pictures in class folders; train, validation and test folders above them are taken together."""
    found = find_in_classes(folder)
    if not found.paths:
        loose = len(media_in(folder))
        instead = f"{loose} file(s) without labels" if loose else "none"
        raise DataError(f"no labelled pictures in {folder}, found {instead}: give one folder a class or a labels.csv")
    check_pictures(found.paths)
    assert found.labels is not None
    labels = as_labels(str(folder), found.labels, training=True)
    parts = sorted({path.parents[1].name for path in found.paths if path.parents[1] != folder})
    joined = (f"{', '.join(parts)} taken together",) if parts else ()
    return LabelledFiles(paths=found.paths, labels=labels, notes=(*joined, *ignored(folder, len(found.paths))))


def check_pictures(paths: Sequence[Path]) -> None:
    """Refuse sounds."""
    sound = next((path for path in paths if path.suffix.lower() not in IMAGE_ENDINGS), None)
    if sound is not None:
        raise DataError(f"{sound} is no picture: only pictures are described")


def read_grey(path: Path) -> Picture:
    """Decode one picture to grey (height, width), as upright as its metadata says; transparency is left out."""
    with opened(path) as picture:
        if picture.mode in DEEP_MODES:
            raise DataError(f"{path} has 32 bits a channel; save it with 8 or 16")
        return numpy.asarray(upright(eight_bits(picture)).convert("L"))


def upright(picture: Image.Image) -> Image.Image:
    """Turn a picture as its metadata says; damaged metadata is not used."""
    picture.load()
    try:
        return ImageOps.exif_transpose(picture)
    except DAMAGE:
        return picture
