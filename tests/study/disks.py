"""Disks that are full or must not be written to; only where this process may mount them."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def mount(*words: object) -> None:
    """Mount, or skip the test where that is not allowed."""
    try:
        done = subprocess.run(["mount", *map(str, words)], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount")
    if done.returncode:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")


@contextmanager
def small_disk(folder: Path, *, kilobytes: int) -> Iterator[Path]:
    """Return a disk of some kilobytes."""
    folder.mkdir()
    mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", folder)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path, *, leave_kilobytes: int) -> Path:
    """Fill the disk that a folder lies on, up to some kilobytes; give the file that does it."""
    ballast, kilobyte = folder / "ballast", b"\0" * 1024
    with ballast.open("wb", buffering=0) as stream:
        try:
            while stream.write(kilobyte) == len(kilobyte):
                pass
        except OSError:
            pass
        stream.truncate(max(0, stream.tell() - 1024 * leave_kilobytes))
    return ballast


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let nobody write to a folder, not even the superuser."""
    mount("--bind", folder, folder)
    try:
        mount("-o", "remount,ro,bind", folder)
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
