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
from benchmarks.fuzzing.mutating import mutated
from benchmarks.fuzzing.resigning import resigned
from benchmarks.paging.records import Cell, Grid, Sheet
from benchmarks.paging.writing import stamp, write_results

BATCH = 250  # files per process: starting one takes seconds
RESIGNED = 0.75  # of the files: the guards themselves need few
HANG_SECONDS = 10
ADDRESS_SPACE = 6 * 2**30  # torch alone maps 3 GB


def main() -> int:
    """Run the campaign and print one line per reader."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=600)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--keep", type=Path, default=Path("fuzz-failures"))
    chosen = options.parse_args()
    with TemporaryDirectory() as folder:
        counts, peak = campaign(Path(folder), seconds=chosen.seconds, seed=chosen.seed, keep=chosen.keep)
    bad, rows = 0, list[tuple[Cell, ...]]()
    for reader, found in sorted(counts.items()):
        wrong = {name: count for name, count in found.items() if name not in ("read", "refused")}
        bad += sum(wrong.values())
        files = sum(found.values())
        rows.append((reader, files, found["read"], found["refused"], sum(wrong.values())))
        print(
            f"{reader:12} {files:6} files: {found['read']} read, {found['refused']} refused, {wrong or 'nothing'} else"
        )
    all_files = sum(sum(found.values()) for found in counts.values())
    told = f"{all_files:,} damaged files, at most {peak / 2**10:.0f} MB:"
    print(told)
    grid = Grid(head=("reader", "files", "read", "refused", "anything else"), rows=tuple(rows))
    command = f"python -m benchmarks.fuzz --seconds {chosen.seconds:g} --seed {chosen.seed}"
    print(write_results("fuzz", Sheet(**stamp(command), grids={"readers": grid}, notes={"campaign": told})))
    return 1 if bad else 0


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
    """Return the content of a whole file with changes."""
    if draw.random() < RESIGNED:
        return resigned(source.name, source.read_bytes(), draw)
    return mutated(source.read_bytes(), draw, other=other.read_bytes())


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
                (keep / f"{result}-{reader}-{time.time_ns()}-{file.name}").write_bytes(file.read_bytes())
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
