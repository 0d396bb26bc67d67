"""Damaged files for every reader: each must be read, or refused in one line, soon and in little memory.

Whole files of every kind are changed at random, byte by byte, and read in processes of their own with a bounded address
space. Counted by reader: files, how many were refused, and what must not be: crashes of the process, files that take
over 10 seconds, errors that are not ours, messages of more than one line. What fails is kept in a folder. The exit code
is 1 where anything fails. `python -m benchmarks.fuzz --seconds 600 --seed 0`.
"""

import argparse
import json
import os
import random  # noqa: TID251  # a generator of its own, from the seed
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.fuzzing.corpus import READERS, write_corpus
from benchmarks.fuzzing.mutating import mutated

BATCH = 60  # files per process: starting one takes seconds
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
    bad = 0
    for reader, found in sorted(counts.items()):
        wrong = {name: count for name, count in found.items() if name not in ("read", "refused")}
        bad += sum(wrong.values())
        files = sum(found.values())
        print(
            f"{reader:12} {files:6} files: {found['read']} read, {found['refused']} refused, {wrong or 'nothing'} else"
        )
    print(f"{sum(sum(found.values()) for found in counts.values())} files, peak memory {peak / 2**10:.0f} MB")
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
            file.write_bytes(mutated(source.read_bytes(), draw, other=draw.choice(whole[reader]).read_bytes()))
            tasks.append((reader, file))
        peak = max(peak, read_all(tasks, counts, keep))
        number += 1
    return counts, peak


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
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env=environment, timeout=limit, preexec_fn=bounded
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    results = [line["result"] for line in lines]
    if len(results) < len(tasks):
        results.append("hang" if done.returncode == -14 else "crash")  # SIGALRM
    memory = max([line["memory"] for line in lines], default=0)
    return results, max(memory, 0 if lines else before)


def bounded() -> None:
    """Bound the address space of this process."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


if __name__ == "__main__":
    sys.exit(main())
