"""CIFAR-10 and CIFAR-100 in the binary form (https://www.cs.toronto.edu/~kriz/cifar.html), a folder or the archive."""

import re
import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.data.expanding import Bounded, expanded, read_up_to, read_whole
from topiarist.data.label_values import as_labels
from topiarist.data.limits import check_size
from topiarist.data.source import Source
from topiarist.errors import DataError

IMAGE_SHAPE = (3, 32, 32)
IMAGE_BYTES = 3 * 32 * 32


@dataclass(frozen=True, kw_only=True)
class Family:
    """How one of the two sets names its files and how many label bytes, the last of them used, precede an image."""

    batch: re.Pattern[str]
    names: str
    label_bytes: int


TEN = Family(
    batch=re.compile(r"(?P<train>data_batch_\d+)\.bin|(?P<test>test_batch)\.bin"),
    names="batches.meta.txt",
    label_bytes=1,
)
HUNDRED = Family(
    batch=re.compile(r"(?P<train>train)\.bin|(?P<test>test)\.bin"), names="fine_label_names.txt", label_bytes=2
)
FAMILIES = (TEN, HUNDRED)
ARCHIVE = re.compile(r"cifar-100?-binary\.tar\.gz")


def family_of(name: str) -> Family | None:
    """Give the set to which a file of this name belongs as a batch."""
    return next((family for family in FAMILIES if family.batch.fullmatch(name)), None)


def holds_cifar(folder: Path) -> bool:
    """Tell whether a folder holds batches of the binary form, or the archive of them."""
    return bool(archives_in(folder)) or any(family_of(path.name) for path in folder.iterdir())


def archives_in(folder: Path) -> list[Path]:
    """Give the archives of either set, as they are distributed."""
    return sorted(path for path in folder.iterdir() if ARCHIVE.fullmatch(path.name))


def read_cifar_folder(folder: Path, *, labelled: bool) -> Source:
    """Read all batches of a folder, or the archive where they are still packed."""
    unpacked = any(family_of(path.name) for path in folder.iterdir())
    if not unpacked:
        return read_cifar_archive(archives_in(folder)[0], labelled=labelled)
    wanted = [path for path in folder.iterdir() if path.is_file() and is_wanted(path.name)]
    check_size(str(folder), sum(path.stat().st_size for path in wanted))
    contents = {path.name: read_whole(path) for path in wanted}
    return assemble(folder, contents, labelled=labelled)


def read_cifar_batch(path: Path, *, labelled: bool) -> Source:
    """Read one batch, with the names of the classes where they are beside it."""
    family = family_of(path.name)
    if family is None:
        raise DataError(f"{path} is not named like a CIFAR batch, such as data_batch_1.bin or train.bin")
    beside = [path, path.with_name(family.names)]
    return assemble(path, {found.name: read_whole(found) for found in beside if found.is_file()}, labelled=labelled)


def read_cifar_archive(path: Path, *, labelled: bool) -> Source:
    """Read the batches out of the tar archive as it is distributed; nothing is written to disk."""
    try:
        with expanded(path) as stream:
            bounded: Any = Bounded(stream, str(path))  # in this mode a tar file is only read, never sought
            with tarfile.open(fileobj=bounded, mode="r|") as archive:
                contents = read_members(str(path), archive)
    except tarfile.TarError as error:
        raise DataError(f"{path} is not a whole tar archive ({error}); fetch it again") from error
    if not any(family_of(name) for name in contents):
        raise DataError(f"{path} holds no batches of the CIFAR binary form, such as data_batch_1.bin or train.bin")
    return assemble(path, contents, labelled=labelled)


def read_members(what: str, archive: tarfile.TarFile) -> dict[str, bytes]:
    """Read the wanted files, in the order of the archive."""
    contents: dict[str, bytes] = {}
    for member in archive:
        name = PurePosixPath(member.name).name
        opened = archive.extractfile(member) if member.isfile() and is_wanted(name) else None
        if opened is not None:
            check_size(what, member.size)
            contents[name] = bytes(read_up_to(opened, member.size))
    return contents


def is_wanted(name: str) -> bool:
    """Tell whether a file holds a batch or the names of the classes."""
    return family_of(name) is not None or any(name == family.names for family in FAMILIES)


def assemble(path: Path, contents: dict[str, bytes], *, labelled: bool) -> Source:
    """Join the batches, first those of training in the order of their numbers, then the test."""
    batches = sorted((name for name in contents if family_of(name)), key=batch_order)
    families = {family_of(name) for name in batches}
    family = families.pop()
    if families or family is None:
        raise DataError(f"{path} holds batches of CIFAR-10 and CIFAR-100 together: {', '.join(batches)}")
    read = [read_batch(f"{path}/{name}", contents[name], family) for name in batches]
    parts = numpy.repeat([part_of(name) for name in batches], [len(labels) for _, labels in read])
    labels = as_labels(str(path), numpy.concatenate([labels for _, labels in read]), training=labelled)
    classes = class_names(str(path), contents[family.names], labels) if family.names in contents else None
    if classes is not None:
        labels = numpy.asarray(classes)[labels]
    return Source(
        name=path.resolve().name,
        features=numpy.concatenate([images for images, _ in read]),
        labels=labels,
        classes=classes,
        parts=parts if len(numpy.unique(parts)) > 1 else None,
        scaling="pixels",
    )


def batch_order(name: str) -> tuple[bool, int]:
    """Order training before test, and batches by number."""
    number = re.search(r"\d+", name)
    return part_of(name) == "test", int(number[0]) if number else 0


def part_of(name: str) -> str:
    """Give the part that a batch belongs to."""
    return "test" if name.startswith("test") else "train"


def read_batch(name: str, content: bytes, family: Family) -> tuple[NDArray[numpy.uint8], NDArray[numpy.uint8]]:
    """Give images (n_samples, 3, 32, 32) and labels (n_samples,)."""
    record = family.label_bytes + IMAGE_BYTES
    if not content or len(content) % record:
        raise DataError(
            f"{name} is truncated: {len(content):,} bytes are not a multiple of the record of {record}; fetch it again"
        )
    records = numpy.frombuffer(content, dtype=numpy.uint8).reshape(-1, record)
    images = records[:, family.label_bytes :].reshape(-1, *IMAGE_SHAPE)
    return images, records[:, family.label_bytes - 1]


def class_names(name: str, content: bytes, labels: NDArray[numpy.uint8]) -> tuple[str, ...]:
    """Give the names of the classes, one a line, of which the labels are the indices."""
    try:
        names = tuple(line.strip() for line in content.decode("utf-8").splitlines() if line.strip())
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: the names of the classes are not UTF-8 text") from error
    if int(labels.max()) >= len(names):
        raise DataError(f"{name}: label {labels.max()} is beyond the {len(names)} names of classes")
    return names
