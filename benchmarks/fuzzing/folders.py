"""Folders as one file each, a zip of their members: so that a folder is damaged, kept and read as a file is."""

import io
import random  # noqa: TID251  # generators that are given, no global state
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ENDING = ".folder"
LOSSES = 0.05  # of the changes: a member is lost, or stands in the place of another


def packed(members: dict[str, bytes]) -> bytes:
    """Return a folder of these members as a file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def packed_folder(folder: Path) -> bytes:
    """Return a folder with the files in it as a file."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file.name != "lock")
    return packed({file.relative_to(folder).as_posix(): file.read_bytes() for file in files})


def members_of(content: bytes) -> dict[str, bytes]:
    """Return what `packed` was given."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@contextmanager
def unpacked(file: Path) -> Iterator[Path]:
    """Write a folder, of which there is a file, into another place for a while."""
    with TemporaryDirectory() as place:
        folder = Path(place) / "whole"
        for name, content in members_of(file.read_bytes()).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        yield folder


def changed_folder(content: bytes, draw: random.Random, change: Callable[[str, bytes], bytes]) -> bytes:
    """Return a folder with a change in one member."""
    members = members_of(content)
    name = draw.choice(list(members))
    if draw.random() < LOSSES:
        other = members.pop(name)
        if draw.random() < 0.5 and members:
            members[draw.choice(list(members))] = other
    else:
        members[name] = change(name, members[name])
    return packed(members)
