"""Memory of large data through the product, beside their size: tables of 200,000 rows, images in IDX files.

What a command takes is counted twice: all of it, and what it takes beyond its imports. These are measured for each
command: a process of its own imports the modules that were loaded at the end of the same command on a few samples, and
does nothing else.

All cases, or those named: `python -m benchmarks.memory classes numbers idx-164 idx-411 idx-2006`. The last one takes
2 GB of disk.
"""

import argparse
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.paging.records import Figure, Sheet
from benchmarks.paging.writing import read_results, stamp, write_results

ROWS, NUMBERS, FEW = 200_000, 48, 300
MEASURE, AIM_TABLES, AIM_IMAGES = "times the samples' bytes", 3.0, 1.5
PIXELS = 28 * 28
RIGHTSIZED = {"train": 200_000, "t10k": 20_000}  # 164 MB
TRAINED = {"train": 500_000, "t10k": 50_000}  # 411 MB
LARGEST = {"train": 2_300_000, "t10k": 383_000}  # 2,006 MB
FEW_IMAGES = {"train": 2_000, "t10k": 500}
RUN = "from topiarist.cli import main; main()"
LISTED = f"""
import atexit, json, sys
atexit.register(lambda: print(json.dumps(list(sys.modules)), file=sys.stderr))
{RUN}
"""
IMPORTED = """
import importlib, json, sys, warnings
warnings.simplefilter("ignore")
for name in json.load(sys.stdin):
    try:
        importlib.import_module(name)
    except Exception:  # what is no module of its own, or was made while the command ran
        pass
"""


class Taken(NamedTuple):
    """The most memory of a process, in MB, and what it took of the processor, in seconds."""

    memory: float
    seconds: float


def write_table(path: str, kind: str, rows: int) -> float:
    """Write a table of numbers, two columns of text and a target, and return its size in MB."""
    import numpy
    import pandas

    from topiarist.randomness import array_generator

    random = array_generator(0, "table")
    x = random.standard_normal((rows, NUMBERS))
    colours, cities = random.integers(0, 4, rows), random.integers(0, 12, rows)
    score = x[:, 0] + x[:, 1] * x[:, 2] - 0.5 * x[:, 3] ** 2 + 0.7 * (colours == 1) + 0.4 * (cities > 6)
    score += 0.5 * random.standard_normal(rows)
    frame = pandas.DataFrame({f"n{place}": x[:, place] for place in range(NUMBERS)})
    frame["colour"] = numpy.array(["red", "green", "blue", "grey"])[colours]
    frame["city"] = numpy.array([f"city {place}" for place in range(12)])[cities]
    classes = numpy.array(["low", "middle", "high"])[numpy.digitize(score, [-0.8, 0.3])]
    frame["y"] = classes if kind == "classes" else score
    frame.to_csv(path, index=False, float_format="%.4f")
    return Path(path).stat().st_size / 2**20


def write_idx(folder: str, samples: dict[str, int]) -> float:
    """Write images of ten classes as IDX files, and return the size of those with pixels, in MB."""
    import numpy

    from topiarist.randomness import array_generator

    random, place = array_generator(0, "pixels"), Path(folder)
    prototypes = random.integers(0, 128, (10, PIXELS), dtype=numpy.uint8)
    for part, count in samples.items():
        labels = random.integers(0, 10, count, dtype=numpy.uint8)
        (place / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">4BI", 0, 0, 8, 1, count) + labels.tobytes())
        with (place / f"{part}-images-idx3-ubyte").open("wb") as file:
            file.write(struct.pack(">4B3I", 0, 0, 8, 3, count, 28, 28))
            for some in numpy.split(labels, range(20_000, count, 20_000)):
                noise = random.integers(0, 128, (len(some), PIXELS), dtype=numpy.uint8)
                file.write((prototypes[some] + noise).tobytes())
    return sum(path.stat().st_size for path in place.glob("*images*")) / 2**20


def written(what: str, *arguments: object) -> float:
    """Write data in a process of its own, and return their size in MB.

    The most memory of a process counts that of the one that began it: this one stays small.
    """
    code = f"from benchmarks.memory import *; print({what}({', '.join(map(repr, map(_plain, arguments)))}))"
    ended = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    return float(ended.stdout)


def _plain(argument: object) -> object:
    return str(argument) if isinstance(argument, Path) else argument


def taken(words: list[Any], code: str = RUN) -> Taken:
    """Run a command to its end, and return what it took; what it prints is not shown."""
    process = subprocess.Popen([sys.executable, "-c", code, *map(str, words)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(map(str, words))} ended with {status}")
    return Taken(used.ru_maxrss / 2**10, used.ru_utime + used.ru_stime)


def imports_of(words: list[Any]) -> float:
    """Return the memory of a process, in MB, that imports what a command has loaded in the end, and nothing else."""
    ended = subprocess.run(
        [sys.executable, "-c", LISTED, *map(str, words)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    names = ended.stderr.splitlines()[-1]
    process = subprocess.Popen([sys.executable, "-c", IMPORTED], stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(names)
    process.stdin.close()
    _, _, used = os.wait4(process.pid, 0)
    return float(used.ru_maxrss / 2**10)


def compared(case: str, size: float, words: list[Any], few: list[Any], aim: float, *, beyond: bool) -> list[Figure]:
    """Run a command on the data and on a few of their samples; return its figures, with an aim by one of two counts."""
    imports, used = imports_of(few), taken(words)
    print(
        f"{case:40} {used.seconds:7.1f} s of the processor, {used.memory:6.0f} MB, of them imports {imports:4.0f} MB:"
        f" {used.memory / size:.2f} × the {size:.0f} MB, {(used.memory - imports) / size:.2f} × beyond imports",
        flush=True,
    )
    counts = {"in all": used.memory / size, "beyond imports": (used.memory - imports) / size}
    found = [
        Figure(table="steps", case=case, contender="ours", measure="processor seconds", values=(used.seconds,)),
        Figure(table="steps", case=case, contender="ours", measure="MB", values=(used.memory,)),
        Figure(table="steps", case=case, contender="its imports", measure="MB", values=(imports,)),
        Figure(table="steps", case=case, contender="the samples", measure="MB", values=(size,)),
    ]
    for name, value in counts.items():
        found.append(Figure(table=name, case=case, contender="ours", measure=MEASURE, values=(value,), role="ours"))
        if (name == "beyond imports") == beyond:
            found.append(Figure(table=name, case=case, contender="our aim", measure=MEASURE, values=(aim,), role="aim"))
    return found


def tables(kind: str, folder: Path) -> Iterator[list[Figure]]:
    """Show, train on and right-size a table whose target is a class, or a number."""
    file, few = folder / "table.csv", folder / "few.csv"
    size = written("write_table", file, kind, ROWS)
    written("write_table", few, kind, FEW)

    def calls(data: Path) -> dict[str, list[Any]]:
        asked = [data, "--target", "y"]
        return {
            "data show": ["data", "show", *asked],
            "train": ["train", *asked, "--out", folder / f"{data.stem}.safetensors"],
            "rightsize, quick": ["rightsize", *asked, "--effort", "quick", "--out", folder / f"{data.stem}-out"],
        }

    short = calls(few)
    for name, words in calls(file).items():
        yield compared(f"table, {kind}: {name}", size, words, short[name], AIM_TABLES, beyond=True)


def images(samples: dict[str, int], folder: Path) -> Iterator[list[Figure]]:
    """Show, train on, resize with and, where they are few enough for it, right-size images in IDX files.

    The aim is of all memory, unless the imports alone take more than that.
    """
    large, few = folder / "images", folder / "few"
    large.mkdir()
    few.mkdir()
    size = written("write_idx", large, samples)
    written("write_idx", few, FEW_IMAGES)

    def calls(data: Path) -> dict[str, list[Any]]:
        model = folder / f"{data.name}.safetensors"
        found: dict[str, list[Any]] = {
            "data show": ["data", "show", data],
            "train": ["train", data, "--hidden", 32, "--epochs", 1, "--out", model],
            "resize": ["resize", "distinctiveness", model, data, "--keep", 0.5, "--out", folder / "small.safetensors"],
        }
        how = ["--input-shape", 28 * 28, "--methods", "distinctiveness", "--no-onnx", "--effort", "quick"]
        if samples in (RIGHTSIZED, TRAINED):
            found["rightsize, quick"] = ["rightsize", data, *how, "--out", folder / f"{data.name}-out"]
        return found

    short = calls(few)
    for name, words in calls(large).items():
        yield compared(
            f"IDX of {size:.0f} MB: {name}", size, words, short[name], AIM_IMAGES, beyond=samples == RIGHTSIZED
        )


CASES: dict[str, Callable[[Path], Iterator[list[Figure]]]] = {
    "classes": lambda folder: tables("classes", folder),
    "numbers": lambda folder: tables("numbers", folder),
    "idx-164": lambda folder: images(RIGHTSIZED, folder),
    "idx-411": lambda folder: images(TRAINED, folder),
    "idx-2006": lambda folder: images(LARGEST, folder),
}


def main() -> int:
    """Measure cases, and write them in the place of what was known of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all unless given")
    for name in parser.parse_args().cases or CASES:
        with tempfile.TemporaryDirectory() as folder:
            for found in CASES[name](Path(folder)):
                keep(found)
    return 0


def keep(found: list[Figure]) -> None:
    """Write the figures of a command in the place of what was known of it."""
    known = read_results(Sheet, "memory")
    others = [] if known is None else [each for each in known.figures if each.case != found[0].case]
    stamped = stamp("python -m benchmarks.memory", before=known)
    write_results("memory", Sheet(**stamped, figures=(*others, *found)))


if __name__ == "__main__":
    sys.exit(main())
