"""Whether trainings survive: kills at random moments, full disks, read-only folders, a second driver, clocks set back.

Each command is run undisturbed once; then it is killed again and again, and begun anew with the same words. In the end
its files must hold the same bits, and nothing may lie beside them but hidden files half written at a kill.
`python -m benchmarks.stress --seconds 600` goes round the commands until the time is over; studies, with dying workers
and clusters, are in `stress_study`. Each line says what was seen; the exit code is 1 where anything was not as it must
be. Full disks and read-only folders are tried only where this process may mount them.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.paging.records import Sheet
from benchmarks.paging.writing import stamp, write_results
from benchmarks.stress_study import Report
from tests.study import drivers
from tests.study.disks import fill, read_only, small_disk
from topiarist.randomness import array_generator

KILLS = 6  # of one run before it may end
DAY = 86_400.0
PATIENCE = 300  # seconds, for a command on a busy machine
STUDY = """
data = "wine"
folds = 2
seeds = 2
training.epochs = 40
methods = [{ name = "none" }, { name = "distinctiveness", keep_fraction = 0.5 }]
"""
# Commands by name: what is killed, and resumes when it is said again.
COMMANDS = {
    "train": "train digits --hidden 48 --epochs 60 --seed 1 --out out/train.safetensors",
    "train images": "train digits --input-shape 1x8x8 --family vgg --blocks 1,0,0,0 --epochs 8 --out out/v.safetensors",
    "surgeon": "resize surgeon base.safetensors digits --epochs 8 --interval 2 --out out/surgeon.safetensors",
    "study": "study run study.toml --out out",
    "rightsize": "rightsize iris --methods distinctiveness,surgeon --max-drop 0.2 --no-onnx --out out/rightsized",
}


@dataclass
class Stress:
    """A folder to work in, what the commands come to undisturbed, and what was seen."""

    folder: Path
    random: Any
    report: Report = field(default_factory=Report)
    expected: dict[str, dict[str, bytes]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def out(self) -> Path:
        """Where the commands write."""
        return self.folder / "out"

    def cleared(self) -> None:
        """Begin with an empty folder of results."""
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir()

    def run(self, name: str) -> tuple[int, str]:
        """Run a command to its end and return its exit code and what it said on standard error."""
        code, _, said = drivers.command(self.folder, *COMMANDS[name].split())
        return code, said

    def completed(self, name: str, what: str) -> None:
        """Run a command to its end, and expect the bits of the undisturbed run."""
        code, said = self.run(name)
        self.report.expect(code == 0, f"{what}: ended with {code} {said.strip()[-200:]!r}")
        self.same(name, what)

    def same(self, name: str, what: str) -> None:
        """Expect the bits of the undisturbed run, and no other files but those half written at a kill."""
        found, expected = results(self.out), self.expected[name]
        other = sorted(key for key in {*found, *expected} if found.get(key) != expected.get(key))
        self.report.expect(not other, f"{what}: the same bits{f', but for {other[:5]}' if other else ''}")
        self.counts["files half written"] += sum(map(is_half, self.out.iterdir()))


def results(out: Path) -> dict[str, bytes]:
    """Return the content of each file of a run; of a study, what its cells came to; of a rightsizing, its networks."""
    if (out / "ledger.sqlite").exists():
        from tests.study.studies import outcome  # only for studies

        return {key: repr(found).encode() for key, found in outcome(out).items()}
    if any(path.is_dir() for path in out.iterdir() if not is_half(path)):  # of a rightsizing: the record has its times
        found = [path for path in sorted(out.rglob("*")) if not any(map(is_half, (path, *path.parents)))]
        return {
            path.name: path.read_bytes() if path.suffix == ".safetensors" else b"" for path in found if path.is_file()
        }
    return {path.name: path.read_bytes() for path in sorted(out.iterdir()) if not is_half(path)}


def is_half(path: Path) -> bool:
    """Return whether a file is one that was being written when its process was killed: hidden, and never read."""
    return path.name.startswith(".") and path.name.endswith(".part")


def prepare(stress: Stress, names: list[str]) -> None:
    """Write what the commands read, and run each of them undisturbed."""
    (stress.folder / "study.toml").write_text(STUDY)
    words = ("train", "digits", "--hidden", 24, "--epochs", 3, "--out", "base.safetensors")
    assert drivers.command(stress.folder, *words)[0] == 0
    for name in names:
        stress.cleared()
        began = time.monotonic()
        code, said = stress.run(name)
        stress.seconds[name] = time.monotonic() - began
        stress.expected[name] = results(stress.out)
        stress.report.expect(code == 0, f"{name}: undisturbed in {stress.seconds[name]:.1f} s {said.strip()[-200:]!r}")


def kill(stress: Stress, name: str, *, kills: int = KILLS) -> None:
    """`kill -9` at random moments, and the same command again, until it is left alone."""
    stress.cleared()
    for _ in range(kills):
        with drivers.driver(stress.folder, *COMMANDS[name].split()) as started:
            time.sleep(float(stress.random.uniform(0, stress.seconds[name])))
            stress.counts["kills" if started.running else "runs that ended before their kill"] += 1
        stress.report.expect(drivers.no_orphans(stress.folder), f"{name}: killed, and no process is left behind")
        if results(stress.out) == stress.expected[name]:  # it was done before its kill
            stress.cleared()
    stress.completed(name, f"{name}, after kills")


def second(stress: Stress, name: str) -> None:
    """Run the same command twice at once: one of them may be refused, in one line."""
    stress.cleared()
    words = COMMANDS[name].split()
    with drivers.driver(stress.folder, *words) as first:
        code, _, said = drivers.command(stress.folder, *words)
        first.process.join(drivers.PATIENCE)
        codes = sorted((code, int(first.process.exitcode or 0)))
    refusals = [line for line in said.splitlines() if line.startswith("topiarist: ") and ": note: " not in line]
    one_line = code == 0 or (len(refusals) == 1 and "Traceback" not in said)
    stress.report.expect(codes in ([0, 0], [0, 2]) and one_line, f"{name}: two at once end with {codes}")
    stress.same(name, f"{name}: two at once")
    stress.counts["second drivers"] += 1


def with_clock(back: float, folder: Path, words: list[str], largest_file: int | None) -> None:
    """Be the command, on a machine whose clock is set back by some seconds."""
    real = time.time
    time.time = lambda: real() - back
    drivers.run(folder, words, largest_file, None)


def clock(stress: Stress, name: str) -> None:
    """Kill a command, set the clock back by a day, and say the command again."""
    stress.cleared()
    words = COMMANDS[name].split()
    with drivers.driver(stress.folder, *words):
        time.sleep(float(stress.random.uniform(0, stress.seconds[name])))
    process = drivers.CONTEXT.Process(target=partial(with_clock, DAY), args=(stress.folder, words, None))
    process.start()
    process.join(drivers.PATIENCE)
    said = (stress.folder / "stderr").read_text().strip()
    stress.report.expect(
        process.exitcode == 0, f"{name}: the clock set back by a day: {process.exitcode} {said[-200:]!r}"
    )
    stress.same(name, f"{name}: the clock set back")
    stress.counts["clocks set back"] += 1


def full_disk(stress: Stress, name: str) -> None:
    """Run where a disk has little room; one line and exit code 2, and the rest when there is room again."""
    shutil.rmtree(stress.out, ignore_errors=True)
    with small_disk(stress.out, kilobytes=6000) as disk:
        ballast = fill(disk, leave_kilobytes=int(stress.random.choice([0, 2, 4])))
        code, said = stress.run(name)
        stress.report.expect(code == 2 and said.count("\n") == 1, f"{name}: full disk: {code} {said.strip()[-200:]!r}")
        ballast.unlink()
        stress.completed(name, f"{name}, after a full disk")
    stress.counts["full disks"] += 1


def sealed(stress: Stress, name: str) -> None:
    """Run where the folder of results cannot be written to: refused before the work."""
    stress.cleared()
    with read_only(stress.out):
        began = time.monotonic()
        code, said = stress.run(name)
        early = time.monotonic() - began < stress.seconds[name]
        stress.report.expect(
            code == 2 and said.count("\n") == 1 and early, f"{name}: read-only: {said.strip()[-200:]!r}"
        )
    stress.completed(name, f"{name}, after a read-only folder")
    stress.counts["read-only folders"] += 1


PARTS: dict[str, Callable[[Stress, str], None]] = {
    "kill": kill,
    "second": second,
    "clock": clock,
    "disk": full_disk,
    "read-only": sealed,
}


def go_round(stress: Stress, names: list[str], parts: list[str], seconds: float) -> None:
    """Try part after part on command after command until the time is over; every second one is a kill."""
    end, number = time.monotonic() + seconds, 0
    order = [(name, part) for part in parts for name in names]
    while time.monotonic() < end:
        name, part = order[number % len(order)]
        for each in ("kill", part) if part != "kill" and "kill" in parts else (part,):
            try:
                PARTS[each](stress, name)
            except pytest.skip.Exception as skipped:
                stress.report.say(f"{each} of {name} is left out: {skipped}")
        number += 1


def main() -> int:
    """Run all commands and parts, or those named, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--command", action="append", choices=list(COMMANDS), help="one or more; all unless given")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="one or more; all unless given")
    asked = parser.parse_args()
    drivers.PATIENCE = PATIENCE
    names = asked.command or list(COMMANDS)
    with tempfile.TemporaryDirectory() as folder:
        stress = Stress(Path(folder).resolve(), array_generator(asked.seed, "stress"))
        prepare(stress, names)
        go_round(stress, names, asked.part or list(PARTS), asked.seconds)
    for text in stress.report.wrong:
        print(f"WRONG {text}")
    wrong = len(stress.report.wrong)
    told = f"{', '.join(f'{count} {what}' for what, count in stress.counts.items())}; {wrong} things were wrong."
    command = f"python -m benchmarks.stress --seconds {asked.seconds:g} --seed {asked.seed}"
    print(told, write_results("stress", Sheet(**stamp(command), notes={"findings": told})), sep="\n")
    return 1 if stress.report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
