"""A folder of pictures or sound with a table of labels beside them, as the DCASE challenges give it."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy
import pandas
from numpy.typing import NDArray

from topiarist.data.delimited import read_delimited
from topiarist.data.label_values import as_labels
from topiarist.data.media import is_media, read_media
from topiarist.data.source import Source
from topiarist.data.table import group_values, label_column, split_labels, values_of
from topiarist.data.tidying import listed
from topiarist.errors import DataError

TABLES = ("meta.csv", "labels.csv")
BASES = ("", "audio")
LABEL_COLUMNS = ("label", "scene_label", "class", "emotion", "coarse_label", "fine_label")
GROUP_COLUMNS = ("city", "fold", "group", "person", "identifier")
SETUP = {"train": "evaluation_setup/fold1_train.csv", "test": "evaluation_setup/fold1_evaluate.csv"}
ROWS_TRIED = 20


def holds_annotations(folder: Path) -> bool:
    """Tell whether a folder holds a table of labels."""
    return any((folder / name).is_file() for name in TABLES)


@dataclass(frozen=True, kw_only=True)
class Annotated:
    """The files that a table names, row by row of `frame`, and what the table says about them.

    `target` and `group` are the columns behind `labels` and `groups`, `files` the one with the names.
    """

    frame: pandas.DataFrame
    paths: tuple[Path, ...]
    files: str
    target: str | None
    group: str | None
    labels: NDArray[Any] | None
    groups: NDArray[Any] | None
    parts: NDArray[numpy.str_] | None
    notes: tuple[str, ...]


def read_annotated(folder: Path, *, target: str | None, group: str | None, labelled: bool) -> Source:
    """Read the files that the table names, with labels and groups from its columns."""
    found = find_annotated(folder, target=target, group=group, labelled=labelled)
    media = read_media(folder, found.paths)
    return Source(
        name=folder.resolve().name,
        features=media.features,
        labels=found.labels,
        groups=found.groups,
        parts=found.parts,
        scaling=media.scaling,
        notes=(*found.notes, *media.notes),
    )


def find_annotated(folder: Path, *, target: str | None, group: str | None, labelled: bool) -> Annotated:
    """Find the files that the table names, with labels and groups from its columns, and decode none."""
    table = next(folder / name for name in TABLES if (folder / name).is_file())
    frame, notes = read_delimited(table)
    if frame.empty:
        raise DataError(f"{table} has a header and no rows")
    files, base = file_column(folder, table, frame)
    target = first_of(frame, LABEL_COLUMNS) if target is None else target
    group = first_of(frame, GROUP_COLUMNS, other_than=target) if group is None else group
    labels: NDArray[Any] | None = None
    if labelled:
        if target is None:
            raise DataError(f"{table}: say with --target which column holds the label: {listed(list(frame.columns))}")
        frame, labels, dropped = split_labels(str(table), frame, target)
        notes = [*notes, *dropped]
    elif target in frame.columns and label_column(frame, target).notna().all():
        labels = as_labels(str(table), values_of(label_column(frame, target)), training=False)
    parts, kept = evaluation_parts(folder, frame[files])
    if not kept.all():
        notes.append(f"{(~kept).sum()} file(s) in neither part of {SETUP['train']} left out")
        frame, labels = frame[kept].reset_index(drop=True), None if labels is None else labels[kept]
    return Annotated(
        frame=frame,
        paths=tuple(located(folder, table, base, name) for name in frame[files]),
        files=files,
        target=target,
        group=group,
        labels=labels,
        groups=group_values(str(table), frame, group, target=target or "") if group and labelled else None,
        parts=parts,
        notes=tuple(notes),
    )


def first_of(frame: pandas.DataFrame, names: tuple[str, ...], *, other_than: str | None = None) -> str | None:
    """Give the first of `names` that is a column."""
    return next((name for name in names if name in frame.columns and name != other_than), None)


def file_column(folder: Path, table: Path, frame: pandas.DataFrame) -> tuple[str, str]:
    """Give the first column that names files below the folder, and the subfolder they are in."""
    for column in frame.columns:
        for base in BASES:
            if any(path_below(folder, base, name) for name in frame[column].head(ROWS_TRIED)):
                return column, base
    raise DataError(f"{table}: no column names pictures or sounds below {folder}, found {listed(list(frame.columns))}")


def path_below(folder: Path, base: str, name: Any) -> Path | None:
    """Give the file `name` below the folder, None where there is none or where it would lie outside."""
    if not isinstance(name, str) or not is_media(Path(name)):
        return None
    relative = PurePosixPath(name)
    if relative.is_absolute() or ".." in relative.parts:
        return None
    path = folder / base / relative
    return path if path.is_file() else None


def located(folder: Path, table: Path, base: str, name: Any) -> Path:
    """Give the file that a row names, refusing one that is missing or outside the folder."""
    path = path_below(folder, base, name)
    if path is None:
        raise DataError(f"{table} names {name}, which is no picture or sound below {folder / base}")
    return path


def evaluation_parts(
    folder: Path, names: "pandas.Series[Any]"
) -> tuple[NDArray[numpy.str_] | None, NDArray[numpy.bool_]]:
    """Mark train and test where the folder has an evaluation setup, and tell which rows belong to either."""
    if not all((folder / path).is_file() for path in SETUP.values()):
        return None, numpy.ones(len(names), dtype=bool)
    members = {part: set(read_delimited(folder / path)[0].iloc[:, 0]) for part, path in SETUP.items()}
    marks = numpy.asarray([next((part for part in members if name in members[part]), "") for name in names])
    kept = marks != ""
    if not kept.any():
        raise DataError(f"{folder}: no file of the table is named in {SETUP['train']} or {SETUP['test']}")
    return marks[kept], kept
