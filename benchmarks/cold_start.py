"""From nothing to a first result: `git clone`, then `make demo`; by the clock, by the processor, and in gigabytes.

    python -m benchmarks.cold_start

clones this repository as it is committed, with no cache of pip's, so that everything is fetched anew: some minutes, and
as many gigabytes as torch takes on this system.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.paging.records import Figure, Sheet
from benchmarks.paging.writing import ROOT, stamp, write_results


class Seconds(NamedTuple):
    """How long a command took: the clock's seconds are longer where a machine has other work, the processor's not."""

    clock: float
    processor: float


def timed(words: Sequence[str], folder: Path) -> Seconds:
    """Run a command and return its seconds, those of the processes that it starts included; raise where it fails."""
    began, before = time.perf_counter(), processor_seconds()
    subprocess.run(words, cwd=folder, check=True, env={**os.environ, "PIP_NO_CACHE_DIR": "1"})
    return Seconds(time.perf_counter() - began, processor_seconds() - before)


def processor_seconds() -> float:
    """Return the processor time of all processes that were started here and have ended."""
    times = os.times()
    return times.children_user + times.children_system


def size_of(folder: Path) -> float:
    """Return the gigabytes of all files below a folder."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files) / 1e9


def main() -> None:
    """Clone, make the environment, run the demo; write the seconds of each and what lies on the disk."""
    with tempfile.TemporaryDirectory() as name:
        folder, clone = Path(name), Path(name) / "topiarist"
        seconds = {
            "clone": timed(["git", "clone", "--quiet", str(ROOT), str(clone)], folder),
            "environment": timed(["make", "--silent", ".venv/.core"], clone),
            "demo": timed(["make", "--silent", "demo"], clone),
        }
        size = size_of(clone)
    seconds["in all"] = Seconds(*(sum(values) for values in zip(*seconds.values(), strict=True)))
    figures = [
        Figure(case=case, contender=part, measure="seconds", values=(value,))
        for part, taken in seconds.items()
        for case, value in (("by the clock", taken.clock), ("of the processor", taken.processor))
    ]
    figures.append(Figure(case="environment and demo", contender="on disk", measure="GB", values=(size,)))
    print(write_results("cold_start", Sheet(**stamp("python -m benchmarks.cold_start"), figures=tuple(figures))))


if __name__ == "__main__":
    main()
