"""CIFAR-10 and CIFAR-100 in the binary form (https://www.cs.toronto.edu/~kriz/cifar.html), a folder or the archive."""

import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.data.joined import join_arrays
from topiarist.data.labels import as_labels
from topiarist.data.limits import BoundedStream, check_size, expanded, read_up_to, read_whole
from topiarist.data.source import Source
from topiarist.errors import DataError

_IMAGE_SHAPE = (3, 32, 32)
_IMAGE_BYTES = 3 * 32 * 32


@dataclass(frozen=True, kw_only=True)
class _CifarFamily:
    """How one of the two sets names its files, and how many label bytes, the last of them used, precede an image."""

    batch: re.Pattern[str]
    names: str
    label_bytes: int


_FAMILIES = (
    _CifarFamily(batch=re.compile(r"data_batch_\d+\.bin|test_batch\.bin"), names="batches.meta.txt", label_bytes=1),
    _CifarFamily(batch=re.compile(r"train\.bin|test\.bin"), names="fine_label_names.txt", label_bytes=2),
)
_ARCHIVE = re.compile(r"cifar-100?-binary\.tar\.gz")


def _family_of(name: str) -> _CifarFamily | None:
    return next((family for family in _FAMILIES if family.batch.fullmatch(name)), None)


def _is_wanted(name: str) -> bool:
    """Return whether a file holds a batch or the names of the classes."""
    return _family_of(name) is not None or any(name == family.names for family in _FAMILIES)


def holds_cifar(folder: Path) -> bool:
    """Return whether a folder holds batches of the binary form, or the archive of them."""
    return any(_family_of(path.name) or _ARCHIVE.fullmatch(path.name) for path in folder.iterdir())


def read_cifar_folder(folder: Path, *, labelled: bool) -> Source:
    """Read all batches of a folder, or the archive where they are still packed."""
    paths = sorted(folder.iterdir())
    if not any(_family_of(path.name) for path in paths):
        return read_cifar_archive(next(path for path in paths if _ARCHIVE.fullmatch(path.name)), labelled=labelled)
    wanted = [path for path in paths if path.is_file() and _is_wanted(path.name)]
    check_size(str(folder), sum(path.stat().st_size for path in wanted))
    return _assemble(folder, {path.name: read_whole(path) for path in wanted}, labelled=labelled)


def read_cifar_batch(path: Path, *, labelled: bool) -> Source:
    """Read one batch, with the names of the classes where they are beside it."""
    family = _family_of(path.name)
    if family is None:
        raise DataError(f"{path} is not named like a CIFAR batch, such as data_batch_1.bin or train.bin")
    beside = [path, path.with_name(family.names)]
    return _assemble(path, {found.name: read_whole(found) for found in beside if found.is_file()}, labelled=labelled)


def read_cifar_archive(path: Path, *, labelled: bool) -> Source:
    """Read the batches out of the tar archive as it is distributed; nothing is written to disk."""
    contents: dict[str, bytearray] = {}
    try:
        with expanded(path) as stream:
            bounded: Any = BoundedStream(stream, str(path))  # in this mode a tar file is only read, never sought
            with tarfile.open(fileobj=bounded, mode="r|") as archive:
                for member in archive:
                    name = PurePosixPath(member.name).name
                    opened = archive.extractfile(member) if member.isfile() and _is_wanted(name) else None
                    if opened is not None:
                        check_size(str(path), member.size)
                        contents[name] = read_up_to(opened, member.size)
    except tarfile.TarError as error:
        raise DataError(f"{path} is not a whole tar archive ({error}); download it again") from error
    if not any(_family_of(name) for name in contents):
        raise DataError(f"{path} holds no batches of the CIFAR binary form, such as data_batch_1.bin or train.bin")
    return _assemble(path, contents, labelled=labelled)


def _assemble(path: Path, contents: Mapping[str, bytearray], *, labelled: bool) -> Source:
    """Join the batches, first those of training in the order of their numbers, then the test."""
    batches = sorted((name for name in contents if _family_of(name)), key=_batch_order)
    families = {_family_of(name) for name in batches}
    family = families.pop()
    if families or family is None:
        raise DataError(f"{path} holds batches of CIFAR-10 and CIFAR-100 together: {', '.join(batches)}")
    read = [_read_batch(f"{path}/{name}", contents[name], family) for name in batches]
    marks = ["test" if name.startswith("test") else "train" for name in batches]
    parts = numpy.repeat(marks, [len(labels) for _, labels in read])
    labels = as_labels(str(path), numpy.concatenate([labels for _, labels in read]), training=labelled)
    classes = _class_names(str(path), contents[family.names], labels) if family.names in contents else None
    return Source(
        name=path.resolve().name,
        features=join_arrays([images for images, _ in read]),
        labels=labels if classes is None else numpy.asarray(classes)[labels],
        classes=classes,
        parts=parts if len(set(marks)) > 1 else None,
        scaling="pixels",
    )


def _batch_order(name: str) -> tuple[bool, int]:
    number = re.search(r"\d+", name)
    return name.startswith("test"), int(number[0]) if number else 0


def _read_batch(name: str, content: bytearray, family: _CifarFamily) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return images (n_samples, 3, 32, 32) and labels (n_samples,)."""
    record = family.label_bytes + _IMAGE_BYTES
    if not content or len(content) % record:
        found = f"{len(content):,} bytes are not a multiple of the record of {record}"
        raise DataError(f"{name} is truncated: {found}; download it again")
    records = numpy.frombuffer(content, dtype=numpy.uint8).reshape(-1, record)
    return records[:, family.label_bytes :].reshape(-1, *_IMAGE_SHAPE), records[:, family.label_bytes - 1]


def _class_names(name: str, content: bytearray, labels: NDArray[numpy.uint8]) -> tuple[str, ...]:
    """Return the names of the classes, one per line, of which the labels are the indices."""
    try:
        names = tuple(line.strip() for line in content.decode("utf-8").splitlines() if line.strip())
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: the names of the classes are not UTF-8 text") from error
    if int(labels.max()) >= len(names):
        raise DataError(f"{name}: label {labels.max()} is beyond the {len(names)} names of classes")
    return names
