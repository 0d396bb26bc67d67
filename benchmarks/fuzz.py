"""Damaged files for every reader: each must be read, or refused in one line, soon and in little memory.

Whole files of every kind are changed at random and read in processes of their own with a bounded address space: a
quarter of them byte by byte, the others inside what a digest or a checksum guards, which is made anew. Counted by
reader: files, how many were refused, and what must not be: crashes of the process, files that take over 10 seconds of
the processor or a minute, errors that are not ours, messages of more than one line. What fails is kept in a folder.
The exit code is 1 where anything fails. `python -m benchmarks.fuzz --seconds 600 --seed 0`.
"""

import argparse
import json
import os
import random  # noqa: TID251  # a generator of its own, from the seed
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.fuzzing.corpus import READERS, write_corpus
from benchmarks.fuzzing.folders import ENDING, changed_folder
from benchmarks.fuzzing.mutating import mutated
from benchmarks.fuzzing.resigning import resigned
from benchmarks.paging.records import Grid, Sheet
from benchmarks.paging.writing import stamp, write_results

BATCH = 250  # files per process: starting one takes seconds
RESIGNED = 0.75  # of the files: the guards themselves need few
HANG_SECONDS = 10
NOTHING = "No crash, no hang, no traceback, no message of more than one line."
ADDRESS_SPACE = 6 * 2**30  # torch alone maps 3 GB


def main() -> int:
    """Run the campaign and print one line per reader."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=600)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--keep", type=Path, default=Path("fuzz-failures"))
    options.add_argument("--out", type=Path, help="where results go, instead of the page's own")
    chosen = options.parse_args()
    begun = time.monotonic()
    with TemporaryDirectory() as folder:
        counts, peak = campaign(Path(folder), seconds=chosen.seconds, seed=chosen.seed, keep=chosen.keep)
    taken = time.monotonic() - begun
    for reader, found in sorted(counts.items()):
        print(f"{reader:14} {found.total():6} files: {dict(found)}")
    wrong = wrong_of(counts)
    told = (
        f"{sum(map(Counter.total, counts.values())):,} damaged files in {taken:,.0f} s, at most {peak / 2**10:.0f} MB:"
    )
    print(told, wrong)
    rows = tuple(
        (reader, found.total(), found["read"], found["refused"], found.total() - found["read"] - found["refused"])
        for reader, found in sorted(counts.items())
    )
    grid = Grid(head=("reader", "files", "read", "refused", "anything else"), rows=rows)
    command = f"python -m benchmarks.fuzz --seconds {chosen.seconds:g} --seed {chosen.seed}"
    notes = {"campaign": told, "nothing": wrong}
    print(write_results("fuzz", Sheet(**stamp(command), grids={"readers": grid}, notes=notes), chosen.out))
    return 0 if wrong == NOTHING else 1


def wrong_of(counts: dict[str, Counter[str]]) -> str:
    """Return what came of files besides being read or refused, in words."""
    others = sum(
        (found - Counter(read=found["read"], refused=found["refused"]) for found in counts.values()), Counter()
    )
    return ", ".join(f"{name}: {count}" for name, count in sorted(others.items())) + "." if others else NOTHING


def campaign(folder: Path, *, seconds: float, seed: int, keep: Path) -> tuple[dict[str, Counter[str]], int]:
    """Return what came of the files of each reader, and the largest memory of a process in KB."""
    whole = write_corpus(folder / "whole")
    draw, end = random.Random(seed), time.monotonic() + seconds
    counts: dict[str, Counter[str]] = {reader: Counter() for reader in READERS}
    unread = unread_of(whole)
    if unread:
        raise SystemExit(f"whole files must be read before damaged ones say anything; refused: {', '.join(unread)}")
    peak, number = 0, 0
    while time.monotonic() < end:
        place = folder / f"round{number}"
        place.mkdir()
        tasks: list[tuple[str, Path]] = []
        for _ in range(BATCH):
            reader = draw.choice(list(READERS))
            source = draw.choice(whole[reader])
            file = place / f"{len(tasks)}-{source.name}"
            file.write_bytes(changed_file(source, draw, other=draw.choice(whole[reader])))
            tasks.append((reader, file))
        peak = max(peak, read_all(tasks, counts, keep))
        shutil.rmtree(place)
        number += 1
    return counts, peak


def changed_file(source: Path, draw: random.Random, *, other: Path) -> bytes:
    """Return the content of a whole file with changes; of a folder, one of its files has them."""
    content = source.read_bytes()
    if draw.random() < RESIGNED:
        return resigned(source.name, content, draw)
    if source.suffix == ENDING:
        return changed_folder(content, draw, lambda _, inside: mutated(inside, draw, other=inside))
    return mutated(content, draw, other=other.read_bytes())


def unread_of(whole: dict[str, list[Path]]) -> list[str]:
    """Return the names of whole files that are not read: of their reader, damaged ones would show nothing."""
    tasks = [(reader, file) for reader, files in whole.items() for file in files]
    results, _ = run_reader(tasks, HANG_SECONDS * len(tasks) + 60)
    return [file.name for (_, file), result in zip(tasks, [*results, "crash"], strict=False) if result != "read"]


def read_all(tasks: list[tuple[str, Path]], counts: dict[str, Counter[str]], keep: Path) -> int:
    """Read files in processes of their own, a new one after each that dies; return the largest memory in KB."""
    peak = 0
    while tasks:
        limit = HANG_SECONDS * len(tasks) + 60
        results, memory = run_reader(tasks, limit)
        for (reader, file), result in zip(tasks, results, strict=False):
            counts[reader][result] += 1
            if result not in ("read", "refused"):
                keep.mkdir(exist_ok=True)
                (keep / f"{result}-{reader.replace(' ', '-')}-{time.time_ns()}-{file.name}").write_bytes(
                    file.read_bytes()
                )
        peak, tasks = max(peak, memory), tasks[len(results) :]
    return peak


def run_reader(tasks: list[tuple[str, Path]], limit: float) -> tuple[list[str], int]:
    """Return the result of each file up to the first that ended the process, and the memory of the process in KB."""
    words = [sys.executable, "-m", "benchmarks.fuzzing.reading", *(f"{reader}={file}" for reader, file in tasks)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    how: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace", "env": environment}
    try:
        done = subprocess.run(words, check=False, timeout=limit, preexec_fn=bounded, **how)
        written, ended = done.stdout, done.returncode
    except subprocess.TimeoutExpired as late:
        written, ended = (late.stdout or b"").decode(errors="replace"), -signal.SIGALRM
    lines = [json.loads(line) for line in written.splitlines() if line.startswith('{"result"')]
    results = [line["result"] for line in lines]
    if len(results) < len(tasks):
        results.append("hang" if -ended in (signal.SIGALRM, signal.SIGPROF) else "crash")
    return results, max([line["memory"] for line in lines], default=0)


def bounded() -> None:
    """Bound the address space of this process."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


if __name__ == "__main__":
    sys.exit(main())
