"""From a name, a file or a folder to raw samples."""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from topiarist.data.annotated import holds_annotations, read_annotated
from topiarist.data.arrays import read_arrays
from topiarist.data.bundled import BUNDLED, read_bundled
from topiarist.data.cifar import holds_cifar, read_cifar_archive, read_cifar_batch, read_cifar_folder
from topiarist.data.expanding import read_head
from topiarist.data.folder import read_folder, read_loose
from topiarist.data.idx import holds_idx, read_idx_file, read_idx_folder
from topiarist.data.matlab import holds_matlab, read_matlab, read_matlab_folder
from topiarist.data.media import MEDIA_ENDINGS
from topiarist.data.source import Source
from topiarist.data.table import TableForm, read_table
from topiarist.errors import DataError

HEAD_BYTES = 512
FileForm = Literal["numpy", "matlab", "cifar", "archive", "idx"]
Form = TableForm | FileForm
ENDINGS: dict[str, Form] = {
    ".csv": "text",
    ".tsv": "text",
    ".parquet": "parquet",
    ".xlsx": "excel",
    ".npz": "numpy",
    ".mat": "matlab",
    ".bin": "cifar",
    ".tar": "archive",
    ".tgz": "archive",
}
FILE_READERS: dict[FileForm, Callable[..., Source]] = {
    "numpy": read_arrays,
    "matlab": read_matlab,
    "cifar": read_cifar_batch,
    "archive": read_cifar_archive,
    "idx": read_idx_file,
}
UNDERSTOOD = (
    "understood are .csv, .tsv, .parquet, .xlsx, .npz, .mat, IDX and CIFAR (.bin, .tar.gz) files, folders of pictures"
    f" or sound, and the names {', '.join(BUNDLED)}"
)


def read_source(
    location: str | Path, *, target: str | None = None, group: str | None = None, labelled: bool = True
) -> Source:
    """Read raw samples; with `labelled=False`, for prediction, labels may be absent and nothing is left out."""
    if location in BUNDLED:
        refuse_columns(str(location), target, group, labelled=labelled)
        return read_bundled(str(location))
    path = Path(location)
    try:
        if path.is_dir():
            return read_directory(path, target=target, group=group, labelled=labelled)
        if path.is_file():
            return read_file(path, target=target, group=group, labelled=labelled)
        found = "neither a file nor a folder" if path.exists() else "no such file or folder"
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    raise DataError(f"cannot read {path}: {found}; {UNDERSTOOD}")


def read_directory(folder: Path, *, target: str | None, group: str | None, labelled: bool) -> Source:
    """Read a folder by what it holds."""
    if holds_annotations(folder):
        return read_annotated(folder, target=target, group=group, labelled=labelled)
    refuse_columns(str(folder), target, group, labelled=labelled)
    if holds_idx(folder):
        return read_idx_folder(folder, labelled=labelled)
    if holds_cifar(folder):
        return read_cifar_folder(folder, labelled=labelled)
    if holds_matlab(folder):
        return read_matlab_folder(folder, labelled=labelled)
    return read_folder(folder, labelled=labelled)


def read_file(path: Path, *, target: str | None, group: str | None, labelled: bool) -> Source:
    """Read a file by its ending or, where that says nothing, by its first bytes."""
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    if ending in MEDIA_ENDINGS:
        if labelled:
            raise DataError(f"{path} is a single sample without a label; give a folder with one folder a class")
        return read_loose(path, [path])
    form = ENDINGS.get(ending) or form_of_content(path)
    if form == "text" or form == "parquet" or form == "excel":
        return read_table(path, form=form, target=target, group=group, labelled=labelled)
    refuse_columns(str(path), target, group, labelled=labelled)
    return FILE_READERS[form](path, labelled=labelled)


def form_of_content(path: Path) -> Form:
    """Recognise a file by its first bytes, behind any gzip."""
    head = read_head(path, HEAD_BYTES)
    if head[:2] == b"\0\0" and head[2:4] in (b"\x08\x01", b"\x08\x03"):
        return "idx"
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"MATLAB"):
        return "matlab"
    if head[257:262] == b"ustar":
        return "archive"
    if head.startswith(b"PK"):
        return form_of_zip(path)
    beginning = f"a file that begins with {head[:8].hex(' ')}" if head else "an empty file"
    raise DataError(f"cannot tell what {path} is, found {beginning}; {UNDERSTOOD}")


def form_of_zip(path: Path) -> Form:
    """Tell a NumPy archive from an Excel workbook."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile as error:
        raise DataError(f"{path} is a damaged zip file ({error}); fetch it again") from error
    if any(name.endswith(".npy") for name in names):
        return "numpy"
    if "xl/workbook.xml" in names:
        return "excel"
    raise DataError(f"{path} is a zip file of {len(names)} members; unpack it first; {UNDERSTOOD}")


def refuse_columns(name: str, target: str | None, group: str | None, *, labelled: bool) -> None:
    """Refuse the choice of a column where there are none."""
    asked = " and ".join(f"--{option} {column}" for option, column in (("target", target), ("group", group)) if column)
    if asked and labelled:
        raise DataError(f"{name} has no columns to choose from: leave out {asked}")
