"""Folders of images or sound: one folder per class, or a table of labels beside the files (DCASE challenges)."""

from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy
from numpy.typing import NDArray

from topiarist.data.columns.names import listed
from topiarist.data.labels import as_labels
from topiarist.data.readers.sound import SOUND_ENDINGS, read_sounds
from topiarist.data.readers.table_files import read_delimited
from topiarist.data.readers.tables import group_values
from topiarist.data.readers.target_columns import known_labels, split_labels
from topiarist.data.source import Source
from topiarist.errors import DataError
from topiarist.files import check_readable

if TYPE_CHECKING:
    import pandas

IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
MEDIA_ENDINGS = (*IMAGE_ENDINGS, *SOUND_ENDINGS)
TABLES = ("meta.csv", "labels.csv")
LABEL_COLUMNS = ("label", "scene_label", "class", "emotion", "coarse_label", "fine_label")
_GROUP_COLUMNS = ("city", "fold", "group", "person", "identifier")
_CITIES = ("city", "identifier")  # of the DCASE challenges, where nobody means anything else
_BASES = ("", "audio")
_SETUP = {"train": "evaluation_setup/fold1_train.csv", "test": "evaluation_setup/fold1_evaluate.csv"}
_PARTS = {"train": "train", "test": "test", "validation": "validation", "valid": "validation", "val": "validation"}
_ROWS_TRIED = 20  # of a column, to see whether it names files: some may be missing, and are then refused by name


@dataclass(frozen=True, kw_only=True)
class LabelTable:
    """A table of labels: one row of `frame` per file, the columns of names, labels and groups."""

    frame: "pandas.DataFrame"
    files: str
    target: str | None
    group: str | None


@dataclass(frozen=True, kw_only=True)
class MediaFiles:
    """Files of images or sound, and what is known of each (n,); `table` where a table names them."""

    paths: tuple[Path, ...]
    labels: NDArray[Any] | None
    groups: NDArray[Any] | None = None
    finer: NDArray[Any] | None = None
    parts: NDArray[numpy.str_] | None = None
    notes: tuple[str, ...] = ()
    table: LabelTable | None = None


def read_media(place: Path, *, labelled: bool, target: str | None = None, group: str | None = None) -> Source:
    """Decode the samples that `find_media` finds, which must be of one kind."""
    found = find_media(place, labelled=labelled, target=target, group=group)
    images = sum(path.suffix.lower() in IMAGE_ENDINGS for path in found.paths)
    if 0 < images < len(found.paths):
        raise DataError(f"{place} mixes {images} images with {len(found.paths) - images} sounds; use one kind")
    from topiarist.data.readers.images import read_images  # noqa: PLC0415  # it imports Pillow

    features, notes = read_images(found.paths) if images else read_sounds(found.paths)
    in_classes = found.labels is not None and found.table is None
    return Source(
        name=place.resolve().name,
        features=features,
        labels=found.labels,
        groups=found.groups,
        parts=found.parts,
        scaling="pixels" if images else "none",
        notes=(*found.notes, *notes, *(ignored(place, len(found.paths)) if in_classes else ())),
    )


def find_media(place: Path, *, labelled: bool, target: str | None = None, group: str | None = None) -> MediaFiles:
    """Find the samples of a folder, by its table or else its class folders, and decode none.

    For prediction, without `labelled`, also files in the folder itself, or a single file.
    """
    if not place.is_dir():
        return MediaFiles(paths=(place,), labels=None)
    if holds_annotations(place):
        return find_annotated(place, target=target, group=group, labelled=labelled)
    found = find_in_classes(place)
    if found.paths and found.labels is not None:
        return replace(found, labels=as_labels(str(place), found.labels, training=labelled))
    loose = media_in(place)
    if loose and not labelled:
        return MediaFiles(paths=tuple(loose), labels=None)
    names = sorted(path.name for path in place.iterdir())
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    raise DataError(
        f"{place} holds no data that is understood, found {shown or 'nothing'}: one folder per class with images or"
        " sound, a meta.csv or labels.csv, IDX files, CIFAR batches (.bin) or SVHN files (.mat) are read"
    )


def find_in_classes(folder: Path) -> MediaFiles:
    """Find the files in class folders, by name, perhaps below folders of parts."""
    inside = _folders_in(folder)
    parts = {path: _PARTS[path.name.lower()] for path in inside if path.name.lower() in _PARTS}
    split = bool(parts) and len(parts) == len(inside) and all(_folders_in(path) for path in parts)
    samples = [
        (path, category.name, part)
        for place, part in (parts.items() if split else [(folder, "")])
        for category in _folders_in(place)
        for path in media_in(category)
    ]
    marks = numpy.asarray([part for _, _, part in samples], dtype=numpy.str_)
    return MediaFiles(
        paths=tuple(path for path, _, _ in samples),
        labels=numpy.asarray([label for _, label, _ in samples], dtype=numpy.str_),
        parts=marks if split and len(set(marks)) > 1 else None,
    )


def _folders_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def media_in(folder: Path) -> list[Path]:
    """Return the images and sounds directly inside, by name; raise for a pipe, a socket or a device of such a name."""
    found = sorted(path for path in folder.iterdir() if is_media(path))
    for path in found:
        check_readable(path)
    return [path for path in found if path.is_file()]


def is_media(path: Path) -> bool:
    """Return whether a file has the ending of an image or of sound; hidden files have none."""
    return path.suffix.lower() in MEDIA_ENDINGS and not path.name.startswith(".")


def ignored(folder: Path, used: int) -> tuple[str, ...]:
    """Note how many files below the folder are not samples."""
    visible = sum(not path.is_dir() and not path.name.startswith(".") for path in folder.rglob("*"))
    return (f"{visible - used} file(s) that are no samples left out",) if visible > used else ()


def holds_annotations(folder: Path) -> bool:
    """Return whether a folder holds a table of labels; raise where what has its name is none that can be read."""
    for name in TABLES:
        check_readable(folder / name)
    return any((folder / name).is_file() for name in TABLES)


def find_annotated(folder: Path, *, target: str | None, group: str | None, labelled: bool) -> MediaFiles:
    """Find the files that the table names, with labels and groups from its columns, and decode none."""
    path = next(folder / name for name in TABLES if (folder / name).is_file())
    frame, notes, *_ = read_delimited(path)
    if frame.empty:
        raise DataError(f"{path} has a header and no rows")
    files, base = file_column(folder, path, frame)
    others = _others(frame, files)
    if target is None and labelled and len(others) == 1:
        target = others[0]  # a single column beside that of the files holds the labels, whatever it is called
    target, group, chosen = _label_and_group(path, frame, others, target=target, group=group)
    labels: NDArray[Any] | None
    if labelled:
        if target is None:
            raise DataError(f"{path}: name the column that holds the label with --target: {listed(others)}")
        frame, labels, dropped = split_labels(str(path), frame, target)
        notes += dropped
    else:
        labels, _ = known_labels(str(path), frame, target)
    parts, kept = _evaluation_parts(folder, frame[files])
    if not kept.all():
        notes.append(f"{(~kept).sum()} file(s) in neither part of {_SETUP['train']} left out")
        frame, labels = frame[kept].reset_index(drop=True), None if labels is None else labels[kept]
    return MediaFiles(
        paths=tuple(located(folder, path, base, name) for name in frame[files]),
        labels=labels,
        groups=group_values(str(path), frame, group, target=target or "") if group and labelled else None,
        parts=parts,
        notes=(*notes, *(chosen if labelled else ())),
        table=LabelTable(frame=frame, files=files, target=target, group=group),
    )


def _label_and_group(
    path: Path, frame: "pandas.DataFrame", others: list[str], *, target: str | None, group: str | None
) -> tuple[str | None, str | None, tuple[str, ...]]:
    """Return the columns of labels and groups, and notes where others might have been meant."""
    notes = []
    if target is None:
        target = first_of(frame[others], LABEL_COLUMNS)
        if sum(name in LABEL_COLUMNS for name in others) > 1:
            notes.append(f"labels are those of column {target} of {path.name}; --target names another one")
    if group is None:
        group = first_of(frame, _GROUP_COLUMNS, other_than=target)
        if group is not None and group not in _CITIES:
            notes.append(f"files with the same {group} stay in one part; --group names another column")
    return target, group, tuple(notes)


def _others(frame: "pandas.DataFrame", files: str) -> list[str]:
    """Return the columns but that of the files."""
    return [column for column in frame.columns if column != files]


def first_of(frame: "pandas.DataFrame", names: tuple[str, ...], *, other_than: str | None = None) -> str | None:
    """Return the first of `names` that is a column."""
    return next((name for name in names if name in frame.columns and name != other_than), None)


def file_column(folder: Path, table: Path, frame: "pandas.DataFrame") -> tuple[str, str]:
    """Return the first column that names files below the folder, and the subfolder they are in."""
    for column in frame.columns:
        for base in _BASES:
            if any(_path_below(folder, base, name) for name in frame[column].head(_ROWS_TRIED)):
                return column, base
    raise DataError(f"{table}: no column names images or sounds below {folder}, found {listed(list(frame.columns))}")


def located(folder: Path, table: Path, base: str, name: Any) -> Path:
    """Return the file that a row names; raise where it is missing or outside the folder."""
    path = _path_below(folder, base, name)
    if path is None:
        raise DataError(f"{table} names {name}, which is no image or sound below {folder / base}")
    return path


def _path_below(folder: Path, base: str, name: Any) -> Path | None:
    """Return the file `name` below the folder, None where there is none or where it would lie outside."""
    if not isinstance(name, str) or not is_media(Path(name)):
        return None
    relative = PurePosixPath(name)
    path = folder / base / relative
    return path if not relative.is_absolute() and ".." not in relative.parts and path.is_file() else None


def _evaluation_parts(
    folder: Path, names: "pandas.Series[Any]"
) -> tuple[NDArray[numpy.str_] | None, NDArray[numpy.bool_]]:
    """Mark train and test where the folder has an evaluation setup, and which rows belong to either."""
    if not all((folder / path).is_file() for path in _SETUP.values()):
        return None, numpy.ones(len(names), dtype=bool)
    members = {part: set(read_delimited(folder / path).frame.iloc[:, 0]) for part, path in _SETUP.items()}
    marks = numpy.asarray([next((part for part in members if name in members[part]), "") for name in names])
    kept = marks != ""
    if not kept.any():
        raise DataError(f"{folder}: no file of the table is named in {_SETUP['train']} or {_SETUP['test']}")
    return marks[kept], kept
