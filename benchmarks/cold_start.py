"""From nothing to a first result: `git clone`, then `make demo`; by the clock, and in gigabytes on disk.

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

from benchmarks.paging.records import Figure, Sheet
from benchmarks.paging.writing import ROOT, stamp, write_results


def timed(words: Sequence[str], folder: Path) -> float:
    """Run a command and return its seconds by the clock; raise where it fails."""
    began = time.perf_counter()
    subprocess.run(words, cwd=folder, check=True, env={**os.environ, "PIP_NO_CACHE_DIR": "1"})
    return time.perf_counter() - began


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
    seconds["in all"] = sum(seconds.values())
    figures = [
        Figure(case="from a clone to a first result", contender=part, measure="seconds", values=(value,))
        for part, value in seconds.items()
    ]
    figures.append(Figure(case="environment and demo", contender="on disk", measure="GB", values=(size,)))
    print(write_results("cold_start", Sheet(**stamp("python -m benchmarks.cold_start"), figures=tuple(figures))))


if __name__ == "__main__":
    main()
