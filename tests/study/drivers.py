"""The command in processes of its own, forked from one that has everything imported: ready at once, killed at will."""

import atexit
import gc
import importlib
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from topiarist.cli import main

psutil: Any = importlib.import_module("psutil")  # comes with distributed, without types
CONTEXT = multiprocessing.get_context("forkserver")
PRELOADED = [
    "topiarist.study.study",
    "topiarist.parallel.dask_cluster",
    "topiarist.report.writing",
    "tests.study.networks",
    "tests.rightsizing.tasks",
    "torch._dynamo",
]
CONTEXT.set_forkserver_preload(PRELOADED)
PATIENCE = 60


@dataclass(frozen=True)
class Driver:
    """A running command."""

    process: ForkServerProcess
    folder: Path

    @property
    def pid(self) -> int:
        """Return its number."""
        assert self.process.pid is not None
        return self.process.pid

    @property
    def running(self) -> bool:
        """Return whether it has not ended."""
        return self.process.is_alive()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to it alone."""
        os.kill(self.pid, number)

    def send_all(self, number: signal.Signals) -> None:
        """Send a signal to it and all that it started, as a terminal does."""
        os.killpg(self.pid, number)

    def end(self) -> tuple[int, str, str]:
        """Wait for its end; give exit code, standard output and standard error."""
        self.process.join(PATIENCE)
        assert self.process.exitcode is not None, "it did not end"
        return self.process.exitcode, (self.folder / "stdout").read_text(), (self.folder / "stderr").read_text()


@contextmanager
def driver(
    folder: Path, *words: object, largest_file: int | None = None, prepare: Callable[[], None] | None = None
) -> Iterator[Driver]:
    """Start `topiarist` in a folder, after `prepare`; it, and what it started, is gone after the block."""
    process = CONTEXT.Process(target=run, args=(folder, [str(word) for word in words], largest_file, prepare))
    process.start()
    started = Driver(process, folder)
    family: list[Any] = []
    try:
        yield started
    finally:
        if process.is_alive():
            with suppress(psutil.NoSuchProcess):  # it may end at this very moment
                family = psutil.Process(started.pid).children(recursive=True)
            process.kill()
        process.join(PATIENCE)
        for child in family:
            if child.is_running():
                child.kill()


def command(folder: Path, *words: object, largest_file: int | None = None) -> tuple[int, str, str]:
    """Run `topiarist` to its end; give exit code, standard output and standard error."""
    with driver(folder, *words, largest_file=largest_file) as started:
        return started.end()


def run(folder: Path, words: list[str], largest_file: int | None, prepare: Callable[[], None] | None) -> None:
    """Be the command."""
    os.setsid()
    os.chdir(folder)
    for name, number in (("stdout", 1), ("stderr", 2)):
        handle = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(handle, number)
        os.close(handle)
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    if prepare is not None:
        prepare()
    sys.argv = ["topiarist", *words]
    try:
        main()
    finally:
        atexit._run_exitfuncs()  # a forked process leaves them out, and some of them have something to say
        gc.collect()
        sys.stdout.flush()
        sys.stderr.flush()


def orphans(folder: Path) -> list[Any]:
    """Return the processes that work in a folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()) == folder.resolve() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def no_orphans(folder: Path, *, seconds: float = 15) -> bool:
    """Return whether all processes that work in a folder end in time."""
    end = time.monotonic() + seconds
    while orphans(folder):
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True
