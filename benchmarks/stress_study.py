"""Whether a study survives: kills at random moments, dying workers, full disks, signals, many drivers at once.

Each line says what was done and what was seen; the exit code is 1 where anything was not as it must be: no cell lost,
none run again once it is recorded, the ledger sound at every moment, and in the end the same results bit for bit as
those of one undisturbed worker. Disks are tried only where this process may mount them. Loopback only.
"""

import argparse
import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.study.clusters import running_cluster
from tests.study.disks import fill, read_only, small_disk
from tests.study.drivers import no_orphans, psutil
from tests.study.studies import begun, check_whole, driven_by, outcome, states, until
from topiarist.cli.study_output import status_of
from topiarist.errors import TopiaristError
from topiarist.randomness import array_generator

ROOT = Path(__file__).parents[1]
SEARCHED = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
COMMAND = Path(sys.executable).with_name("topiarist")
STUDY = """
data = "wine"
folds = 2
seeds = 4
stack = 4
training.epochs = 30
methods = [{ name = "none" }, { name = "distinctiveness", keep_fraction = 0.5 }]
grid."training.learning_rate" = [0.01, 0.003]

[[variants]]
name = "one layer"
model.hidden = [30]

[[variants]]
name = "two layers"
model.hidden = [20, 20]

[[variants]]
name = "own code"
model = { code = "tests.study.networks:network", options = { width = 6, pause = 0.003, log = "LOG" } }
"""  # 96 cells of 48 trainings in 24 tasks, of about half a second each


@dataclass
class Report:
    """What was seen, and what of it was wrong."""

    wrong: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Print a line."""
        print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)

    def expect(self, condition: bool, text: str) -> None:
        """Print a line, and remember it where it is not so."""
        self.say(f"{'ok   ' if condition else 'WRONG'} {text}")
        if not condition:
            self.wrong.append(text)

    def holds(self, check: Callable[[], object], text: str) -> None:
        """Run a check that asserts."""
        try:
            check()
        except AssertionError as error:
            self.expect(False, f"{text}: {error}")
        else:
            self.expect(True, text)


@dataclass
class Bench:
    """A folder with the study, what it comes to, and somewhere to say what is seen."""

    folder: Path
    report: Report
    random: Any
    kills: int
    expected: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def log(self) -> Path:
        """Where the networks of own code write down that they are trained."""
        return self.folder / "log"

    @contextmanager
    def driver(self, *words: object, **options: Any) -> Iterator[subprocess.Popen[str]]:
        """Start the installed command in a session of its own; nothing of it is left after the block."""
        process = subprocess.Popen(
            [COMMAND, "study", *map(str, words)],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": SEARCHED},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **options,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def finish(self, *words: object) -> tuple[int, str, str]:
        """Run the installed command to its end."""
        with self.driver(*words) as process:
            out, err = process.communicate(timeout=600)
            return process.returncode, out, err

    def completed(self, out: Path, what: str) -> None:
        """Expect the same results as those of an undisturbed worker."""
        self.report.holds(lambda: check_whole(out), f"{what}: the ledger and its files are sound")
        self.report.expect(outcome(out) == self.expected, f"{what}: the same results bit for bit")

    def trained(self) -> int:
        """Return how many networks of own code were begun."""
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


def undisturbed(bench: Bench) -> None:
    """One worker, then two: the yardstick."""
    (bench.folder / "study.toml").write_text(STUDY.replace("LOG", str(bench.log)))
    for workers in (1, 2):
        out = bench.folder / f"undisturbed-{workers}"
        began = time.monotonic()
        code, _, err = bench.finish("run", "study.toml", "--out", out, "--workers", workers)
        seconds = time.monotonic() - began
        bench.report.expect((code, err) == (0, ""), f"{workers} workers: done in {seconds:.1f} s")
        if workers == 1:
            bench.expected, bench.seconds = outcome(out), seconds
            bench.report.expect(set(states(out)) == {"done"}, f"{len(states(out))} cells are done")
        bench.completed(out, f"{workers} workers")


def kill_the_driver(bench: Bench, *, workers: int) -> None:
    """`kill -9` at random moments, then `study resume`, until the study is done."""
    out = bench.folder / f"killed-{workers}"
    words: tuple[object, ...] = ("run", "study.toml", "--out", out)
    kept: dict[str, float] = {}
    bench.log.unlink(missing_ok=True)
    for number in range(1, bench.kills + 1):
        with bench.driver(*words, "--workers", workers) as process:
            until(lambda: driven_by(out) == process.pid, seconds=120)  # earlier moments: see below
            if number % 2:  # every other time at work, else at any moment, also while workers are started
                until(lambda: len(begun(out)) > len(kept) or process.poll() is not None, seconds=120)  # noqa: B023
            time.sleep(bench.random.uniform(0, 2))
            ended = process.poll() is not None
            process.kill()
            process.wait()
        what = f"kill {number} of {bench.kills} with {workers} workers"
        bench.report.holds(lambda: check_whole(out), f"{what}: the ledger is sound")
        now = begun(out)
        bench.report.expect(
            {key: now.get(key) for key in kept} == kept,
            f"{what}: nothing recorded was done again, {len(now)} cells done",
        )
        bench.report.expect(no_orphans(bench.folder), f"{what}: no process is left behind")
        kept, words = now, ("resume", out)
        if ended:
            bench.report.say(f"{what}: the study was done before it could be killed")
    code, _, err = bench.finish(*words, "--workers", workers)
    bench.report.expect((code, err) == (0, ""), f"resumed with {workers} workers after {bench.kills} kills")
    bench.completed(out, f"{bench.kills} kills with {workers} workers")
    now, again = begun(out), bench.trained() - 16
    bench.report.expect({key: now[key] for key in kept} == kept, "what was recorded before the last kill is untouched")
    most_again = bench.kills * workers
    bench.report.expect(0 <= again <= most_again, f"{again} trainings were begun again, of {most_again} that might be")


def kill_at_the_start(bench: Bench) -> None:
    """`kill -9` in the first moments, when the folder, the lock and the ledger are made."""
    code, _, _ = bench.finish("status", bench.folder / "undisturbed-1")
    for number in range(bench.kills):
        out = bench.folder / f"early-{number}"
        with bench.driver("run", "study.toml", "--out", out, "--workers", 1) as process:
            until(out.exists, seconds=120)
            time.sleep(bench.random.uniform(0, 0.02))
            process.kill()
            process.wait()
        seen = sorted(path.name for path in out.iterdir())
        status, _, said = bench.finish("status", out)
        one_line = status == 0 or (status == 2 and said.count("\n") == 1)
        bench.report.expect(one_line, f"killed at the start, {seen} there: the status is {status} {said.strip()!r}")
    code, _, err = bench.finish("run", "study.toml", "--out", out, "--workers", 1)
    bench.report.expect((code, err) == (0, ""), "the last of them was run again")
    bench.completed(out, "killed at the start")


def kill_workers(bench: Bench) -> None:
    """`kill -9` of a worker in the middle of a task, three times."""
    out = bench.folder / "workers"
    with bench.driver("run", "study.toml", "--out", out, "--workers", 2) as process:
        for number in range(1, 4):
            until(lambda: states(out).count("done") >= 4 * number or process.poll() is not None, seconds=120)  # noqa: B023
            if process.poll() is not None:
                break
            time.sleep(bench.random.uniform(0.1, 0.5))
            children = psutil.Process(process.pid).children(recursive=True)
            workers = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
            if workers:
                victim = workers[int(bench.random.integers(len(workers)))]
                victim.kill()
                bench.report.say(f"killed the worker {victim.pid} of {[worker.pid for worker in workers]}")
        _, err = process.communicate(timeout=600)
        bench.report.expect((process.returncode, err) == (0, ""), f"the driver ended well: {err.strip()!r}")
    bench.completed(out, "three workers killed")


def on_a_cluster(bench: Bench) -> None:
    """A scheduler and two workers of their own, one of which is killed on the way."""
    place, out = bench.folder / "cluster", bench.folder / "on-cluster"
    place.mkdir()
    with running_cluster(place) as cluster:
        workers = [cluster.add_worker(), cluster.add_worker()]
        with bench.driver("run", "study.toml", "--out", out, "--cluster", cluster.address) as process:
            until(lambda: states(out).count("done") >= 8 or process.poll() is not None, seconds=120)
            workers[0].kill()
            _, err = process.communicate(timeout=600)
            bench.report.expect((process.returncode, err) == (0, ""), f"the driver ended well: {err.strip()[-300:]!r}")
        bench.report.expect(workers[1].poll() is None, "the other worker goes on")
    bench.completed(out, "scheduler and two workers")
    (bench.folder / "lost").mkdir()
    out = bench.folder / "without-scheduler"
    with running_cluster(bench.folder / "lost") as cluster:
        cluster.add_worker()
        with bench.driver("run", "study.toml", "--out", out, "--cluster", cluster.address) as process:
            until(lambda: "done" in states(out) or process.poll() is not None, seconds=120)
            cluster.processes[0].kill()
            _, err = process.communicate(timeout=120)
    one_line = process.returncode == 2 and "Traceback" not in err
    bench.report.expect(one_line, f"the scheduler was lost: {process.returncode}, {err.strip()[-300:]!r}")
    bench.report.expect(set(states(out)) == {"done", "waiting"}, "the scheduler was lost: nothing has failed of it")
    bench.report.expect(bench.finish("resume", out, "--workers", 1)[0] == 0, "the scheduler was lost: resumed")
    bench.completed(out, "after the scheduler was lost")


def signals(bench: Bench) -> None:
    """Ctrl-C on a terminal, SIGTERM, both twice, at random moments; then the study goes on."""
    cases = [
        (number, workers, twice) for number in (signal.SIGINT, signal.SIGTERM) for workers in (1, 2) for twice in (0, 1)
    ]
    out = bench.folder / "signals"
    words: tuple[object, ...] = ("run", "study.toml", "--out", out)
    for number, workers, twice in cases:
        what = f"{number.name}{' twice' if twice else ''} with {workers} workers"
        with bench.driver(*words, "--workers", workers) as process:
            until(lambda: driven_by(out) == process.pid or process.poll() is not None, seconds=120)
            time.sleep(bench.random.uniform(0, 0.2 * bench.seconds))
            send = os.killpg if number == signal.SIGINT else os.kill
            began = time.monotonic()
            send(process.pid, number)
            if twice:
                time.sleep(bench.random.uniform(0, 0.5))
                if process.poll() is None:
                    send(process.pid, number)
            _, err = process.communicate(timeout=120)
        proper = (
            process.returncode == 130 and err == f"topiarist: interrupted: go on with `topiarist study resume {out}`\n"
        )
        proper |= (
            bool(twice) and process.returncode == -number and err.count("\n") == 1
        )  # the second came after the line
        done = process.returncode == 0
        seconds = time.monotonic() - began
        bench.report.expect(
            proper or done, f"{what}: {process.returncode} after {seconds:.1f} s, {err.strip()[-200:]!r}"
        )
        bench.report.expect(no_orphans(bench.folder), f"{what}: no process is left behind")
        bench.report.holds(lambda: check_whole(out), f"{what}: the ledger is sound, {len(begun(out))} cells done")
        words = ("resume", out)
    bench.report.expect(bench.finish("resume", out, "--workers", 1)[0] == 0, "resumed")
    bench.completed(out, "after all signals")


def ctrl_c_on_a_terminal(bench: Bench) -> None:
    """A real terminal: the bar is shown, and the key Ctrl-C is pressed."""
    out = bench.folder / "terminal"
    words = [str(COMMAND), "study", "run", "study.toml", "--out", str(out), "--workers", "2"]
    child, terminal = pty.fork()
    if not child:
        os.chdir(bench.folder)
        os.execve(words[0], words, {**os.environ, "PYTHONPATH": SEARCHED, "TERM": "xterm"})
    shown: list[bytes] = []

    def read() -> None:
        try:
            while part := os.read(terminal, 4096):
                shown.append(part)
        except OSError:
            return

    reader = threading.Thread(target=read)
    reader.start()
    until(lambda: states(out).count("done") >= 4, seconds=120)
    os.write(terminal, b"\x03")
    _, status = os.waitpid(child, 0)
    reader.join(10)
    os.close(terminal)
    text = b"".join(shown).decode(errors="replace")
    bench.report.expect(os.waitstatus_to_exitcode(status) == 130, "Ctrl-C on a terminal: exit code 130")
    bench.report.expect("cells" in text and "study resume" in text and "Traceback" not in text, "a bar, then one line")
    bench.report.expect(no_orphans(bench.folder), "no process is left behind")
    bench.report.expect(bench.finish("resume", out, "--workers", 2)[0] == 0, "resumed")
    bench.completed(out, "after Ctrl-C on a terminal")


def many_drivers(bench: Bench) -> None:
    """Four drivers at once on one folder, and somebody who asks for the status all the time, from the first moment."""
    out = bench.folder / "many"
    answers: dict[str, int] = {}
    codes: list[tuple[int, str]] = []

    def drive() -> None:
        code, _, err = bench.finish("run", "study.toml", "--out", out, "--workers", 1)
        codes.append((code, err))

    threads = [threading.Thread(target=drive) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        try:
            status = status_of(out)
            answer = "running" if status["running"] else "not running"
        except TopiaristError as error:
            answer = str(error).replace(str(out), "there")
        answers[answer] = answers.get(answer, 0) + 1
    for answer, count in answers.items():
        bench.report.say(f"the status was asked {count} times with the answer: {answer}")
    bench.report.expect(answers.get("running", 0) > 100, "the status answers while the study runs")
    refused = [err for code, err in codes if code == 2]
    counts = sorted(code for code, _ in codes)
    bench.report.expect(counts == [0, 2, 2, 2], f"one driver runs, {len(refused)} are refused: {refused}")
    bench.report.expect(all("is being run by" in err and err.count("\n") == 1 for err in refused), "each in one line")
    bench.completed(out, "four drivers at once")


def full_disk(bench: Bench) -> None:
    """Disks with less and less room, one and two workers; then room is made."""
    with small_disk(bench.folder / "disk", kilobytes=4000) as disk:
        for workers in (1, 2):
            for room in (0, 12, 40, 80, 160, 280):
                out, what = disk / f"out-{workers}-{room}", f"{room} KB left, {workers} workers"
                ballast = fill(disk, leave_kilobytes=room)
                code, _, err = bench.finish("run", "study.toml", "--out", out, "--workers", workers)
                one_line = code == 2 and err.count("\n") == 1
                bench.report.expect(one_line, f"{what}: exit code {code}, {err.strip()[-300:]!r}")
                bench.report.expect(no_orphans(bench.folder), f"{what}: no process is left behind")
                ballast.unlink()
                if states(out):
                    bench.report.holds(lambda: check_whole(out), f"{what}: sound, {len(begun(out))} cells")  # noqa: B023
                kept = begun(out) if states(out) else {}
                code, _, err = bench.finish("run", "study.toml", "--out", out, "--workers", workers)
                bench.report.expect((code, err) == (0, ""), f"{what}: went on when there was room")
                bench.completed(out, what)
                bench.report.expect({key: begun(out)[key] for key in kept} == kept, f"{what}: nothing was done again")
                subprocess.run(["rm", "-r", str(out)], check=True)


def disk_that_becomes_read_only(bench: Bench) -> None:
    """The folder must no longer be written to while the study runs, as after an error of the disk."""
    out = bench.folder / "sealed"
    with bench.driver("run", "study.toml", "--out", out, "--workers", 2) as process:
        until(lambda: states(out).count("done") >= 4, seconds=120)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    kept = begun(out)
    with read_only(out):
        code, _, err = bench.finish("resume", out, "--workers", 1)
        bench.report.expect(code == 2 and err.count("\n") == 1, f"read-only: exit code {code}, {err.strip()!r}")
        code, said, _ = bench.finish("status", out, "--json")
        bench.report.expect(code == 0 and json.loads(said)["done"] == len(kept), "read-only: the status is known")
    bench.report.expect(bench.finish("resume", out, "--workers", 1)[0] == 0, "went on when it could be written to")
    bench.completed(out, "read-only for a while")


PARTS: dict[str, Callable[[Bench], None]] = {
    "kill-1": lambda bench: kill_the_driver(bench, workers=1),
    "kill-2": lambda bench: kill_the_driver(bench, workers=2),
    "kill-early": kill_at_the_start,
    "workers": kill_workers,
    "cluster": on_a_cluster,
    "signals": signals,
    "terminal": ctrl_c_on_a_terminal,
    "many": many_drivers,
    "disk": full_disk,
    "read-only": disk_that_becomes_read_only,
}


def main() -> int:
    """Run all parts, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all unless given")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which no other part is begun")
    asked = parser.parse_args()
    chosen = {name: PARTS[name] for name in asked.parts or PARTS}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder).resolve(), Report(), array_generator(asked.seed, "stress"), asked.kills)
        undisturbed(bench)
        end = time.monotonic() + asked.seconds
        for name, part in chosen.items():
            if time.monotonic() > end:
                bench.report.say(f"--- {name} is left out: the time is over")
                continue
            bench.report.say(f"--- {name}")
            try:
                part(bench)
            except BaseException as error:  # also what pytest calls a skip: one part must not hide the others
                if isinstance(error, KeyboardInterrupt):
                    raise
                skipped = type(error).__name__ == "Skipped"
                bench.report.expect(skipped, f"{name}: {'skipped: ' if skipped else ''}{type(error).__name__}: {error}")
    for text in bench.report.wrong:
        print(f"WRONG {text}")
    print(f"{len(bench.report.wrong)} things were wrong")
    return 1 if bench.report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
