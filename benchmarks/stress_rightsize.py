"""Whether a rightsizing survives `kill -9`: at random moments, again and again, on tables of classes and of numbers.

Each command is run undisturbed once; then it is killed again and again, and begun anew with the same words, until it is
left alone. After each kill nothing may be delivered, or all of it; in the end the networks must be those of the
undisturbed run, bit for bit, and no stage that was finished may have been done again: so each kill costs the stage that
it interrupts, and no more. `python -m benchmarks.stress_rightsize` kills twenty times or more, and goes round again
until `--seconds` are over.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy

from benchmarks.paging.records import Cell, Grid, Sheet
from benchmarks.paging.writing import stamp, write_results
from benchmarks.stress_study import Report
from tests.study import drivers
from topiarist.randomness import array_generator
from topiarist.rightsizing.making import Made
from topiarist.rightsizing.stages import Stages

FEWEST = 20  # kills
PATIENCE = 1_200  # seconds, for a command on a busy machine
RECORD, NETWORKS = "result.json", ".safetensors"
ROWS, INPUTS = 300, 8  # of the table of numbers: Friedman's, with inputs that say nothing


@dataclass(frozen=True)
class Case:
    """A command, and how often one run of it is killed before it may end."""

    words: str
    kills: int


CASES = {
    "classes": Case("rightsize iris --effort quick --methods distinctiveness,surgeon --no-onnx", 6),
    "numbers": Case("rightsize numbers.csv --target y --effort quick --methods distinctiveness", 6),
    "digits": Case("rightsize digits --effort quick", 4),
    "classes, normal": Case(
        "rightsize iris --effort normal --methods distinctiveness --teacher baselines --no-onnx", 4
    ),
}


@dataclass
class Seen:
    """What was seen of one command."""

    seconds: float
    stages: int
    networks: dict[str, bytes]
    names: set[str]
    runs: int = 0
    kills: int = 0
    again: int = 0


@dataclass
class Stress:
    """A folder to work in, random moments, and what was seen."""

    folder: Path
    random: Any
    report: Report = field(default_factory=Report)
    seen: dict[str, Seen] = field(default_factory=dict)

    @property
    def kills(self) -> int:
        """How often a command was killed."""
        return sum(seen.kills for seen in self.seen.values())

    @property
    def out(self) -> Path:
        """Where a command delivers."""
        return self.folder / "out"

    @property
    def log(self) -> Path:
        """The names of the stages that were finished, by all processes since it was removed."""
        return self.folder / "log"

    def cleared(self) -> None:
        """Begin with nothing."""
        for place in (self.out, self.folder / "out.work"):
            shutil.rmtree(place, ignore_errors=True)
        self.log.unlink(missing_ok=True)

    def done(self) -> list[str]:
        """Return the names of the finished stages."""
        return self.log.read_text().split("\n")[:-1] if self.log.exists() else []

    def started(self, name: str) -> Any:
        """Start a command that writes down its stages."""
        words = [*CASES[name].words.split(), "--out", "out"]
        return drivers.driver(self.folder, *words, prepare=partial(write_down, self.log))


def write_down(log: Path) -> None:
    """Let this process write down the name of each stage when it is kept."""
    keep, text = Stages.keep, Stages.text

    def note(name: str) -> None:
        with log.open("a") as file:
            file.write(f"{name}\n")

    def kept(self: Stages, name: str, made: Made) -> Made:
        found = keep(self, name, made)
        note(name)
        return found

    def texted(self: Stages, name: str, make: Callable[[], str]) -> str:
        there = self.folder is not None and (self.folder / name).exists()
        found = text(self, name, make)
        if not there:
            note(name)
        return found

    Stages.keep, Stages.text = kept, texted  # type: ignore[method-assign]  # in a process of its own


def delivered(out: Path) -> dict[str, bytes]:
    """Return the networks that were delivered, by file."""
    return {path.name: path.read_bytes() for path in sorted(out.glob(f"*{NETWORKS}"))}


def names_in(out: Path) -> set[str]:
    """Return the names of all files that were delivered."""
    return {path.name for path in out.iterdir()}


def undisturbed(stress: Stress, name: str) -> Seen:
    """Run a command to its end."""
    stress.cleared()
    begun = time.monotonic()
    with stress.started(name) as started:
        code, _, said = started.end()
    seconds = time.monotonic() - begun
    stress.report.expect(code == 0, f"{name}: undisturbed in {seconds:.0f} s {said.strip()[-200:]!r}")
    return Seen(seconds, len(stress.done()), delivered(stress.out), names_in(stress.out))


def whole_or_nothing(stress: Stress, name: str) -> bool:
    """Expect after a kill that nothing is delivered, or all of it; return whether all of it is."""
    seen, there = stress.seen[name], stress.out.exists()
    whole = there and names_in(stress.out) == seen.names
    stress.report.expect(whole or not there, f"{name}: killed, {'all' if there else 'nothing'} is delivered")
    left = stress.folder / "out.work"
    beside = {path.name for path in stress.folder.iterdir() if "out" in path.name} - {"out", "out.work", "stdout"}
    unknown = {each for each in beside if not each.startswith(".")}
    stress.report.expect(there or left.is_dir() or not stress.done(), f"{name}: what was done is kept")
    stress.report.expect(not unknown, f"{name}: nothing else lies beside it {sorted(unknown) or ''}")
    return whole


def killed_again_and_again(stress: Stress, name: str) -> None:
    """Kill a command at random moments, and say it again until it is left alone."""
    seen = stress.seen[name]
    stress.cleared()
    for left in range(CASES[name].kills, 0, -1):
        with stress.started(name) as started:  # each of the kills comes as far as to its share of the time, on average
            begun, patience = time.monotonic(), float(stress.random.uniform(0, 2 * seen.seconds / (left + 2)))
            while started.running and time.monotonic() - begun < patience:
                time.sleep(0.002)
            running = started.running
        seen.kills += running
        if whole_or_nothing(stress, name):
            break
    code, said = 0, ""
    if (stress.folder / "out.work").exists() or not stress.out.exists():
        with stress.started(name) as started:
            code, _, said = started.end()
    seen.runs += 1
    stages = stress.done()
    twice = len(stages) - len(set(stages))
    seen.again += twice
    stress.report.expect(code == 0, f"{name}: after kills, ended with {code} {said.strip()[-200:]!r}")
    stress.report.expect(delivered(stress.out) == seen.networks, f"{name}: after kills, the same bits")
    stress.report.expect(names_in(stress.out) == seen.names, f"{name}: after kills, the same files")
    stress.report.expect(not twice, f"{name}: {len(stages)} stages, {twice} of the finished ones done again")
    stress.report.expect(len(set(stages)) == seen.stages, f"{name}: the stages of an undisturbed run")
    stress.report.expect(not (stress.folder / "out.work").exists(), f"{name}: the work folder is gone")


def write_numbers(folder: Path) -> None:
    """Write a table of numbers: Friedman's first, with noise."""
    random = array_generator(0, "numbers")
    x = random.uniform(size=(ROWS, INPUTS))
    y = 10 * numpy.sin(numpy.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    rows = numpy.column_stack([x, y + random.normal(size=ROWS)])
    head = ",".join([*(f"x{number}" for number in range(INPUTS)), "y"])
    numpy.savetxt(folder / "numbers.csv", rows, fmt="%.6f", delimiter=",", header=head, comments="")


def rows_of(stress: Stress) -> tuple[tuple[Cell, ...], ...]:
    """Return what was seen, command by command."""
    return tuple(
        (
            f"`topiarist {CASES[name].words}`",
            f"{seen.seconds:.0f} s",
            str(seen.stages),
            str(seen.kills),
            str(seen.runs),
            str(seen.again),
        )
        for name, seen in stress.seen.items()
    )


def main() -> int:
    """Kill all commands, or those named, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0, help="what was begun by then is ended")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", action="append", choices=list(CASES), help="one or more; all unless given")
    asked = parser.parse_args()
    drivers.PATIENCE = PATIENCE
    end, names = time.monotonic() + asked.seconds, asked.case or list(CASES)
    with tempfile.TemporaryDirectory() as folder:
        stress = Stress(Path(folder).resolve(), array_generator(asked.seed, "stress of rightsizing"))
        write_numbers(stress.folder)
        number = 0
        while number < len(names) or time.monotonic() < end or stress.kills < FEWEST:
            name = names[number % len(names)]
            if name not in stress.seen:
                stress.seen[name] = undisturbed(stress, name)
            killed_again_and_again(stress, name)
            number += 1
    wrong = stress.report.wrong
    for text in wrong:
        print(f"WRONG {text}")
    told = f"{stress.kills} kills; {len(wrong)} things were wrong{': ' if wrong else ''}{'; '.join(wrong)}."
    head = ("command", "undisturbed", "stages", "kills", "runs that were killed", "finished stages done again")
    command = f"python -m benchmarks.stress_rightsize --seconds {asked.seconds:g} --seed {asked.seed}"
    sheet = Sheet(**stamp(command), grids={"kills": Grid(head=head, rows=rows_of(stress))}, notes={"findings": told})
    print(told, write_results("stress_rightsize", sheet), sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
