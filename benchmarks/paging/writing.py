"""Writes results into `benchmarks/results`, with what they were measured on."""

import platform
import subprocess
from collections.abc import Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.paging.records import Measurement
from topiarist.files import write_atomically

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
Results = TypeVar("Results", bound=Measurement)


def stamp(command: str, packages: Sequence[str] = (), before: Measurement | None = None) -> dict[str, Any]:
    """Return the fields of a `Measurement` that is made now, or that adds to what was measured before."""
    now: dict[str, Any] = {
        "command": command,
        "date": date.today().isoformat(),
        "processor": processor_name(),
        "packages": {name: _version(name) for name in ("topiarist", "torch", *packages)},
        "commit": library_commit(),
    }
    if before is not None:
        now |= {name: _both(getattr(before, name), now[name]) for name in ("date", "processor", "commit")}
        now["packages"] = {name: _both(before.packages.get(name, ""), each) for name, each in now["packages"].items()}
    return now


def _both(before: str, now: str) -> str:
    """Return what held before and what holds now, once where they are the same."""
    known = [each for each in before.split(" and ") if each]
    return " and ".join(known if now in known else [*known, now])


def write_results(name: str, results: Measurement, out: Path | None = None) -> Path:
    """Write results where the page finds them, or elsewhere; return the path."""
    path = out or RESULTS / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, (results.model_dump_json(indent=1, exclude_defaults=True) + "\n").encode())
    return path


def read_results(kind: type[Results], name: str, folder: Path | None = None) -> Results | None:
    """Return the results of a benchmark; None where there are none."""
    path = (folder or RESULTS) / f"{name}.json"
    return kind.model_validate_json(path.read_text()) if path.exists() else None


def processor_name() -> str:
    """Return the name of the processor, as the system tells it."""
    described = Path("/proc/cpuinfo")
    if described.exists():
        lines = described.read_text().splitlines()
        named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        if named:
            return named[0]
    return platform.processor() or platform.machine()


def library_commit() -> str:
    """Return the last commit that changed the library, and whether it was changed since; "" without git."""
    try:
        last = _git("log", "-1", "--format=%h", "--", "src")
        return f"{last} with changes" if _git("status", "--porcelain", "--", "src") else last
    except (OSError, subprocess.CalledProcessError):
        return ""


def _git(*words: str) -> str:
    asked = ["git", "-C", str(ROOT), *words]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
