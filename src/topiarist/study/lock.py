"""One driver at a time: the system holds the lock, and lets it go when the driver ends, however it ends."""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from topiarist.errors import TopiaristError
from topiarist.files import cannot_write
from topiarist.study.ledger import Ledger

FILE = "lock"
PATIENCE_SECONDS = 1  # for somebody who only looks whether the lock is held


@contextmanager
def only_driver(folder: Path, said: str | None = None) -> Iterator[None]:
    """Hold the folder's lock; a second driver is refused, and told what is `said` in the place of a study's words."""
    lock = FileLock(folder / FILE, timeout=PATIENCE_SECONDS)
    try:
        lock.acquire()
    except Timeout:
        told = said or f"the study in {folder} is being run by {driver_of(folder)}"
        raise TopiaristError(f"{told}: wait for it, or stop it first") from None
    except OSError as error:
        raise cannot_write(folder / FILE, error) from error
    try:
        yield
    finally:
        lock.release()


def is_running(folder: Path) -> bool:
    """Return whether a driver holds the folder's lock."""
    if not (folder / FILE).exists():
        return False
    lock = FileLock(folder / FILE, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        return True
    except OSError:
        return False
    lock.release()
    return False


def driver_of(folder: Path) -> str:
    """Return the process that drove the study last, in words."""
    try:
        with Ledger.to_read(folder) as ledger:
            driver = ledger.facts()["driver"]
            return f"process {driver['process']} on {driver['machine']}"
    except (TopiaristError, KeyError):
        return "another process"


def this_driver() -> dict[str, str | int]:
    """Return who drives, for those who look at the study meanwhile."""
    return {"process": os.getpid(), "machine": platform.node()}
