"""Which sounds a folder holds, and what is known of each: by a table beside them, or one folder per class.

The DCASE challenges' tables have no columns for the finer class and the city: these are the first pieces of the file's
name and of the identifier, as in airport-barcelona-0-0-a.wav and barcelona-0.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.data.labels import as_labels
from topiarist.data.readers.folders import (
    LabelTable,
    MediaFiles,
    find_annotated,
    find_in_classes,
    first_of,
    holds_annotations,
    ignored,
    media_in,
)
from topiarist.data.readers.sound import SOUND_ENDINGS
from topiarist.data.readers.tables import group_values
from topiarist.errors import DataError

_FINE_COLUMNS = ("fine_label", "fine", "subclass")
_IDENTIFIER = "identifier"


def find_sounds(folder: Path, *, target: str | None, finer: str | None, group: str | None) -> MediaFiles:
    """Find the sounds below a folder, by its meta.csv or labels.csv or else by its class folders."""
    if not folder.is_dir():
        found = "it is no folder" if folder.exists() else "there is no such folder"
        raise DataError(f"cannot read {folder}: {found}; name a folder of sounds")
    try:
        if holds_annotations(folder):
            return _find_in_table(folder, target=target, finer=finer, group=group)
        for option, column in {"target": target, "finer": finer, "group": group}.items():
            if column is not None:
                asked = f"leave out --{option} {column}"
                raise DataError(f"{folder} has no meta.csv or labels.csv to choose a column from: {asked}")
        return _find_in_folders(folder)
    except OSError as error:
        raise DataError(f"cannot read {folder}: {error.strerror or error}") from error


def _find_in_table(folder: Path, *, target: str | None, finer: str | None, group: str | None) -> MediaFiles:
    found = find_annotated(folder, target=target, group=group, labelled=True)
    _check_sounds(found)
    assert found.labels is not None and found.table is not None
    groups = found.groups
    if group is None and found.table.group == _IDENTIFIER and groups is not None:
        groups = _first_pieces(groups)
    fine, notes = _finer_labels(folder, found.table, found.labels, column=finer)
    return replace(found, finer=fine, groups=groups, notes=(*found.notes, *notes))


def _find_in_folders(folder: Path) -> MediaFiles:
    found = find_in_classes(folder)
    if not found.paths or found.labels is None:
        loose = len(media_in(folder))
        inside = f"{loose} file(s) without labels" if loose else "none"
        raise DataError(f"no labelled sounds in {folder}, found {inside}: use one folder per class or a meta.csv")
    _check_sounds(found)
    labels = as_labels(str(folder), found.labels, training=True)
    return replace(found, labels=labels, notes=ignored(folder, len(found.paths)))


def _check_sounds(found: MediaFiles) -> None:
    image = next((path for path in found.paths if path.suffix.lower() not in SOUND_ENDINGS), None)
    if image is not None:
        raise DataError(f"{image} is no sound: only sounds are described")


def _finer_labels(
    folder: Path, table: LabelTable, labels: NDArray[Any], *, column: str | None
) -> tuple[NDArray[Any] | None, tuple[str, ...]]:
    """Return the finer classes, from the column asked for or, where they divide the labels, from what is found."""
    names = [PurePosixPath(name).stem for name in table.frame[table.files]]
    found = first_of(table.frame, _FINE_COLUMNS, other_than=table.target) if column is None else column
    if column is None and found is not None and table.frame[found].isna().any():
        return None, (f"{found} not used: some values are missing",)
    if found is not None:
        fine = group_values(str(folder), table.frame, found, target="")
    elif _IDENTIFIER in table.frame.columns and all("-" in name for name in names):
        fine = _first_pieces(names)
    else:
        return None, ()
    torn = _torn_class(fine, labels)
    if torn is not None and column is not None:
        raise DataError(f"{folder}: {column} is no finer than {table.target}: {torn}")
    if torn is not None:
        return None, (f"no finer classes used: {torn}",)
    finer = column is not None or len(numpy.unique(fine)) > len(numpy.unique(labels))
    return (fine if finer else None), ()


def _torn_class(fine: NDArray[Any], labels: NDArray[Any]) -> str | None:
    """Name a finer class that lies in two classes, None where there is none."""
    home: dict[Any, Any] = {}
    for part, label in zip(fine.tolist(), labels.tolist(), strict=True):
        if home.setdefault(part, label) != label:
            return f"{part} lies in {home[part]} and in {label}"
    return None


def _first_pieces(names: Iterable[Any]) -> NDArray[numpy.str_]:
    """Return what comes before the first hyphen of each name."""
    return numpy.asarray([str(name).split("-")[0] for name in names], dtype=numpy.str_)
