"""Time and memory of what is large: a study of 2,000 cells, a network of 100 million parameters, a folder of images.

Each part runs in a process of its own and prints one line per step: seconds, and the most memory so far. All parts, or
those named: `python -m benchmarks.large study network folder`. Tables and IDX files of images are those of
`benchmarks.memory`.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.paging.records import Cell, Grid, Sheet
from benchmarks.paging.writing import read_results, stamp, write_results

WIDTHS = [784, *[4096] * 6, 4096, 10]  # 104 million parameters
STUDY = {
    "data": "iris",
    "training": {"epochs": 1},
    "grid": {"training.learning_rate": [0.1, 0.03, 0.01, 0.003, 0.001], "model.hidden": [[4], [5], [6], [7]]},
    "folds": 10,
    "seeds": 10,
}  # 2,000 cells
STEPS: list[tuple[Cell, ...]] = []  # of the part that this process runs


def peak() -> float:
    """Return the most memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


@contextmanager
def step(name: str) -> Iterator[None]:
    """Print how long a step takes, by the clock and by the processor, and the most memory so far."""
    began, used = time.perf_counter(), time.process_time()
    yield
    seconds, own = time.perf_counter() - began, time.process_time() - used
    STEPS.append((name, f"{own:.1f}", f"{peak():,.0f} MB", ""))
    print(f"{name:34} {seconds:7.1f} s ({own:.1f} s of this process), {peak():6.0f} MB", flush=True)


def large_study(folder: Path) -> None:
    """Run a study of 2,000 cells, then ask for its status and its results."""
    from topiarist.cli.study_output import status_of
    from topiarist.study.results import Results
    from topiarist.study.study import Study

    study, out = Study(**STUDY), folder / "study"
    with step("2,000 cells, run"):
        study.run(out)
    with step("status"):
        done = status_of(out)["done"]
    with step("results: read, and summed up"):
        summary = Results.read(out).summary()
    with step("results: all compared"):
        Results.read(out).compare()
    size = sum(path.stat().st_size for path in out.glob("ledger.sqlite*"))
    print(f"{done} cells done, {len(summary)} configurations, a ledger of {size / 2**20:.1f} MB")
    for name in ("status", "results"):
        timed_command(f"topiarist study {name}", ["study", name, out])


def large_network(folder: Path) -> None:
    """Take a network of 100 million parameters through anatomy, removal, refit, save and load."""
    import torch

    from topiarist import load, models, save
    from topiarist.models.evaluation import count_parameters
    from topiarist.randomness import generator
    from topiarist.surgery import remove
    from topiarist.tracing import anatomy

    model = models.mlp(WIDTHS)
    x = torch.randn(64, WIDTHS[0], generator=generator(0, "calibration"))
    print(f"{count_parameters(model):,} parameters, {peak():.0f} MB once it is built")
    with step("anatomy"):
        found = anatomy(model, x[:2])
    units = {name: range(0, space.size, 4) for name, space in found.free.items()}
    with step("remove a quarter of the units"):
        remove(model, x[:2], units=units)
    with step("remove, and refit with 64 samples"):
        cut = remove(model, x[:2], units=units, calibration=x)
    with step("save"):
        path = save(cut, folder / "cut.safetensors")
    with step("load"):
        load(path)


def compared_with(size: float, calls: dict[str, list[Any]]) -> None:
    """Run commands, and print how much memory each takes beside data of some MB."""
    for name, words in calls.items():
        most = timed_command(name, words)
        STEPS[-1] = (*STEPS[-1][:-1], f"{most / size:.2f} × the {size:,.0f} MB of the samples")
        print(f"{'':34} {most / size:.2f} × the {size:.0f} MB of the samples", flush=True)


def large_folder(folder: Path) -> None:
    """Train on a folder of 6,000 images in colour."""
    import numpy
    from PIL import Image

    from topiarist.randomness import array_generator

    random, side = array_generator(0, "pixels"), 150
    for number in range(6_000):
        place = folder / "images" / f"class {number % 3}"
        place.mkdir(parents=True, exist_ok=True)
        pixels = random.integers(0, 40, (side, side, 3), dtype=numpy.uint8) + numpy.uint8(60 * (number % 3))
        Image.fromarray(pixels).save(place / f"{number}.png", compress_level=1)
    size, out = 6_000 * side * side * 3 / 2**20, folder / "model.safetensors"
    words = ["train", folder / "images", "--hidden", 16, "--epochs", 1, "--out", out]
    compared_with(size, {"train, 1 epoch, 16 hidden units": words})


def timed_command(name: str, words: list[Any]) -> float:
    """Run a command, print its time and its memory, and return the latter in MB.

    The most memory of a process counts that of the one that began it: what is no more than that is not known.
    """
    began = time.perf_counter()
    command = [sys.executable, "-c", "from topiarist.cli import main; main()", *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds, own, most = time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**10
    STEPS.append((name, f"{own:.1f}", f"{most:,.0f} MB" if most > peak() else "", ""))
    print(f"{name:34} {seconds:7.1f} s ({own:.1f} s of the processor), {most:6.0f} MB, status {status}", flush=True)
    return most


PARTS: dict[str, Callable[[Path], None]] = {"study": large_study, "network": large_network, "folder": large_folder}


def main() -> int:
    """Run parts, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all unless given")
    chosen = parser.parse_args().parts or list(PARTS)
    if len(chosen) > 1:
        return max(subprocess.run([sys.executable, "-m", "benchmarks.large", part]).returncode for part in chosen)
    with tempfile.TemporaryDirectory() as folder:
        PARTS[chosen[0]](Path(folder))
    print(write_results("large", with_part(chosen[0])))
    return 0


def with_part(part: str) -> Sheet:
    """Return what is known of other parts, with the steps of this one; what was transcribed is not mixed with it."""
    known = read_results(Sheet, "large")
    known = None if known is None or known.transcribed else known
    grid = Grid(head=(part, "seconds", "memory", ""), rows=tuple(STEPS))
    return Sheet(
        **stamp("python -m benchmarks.large", before=known),
        grids={**({} if known is None else known.grids), part: grid},
    )


if __name__ == "__main__":
    sys.exit(main())
