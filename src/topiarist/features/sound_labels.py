"""Which sounds a folder holds, and what is known of each: by a table beside them, or one folder a class.

The DCASE challenges' tables have no columns for the finer class and the city: these are the first pieces of the file's
name and of the identifier, as in airport-barcelona-0-0-a.wav and barcelona-0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.data.annotated import Annotated, find_annotated, first_of, holds_annotations
from topiarist.data.folder import find_in_classes, ignored, media_in
from topiarist.data.label_values import as_labels
from topiarist.data.sound import SOUND_ENDINGS
from topiarist.data.table import group_values
from topiarist.errors import DataError

FINE_COLUMNS = ("fine_label", "fine", "subclass")
IDENTIFIER = "identifier"
SEPARATOR = "-"


@dataclass(frozen=True, kw_only=True)
class LabelledSounds:
    """Files of sound with a label each (n,), what else is known of them, and what was decided on the way."""

    paths: tuple[Path, ...]
    labels: NDArray[Any]
    finer: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None
    parts: NDArray[numpy.str_] | None = None
    notes: tuple[str, ...] = ()


def find_sounds(folder: Path, *, target: str | None, finer: str | None, group: str | None) -> LabelledSounds:
    """Find the sounds below a folder, by its meta.csv or labels.csv or else by its class folders."""
    if not folder.is_dir():
        found = "it is no folder" if folder.exists() else "there is no such folder"
        raise DataError(f"cannot read {folder}: {found}; give a folder of sounds")
    try:
        if holds_annotations(folder):
            return find_in_table(folder, target=target, finer=finer, group=group)
        columns = {"target": target, "finer": finer, "group": group}
        asked = next((f"{name} {column}" for name, column in columns.items() if column is not None), None)
        if asked is not None:
            raise DataError(f"{folder} has no meta.csv or labels.csv to choose a column from: leave out --{asked}")
        return find_in_folders(folder)
    except OSError as error:
        raise DataError(f"cannot read {folder}: {error.strerror or error}") from error


def find_in_table(folder: Path, *, target: str | None, finer: str | None, group: str | None) -> LabelledSounds:
    """Find the sounds that a table names; rows without a label are left out."""
    table = find_annotated(folder, target=target, group=group, labelled=True)
    check_sounds(table.paths)
    assert table.labels is not None
    groups = table.groups
    if group is None and table.group == IDENTIFIER and groups is not None:
        groups = first_pieces([str(identifier) for identifier in groups])
    fine, notes = finer_labels(folder, table, table.labels, column=finer)
    return LabelledSounds(
        paths=table.paths,
        labels=table.labels,
        finer=fine,
        groups=groups,
        parts=table.parts,
        notes=(*table.notes, *notes),
    )


def find_in_folders(folder: Path) -> LabelledSounds:
    """Find the sounds in class folders."""
    found = find_in_classes(folder)
    if not found.paths:
        loose = len(media_in(folder))
        inside = f"{loose} file(s) without labels" if loose else "none"
        raise DataError(f"no labelled sounds in {folder}, found {inside}: give one folder a class or a meta.csv")
    check_sounds(found.paths)
    labels = as_labels(str(folder), found.labels, training=True)
    notes = ignored(folder, len(found.paths))
    return LabelledSounds(paths=found.paths, labels=labels, parts=found.parts, notes=notes)


def check_sounds(paths: Sequence[Path]) -> None:
    """Refuse pictures."""
    picture = next((path for path in paths if path.suffix.lower() not in SOUND_ENDINGS), None)
    if picture is not None:
        raise DataError(f"{picture} is no sound: only sounds are described")


def finer_labels(
    folder: Path, table: Annotated, labels: NDArray[Any], *, column: str | None
) -> tuple[NDArray[Any] | None, tuple[str, ...]]:
    """Give the finer classes, from the column asked for or, where they divide the labels, from what is found."""
    if column is not None:
        fine = group_values(str(folder), table.frame, column, target="")
        torn = torn_class(fine, labels)
        if torn is not None:
            raise DataError(f"{folder}: {column} is no finer than {table.target}: {torn}")
        return fine, ()
    found = first_of(table.frame, FINE_COLUMNS, other_than=table.target)
    names = [PurePosixPath(name).stem for name in table.frame[table.files]]
    if found is not None and table.frame[found].isna().any():
        return None, (f"{found} not used: some values are missing",)
    if found is not None:
        fine = group_values(str(folder), table.frame, found, target="")
    elif IDENTIFIER in table.frame.columns and all(SEPARATOR in name for name in names):
        fine = first_pieces(names)
    else:
        return None, ()
    torn = torn_class(fine, labels)
    if torn is not None:
        return None, (f"no finer classes used: {torn}",)
    return (fine if len(numpy.unique(fine)) > len(numpy.unique(labels)) else None), ()


def torn_class(fine: NDArray[Any], labels: NDArray[Any]) -> str | None:
    """Name a finer class that lies in two classes, None where there is none."""
    home: dict[Any, Any] = {}
    for part, label in zip(fine.tolist(), labels.tolist(), strict=True):
        if home.setdefault(part, label) != label:
            return f"{part} lies in {home[part]} and in {label}"
    return None


def first_pieces(names: Sequence[str]) -> NDArray[numpy.str_]:
    """Give what comes before the first hyphen of each name."""
    return numpy.asarray([name.split(SEPARATOR)[0] for name in names], dtype=numpy.str_)
