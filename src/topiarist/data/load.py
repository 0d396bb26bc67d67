"""From a name, a file or a folder to raw samples, and to a `Data`."""

import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy

from topiarist.data.columns.choices import ColumnChoices
from topiarist.data.limits import expanded, read_up_to
from topiarist.data.preparation import PreparationOptions
from topiarist.data.readers.arrays import read_arrays
from topiarist.data.readers.bundled import BUNDLED, read_bundled
from topiarist.data.readers.catalogue import CATALOGUE
from topiarist.data.readers.cifar import holds_cifar, read_cifar_archive, read_cifar_batch, read_cifar_folder
from topiarist.data.readers.folders import MEDIA_ENDINGS, holds_annotations, read_media
from topiarist.data.readers.idx import holds_idx, read_idx_file, read_idx_folder
from topiarist.data.readers.matlab import holds_matlab, read_matlab, read_matlab_folder
from topiarist.data.readers.tables import CellReading, TableForm, read_table
from topiarist.data.readers.target_columns import TargetColumns
from topiarist.data.source import Scaling, Source
from topiarist.errors import DataError
from topiarist.files import check_readable
from topiarist.tasks import TaskKind

if TYPE_CHECKING:
    from topiarist.data.dataset import Data

_HEAD_BYTES = 512  # a tar archive names itself at byte 257, everything else earlier
_Reader = Callable[..., Source]
_TABLE_ENDINGS: dict[str, TableForm] = {".csv": "text", ".tsv": "text", ".parquet": "parquet", ".xlsx": "excel"}
_ENDINGS: dict[str, _Reader] = {
    ".npz": read_arrays,
    ".mat": read_matlab,
    ".bin": read_cifar_batch,
    ".tar": read_cifar_archive,
    ".tgz": read_cifar_archive,
}
_FOLDER_READERS = (
    (holds_idx, read_idx_folder),
    (holds_cifar, read_cifar_folder),
    (holds_matlab, read_matlab_folder),
)
_UNDERSTOOD = (
    "understood are .csv, .tsv, .parquet, .xlsx, .npz, .mat, IDX and CIFAR (.bin, .tar.gz) files, folders of images"
    f" or sound, and the names {', '.join(BUNDLED)}"
)


def load_data(
    location: str | Path,
    *,
    target: TargetColumns | None = None,
    group: str | None = None,
    weight: str | None = None,
    task: TaskKind | None = None,
    scaling: Scaling | None = None,
    columns: ColumnChoices | None = None,
    **options: Unpack[PreparationOptions],
) -> "Data":
    """Read and split data: a bundled name (`digits`), one to download (`fashion-mnist`), or a file or folder.

    Parameters
    ----------
    location
        The name or path.
    target
        The column of a table that holds the label, or the number to predict; several, also in one text with commas.
    group
        The column whose values must not be shared between parts.
    weight
        The column that says how much each sample counts.
    task
        "classes", "numbers" or "labels", in place of what the targets suggest.
    scaling
        "none", "zscore", "minmax", "unit" or "pixels", in place of the one that suits the data.
    columns
        Columns of a table that are left out, or read as categories, numbers or dates whatever their cells suggest.
    options
        `seed`, `test_fraction`, `validation_fraction`, `input_shape`, `samples`, `projection`: see `Data.from_source`.

    Returns
    -------
    Data
        Training, validation and test parts, with preprocessing fitted on the training part.

    Raises
    ------
    DataError
        Where the data cannot be found, read or used; the message is one line.

    Examples
    --------
    >>> data = load_data("digits", input_shape=(1, 8, 8), seed=3)
    >>> data.input_shape, len(data.train)
    ((1, 8, 8), 1168)
    """
    from topiarist.data.dataset import Data  # noqa: PLC0415  # its parts are tensors; to read raw samples needs no torch

    source = find_source(location, target=target, group=group, weight=weight, task=task, columns=columns)
    return Data.from_source(source, scaling=scaling, **options)


def find_source(
    location: str | Path,
    *,
    target: TargetColumns | None = None,
    group: str | None = None,
    weight: str | None = None,
    task: TaskKind | None = None,
    labelled: bool = True,
    columns: ColumnChoices | None = None,
    cells: CellReading | None = None,
) -> Source:
    """Read raw samples; those of a name in the catalogue are downloaded into the cache first.

    Parameters
    ----------
    location, target, group, weight, task, columns
        As in `load_data`.
    labelled
        False, for prediction, allows labels to be absent and leaves nothing out.
    cells
        How the cells of a table are read, as in `read_table`.

    Returns
    -------
    Source
        The raw samples.
    """
    how: dict[str, Any] = {"target": target, "group": group, "labelled": labelled, "choices": columns, "cells": cells}
    how |= {"weight": weight, "task": task}
    entry = None if Path(location).exists() else CATALOGUE.get(str(location))
    if entry is None:
        return read_source(location, **how)
    from topiarist.data.readers.download import fetch  # noqa: PLC0415  # most data are on disk

    source = read_source(fetch(entry.name), **how)
    if source.classes is not None or source.labels is None:
        return source
    return replace(source, name=entry.name, labels=numpy.array(entry.classes)[source.labels], classes=entry.classes)


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """What is asked of a table; other data have no columns to ask about."""

    target: TargetColumns | None = None
    group: str | None = None
    weight: str | None = None
    task: TaskKind | None = None
    labelled: bool = True
    choices: ColumnChoices | None = None
    cells: CellReading | None = None

    def refuse(self, name: str) -> None:
        """Raise where something is asked of columns that are not there."""
        asked = [
            f"--{option} {column}" for option in ("target", "group", "weight") if (column := getattr(self, option))
        ]
        chosen = {} if self.choices is None else vars(self.choices)
        asked += [f"--{option} {column}" for option, columns in chosen.items() for column in columns]
        if asked and self.labelled:
            raise DataError(f"{name} has no columns to choose from: leave out {' and '.join(asked)}")


def read_source(location: str | Path, **asked: Any) -> Source:
    """Read raw samples of a bundled name, a file or a folder; what is asked of a table is as in `TableOptions`."""
    how = TableOptions(**asked)
    source = _read(location, how)
    return source if how.task is None else replace(source, task=how.task)


def _read(location: str | Path, how: TableOptions) -> Source:
    if location in BUNDLED:
        how.refuse(str(location))
        return read_bundled(str(location))
    path, labelled = Path(location), how.labelled
    try:
        for inside in path.iterdir() if path.is_dir() else ():
            check_readable(inside)  # a pipe with the name of an archive would be waited for
        if path.is_dir() and holds_annotations(path):
            if how.weight is not None:
                raise DataError(f"{path}: weights are read from tables, not from annotations: leave out --weight")
            return read_media(path, target=_one(path, how.target), group=how.group, labelled=labelled)
        if path.is_dir():
            how.refuse(str(path))
            read: _Reader = next((read for holds, read in _FOLDER_READERS if holds(path)), read_media)
            return read(path, labelled=labelled)
        if path.is_file():
            return _read_file(path, how)
        found = "neither a file nor a folder" if path.exists() else "no such file or folder"
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    raise DataError(f"cannot read {path}: {found}; {_UNDERSTOOD}")


def _one(path: Path, target: TargetColumns | None) -> str | None:
    """Return the only target; annotations of media have one."""
    if target is None or isinstance(target, str):
        return target
    if len(target) > 1:
        raise DataError(f"{path}: several targets are read from tables, not from annotations; found {len(target)}")
    return next(iter(target), None)


def _read_file(path: Path, how: TableOptions) -> Source:
    """Read a file by its ending or, where that says nothing, by its first bytes."""
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    if ending in MEDIA_ENDINGS:
        if how.labelled:
            raise DataError(f"{path} is a single sample without a label; use a folder with one folder per class")
        return read_media(path, labelled=False)
    found = _TABLE_ENDINGS.get(ending) or _ENDINGS.get(ending) or _recognise(path)
    if isinstance(found, str):
        return read_table(path, form=found, **vars(how))
    how.refuse(str(path))
    return found(path, labelled=how.labelled)


def _recognise(path: Path) -> TableForm | _Reader:
    """Return the form of a table, or the reader of what else the first bytes of a file announce."""
    with expanded(path) as stream:
        head = bytes(read_up_to(stream, _HEAD_BYTES))
    if head[:2] == b"\0\0" and head[2:4] in (b"\x08\x01", b"\x08\x03"):
        return read_idx_file
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"MATLAB"):
        return read_matlab
    if head[257:262] == b"ustar":
        return read_cifar_archive
    if head.startswith(b"PK"):
        return _recognise_zip(path)
    beginning = f"a file that begins with {head[:8].hex(' ')}" if head else "an empty file"
    raise DataError(f"the format of {path} is not known, found {beginning}; {_UNDERSTOOD}")


def _recognise_zip(path: Path) -> TableForm | _Reader:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile as error:
        raise DataError(f"{path} is a damaged zip file ({error}); download it again") from error
    if any(name.endswith(".npy") for name in names):
        return read_arrays
    if "xl/workbook.xml" in names:
        return "excel"
    raise DataError(f"{path} is a zip file of {len(names)} members; unpack it first; {_UNDERSTOOD}")
