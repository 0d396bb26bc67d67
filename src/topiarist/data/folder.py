"""A folder with one folder a class, of pictures or sound, and perhaps train, validation and test folders above."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy
from numpy.typing import NDArray

from topiarist.data.label_values import as_labels
from topiarist.data.media import is_media, read_media
from topiarist.data.source import Source
from topiarist.errors import DataError

PARTS = {"train": "train", "test": "test", "validation": "validation", "valid": "validation", "val": "validation"}


@dataclass(frozen=True, kw_only=True)
class ClassFolders:
    """The files in class folders with the name of their class each, and their part where parts lie above."""

    paths: tuple[Path, ...]
    labels: NDArray[numpy.str_]
    parts: NDArray[numpy.str_] | None


def read_folder(folder: Path, *, labelled: bool) -> Source:
    """Read class folders; for prediction, also files that lie in the folder itself."""
    found = find_in_classes(folder)
    if not found.paths:
        if labelled or not media_in(folder):
            raise nothing_found(folder)
        return read_loose(folder, media_in(folder))
    media = read_media(folder, found.paths)
    return Source(
        name=folder.resolve().name,
        features=media.features,
        labels=as_labels(str(folder), found.labels, training=labelled),
        parts=found.parts,
        scaling=media.scaling,
        notes=(*media.notes, *ignored(folder, len(found.paths))),
    )


def find_in_classes(folder: Path) -> ClassFolders:
    """Find the files in class folders, by name, perhaps below folders of parts."""
    parts = {path: PARTS[path.name.lower()] for path in folders_in(folder) if path.name.lower() in PARTS}
    split = bool(parts) and len(parts) == len(folders_in(folder)) and all(folders_in(path) for path in parts)
    samples = [
        (path, category.name, part)
        for place, part in (parts.items() if split else [(folder, "")])
        for category in folders_in(place)
        for path in media_in(category)
    ]
    marks = numpy.asarray([part for _, _, part in samples], dtype=numpy.str_)
    return ClassFolders(
        paths=tuple(path for path, _, _ in samples),
        labels=numpy.asarray([label for _, label, _ in samples], dtype=numpy.str_),
        parts=marks if split and len(set(marks)) > 1 else None,
    )


def read_loose(place: Path, paths: Sequence[Path]) -> Source:
    """Read files without labels, in the order given."""
    media = read_media(place, paths)
    return Source(
        name=place.resolve().name,
        features=media.features,
        labels=None,
        scaling=media.scaling,
        notes=media.notes,
    )


def folders_in(folder: Path) -> list[Path]:
    """Give the folders directly inside, hidden ones left out, by name."""
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def media_in(folder: Path) -> list[Path]:
    """Give the pictures and sounds directly inside, by name."""
    return sorted(path for path in folder.iterdir() if is_media(path) and path.is_file())


def ignored(folder: Path, used: int) -> tuple[str, ...]:
    """Note how many files below the folder are not samples."""
    visible = sum(path.is_file() and not path.name.startswith(".") for path in folder.rglob("*"))
    return (f"{visible - used} file(s) that are no samples left out",) if visible > used else ()


def nothing_found(folder: Path) -> DataError:
    """Say what the folder holds instead of samples."""
    names = sorted(path.name for path in folder.iterdir())
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return DataError(
        f"{folder} holds no data that is understood, found {shown or 'nothing'}: one folder a class with pictures or"
        " sound, a meta.csv or labels.csv, IDX files, CIFAR batches (.bin) or SVHN files (.mat) are read"
    )
