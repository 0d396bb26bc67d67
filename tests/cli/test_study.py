"""`topiarist study` as a user meets it: what it says, what it leaves behind, and how it is stopped."""

import csv
import io
import json
import os
import re
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas
import pytest

from tests.cli.conftest import Run, invoke
from tests.pace import all_steps_taken
from tests.study.disks import fill, read_only, small_disk
from tests.study.drivers import command as forked
from tests.study.drivers import driver, no_orphans
from tests.study.studies import SMALL_TOML, begun, check_whole, driven_by, outcome, states, until
from topiarist.study.ledger import Ledger

SLOW = """
data = "iris"
training.epochs = 2
stack = 2
seeds = 2
grid."training.learning_rate" = [0.01, 0.02]
methods = [{ name = "none" }, { name = "distinctiveness", keep_fraction = 0.5 }]

[[variants]]
name = "slow"
model = { code = "tests.study.networks:network", options = { pause = 0.05 } }

[[variants]]
name = "stacked"
model.hidden = [6, 5]
"""  # 16 cells of 8 trainings: 2 stacks, and 4 that take 0.4 s each


@pytest.fixture(scope="module", autouse=True)
def as_in_other_processes() -> Iterator[None]:
    """Let studies settle networks in as many steps here as commands in processes of their own."""
    with all_steps_taken():
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small study that is done."""
    folder = tmp_path_factory.mktemp("studies")
    (folder / "small.toml").write_text(SMALL_TOML)
    code, _, err = invoke("study", "run", folder / "small.toml", "--workers", 1)
    assert (code, err) == (0, "")
    return folder / "small"


@pytest.mark.slow
def test_the_installed_command(installed: Run, finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, said, err = installed("study", "run", finished.with_suffix(".toml"), "--workers", 1, "--out", out)
    assert (code, err) == (0, "") and outcome(out) == outcome(finished)
    assert "16 of 16 done (100% of the work)" in said and f"topiarist study results {out}" in join(said)


def join(text: str) -> str:
    """Undo what a narrow terminal does to long lines."""
    return " ".join(text.split())


def one_line(err: str) -> str:
    assert err.startswith("topiarist: ") and err.endswith("\n") and err.count("\n") == 1, err
    return err.removeprefix("topiarist: ").strip()


@pytest.mark.slow
def test_status(command: Run, finished: Path) -> None:
    code, out, err = command("study", "status", finished, "--json")
    status = json.loads(out)
    assert (code, err) == (0, "")
    assert (status["cells"], status["done"], status["failed"], status["waiting"]) == (16, 16, 0, 0)
    assert (status["study"], status["running"], status["driver"], status["failures"]) == ("small", False, None, [])
    assert status["share_of_work"] == pytest.approx(1.0) and status["seconds_left"] == 0.0
    assert status["compute_seconds"] > 0
    code, out, err = command("study", "status", finished)
    assert (code, err) == (0, "") and "16 of 16 done" in out


@pytest.mark.slow
def test_running_again_does_nothing_and_says_so_to_programs(command: Run, finished: Path) -> None:
    before = begun(finished)
    for words in (("run", finished.with_suffix(".toml")), ("resume", finished), ("resume", finished, "--retry-failed")):
        code, out, err = command("study", *words, "--json")
        assert (code, err, json.loads(out)["done"]) == (0, "", 16)
    assert begun(finished) == before


@pytest.mark.slow
def test_results_for_the_eye(command: Run, finished: Path) -> None:
    code, out, err = command("study", "results", finished)
    assert (code, err) == (0, "")
    for said in (
        "configuration",
        "accuracy",
        "hidden 5",
        "hidden 4-3",
        "none",
        "distinctiveness",
        "baseline",
        "front",
        "Holm",
    ):
        assert said in join(out), said
    code, out, err = command(
        "study", "results", finished, "--margin", 0.5, "--metric", "macro_accuracy", "--size", "macs"
    )
    assert (code, err) == (0, "") and "smallest: " in out


COLUMNS = {
    "summary": {"configuration", "n", "mean", "sd", "low", "high", "parameters", "macs"},
    "cells": {"configuration", "fold", "seed", "state", "accuracy", "parameters", "hidden", "method"},
    "tests": {"configuration", "difference", "p", "holm_p", "test"},
    "front": {"configuration", "parameters", "accuracy", "front", "knee"},
}
LENGTHS = {"summary": 4, "cells": 16, "tests": 3, "front": 4}


@pytest.mark.slow
@pytest.mark.parametrize("table", ["summary", "cells", "tests", "front"])
def test_results_for_programs_and_papers(command: Run, finished: Path, table: str, tmp_path: Path) -> None:
    def written(form: str, *more: object) -> str:
        code, out, err = command("study", "results", finished, "--format", form, "--table", table, *more)
        assert (code, err) == (0, "")
        return out

    rows = list(csv.DictReader(io.StringIO(written("csv"))))
    loaded = pandas.DataFrame(json.loads(written("json")))
    place = tmp_path / "table.parquet"
    assert written("parquet", "--out", place) == ""
    parquet = pandas.read_parquet(place)
    for frame in (pandas.DataFrame(rows), loaded, parquet):
        assert len(frame) == LENGTHS[table] and set(frame.columns) >= COLUMNS[table]
    number = {"summary": "mean", "cells": "accuracy", "tests": "difference", "front": "accuracy"}[table]
    assert [float(row[number]) for row in rows] == loaded[number].tolist() == parquet[number].tolist()
    latex, markdown = written("latex"), written("markdown")
    assert latex.count(r"\\") >= LENGTHS[table] and r"\begin{tabular" in latex and table in latex
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len(lines) == LENGTHS[table] + 2 and {line.count("|") for line in lines} == {lines[0].count("|")}
    place = tmp_path / "table.csv"
    assert written("csv", "--out", place) == "" and place.read_text() == written("csv")


@pytest.mark.slow
def test_scores_of_the_table_are_those_of_the_ledger(command: Run, finished: Path) -> None:
    _, out, _ = command("study", "results", finished, "--format", "json", "--table", "summary")
    with closing(sqlite3.connect(finished / "ledger.sqlite")) as connection:
        found = connection.execute(
            "SELECT label, AVG(json_extract(result, '$.accuracy')) FROM cells GROUP BY label"
        ).fetchall()
    assert {row["configuration"]: row["mean"] for row in json.loads(out)} == pytest.approx(dict(found))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--metric", "beauty"), "no figure is called 'beauty'"),
        (("--baseline", "nobody"), "no configuration with results is called 'nobody'"),
        (("--size", "latency_ms"), "declare latency = true"),
        (("--format", "parquet"), "name a file with --out"),
        (("--format", "word"), "--format"),
        (("--table", "all", "--format", "csv"), "--table"),
        (("--margin", "-1"), "--margin"),
        (("--format", "csv", "--out", "/nowhere/table.csv"), "cannot write /nowhere/table.csv"),
    ],
)
def test_what_cannot_be_shown_is_one_line(command: Run, finished: Path, words: tuple[str, ...], said: str) -> None:
    code, out, err = command("study", "results", finished, *words)
    assert (code, out) == (2, "") and said in one_line(err)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("seeds = 3\n", None, "data: Field required"),
        ('data = "iris"\nseeds = 0\n', 2, "seeds"),
        ('data = "iris"\n[grid]\n"training.epochs" = [1, -1]\n', 3, "grid.training.epochs"),
        ('data = "iris"\n[training]\nepoch = 1\n', 3, "training.epoch: there is no such setting"),
        (
            'data = "iris"\n[[methods]]\nname = "none"\n[[methods]]\nname = "distinctiveness"\nkeep_fraction = 2\n',
            6,
            "methods.1.keep_fraction",
        ),
        ('data = "iris"\n[[methods]]\nname = "cut"\n', 3, "methods.0.name: must be one of none, distinctiveness"),
        ("data = iris\n", None, "is not TOML"),
        ('data = "nowhere.csv"\n', None, "cannot read nowhere.csv"),
        ('data = "iris"\n[grid]\n"model.activation" = ["relu", "rely"]\n', 3, "grid.model.activation: must be 'selu'"),
        ('data = "iris"\nmodel.code = "no_such_module:f"\n', None, "No module named 'no_such_module'"),
    ],
)
def test_a_bad_file_is_one_line_and_nothing_is_written(
    command: Run, tmp_path: Path, text: str, line: int | None, said: str
) -> None:
    file = tmp_path / "study.toml"
    file.write_text(text)
    code, out, err = command("study", "run", file, "--workers", 1)
    found = one_line(err)
    assert (code, out) == (2, "") and said in found and list(tmp_path.iterdir()) == [file]
    assert (f"line {line}: " in found) == (line is not None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "none.toml"), "cannot read the study none.toml: No such file"),
        (("resume", "none"), "there is no study in none"),
        (("status", "none"), "there is no study in none"),
        (("results", "none"), "there is no study in none"),
        (("run", "study.toml", "--workers", "0"), "--workers"),
        (("run", "study.toml", "--out", "study.toml"), "cannot write study.toml"),
        (("run",), "FILE"),
        (("runn",), "runn"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(SMALL_TOML)
    code, out, err = command("study", *words)
    assert (code, out) == (2, "") and said in one_line(err)
    assert [path.name for path in tmp_path.iterdir()] == ["study.toml"]


@pytest.mark.parametrize("path", [".", "/"])
def test_a_folder_is_no_file(command: Run, path: str) -> None:
    code, out, err = command("study", "run", path)
    assert (code, out) == (2, "") and "cannot read the study" in one_line(err)


def test_help(command: Run) -> None:
    for words in ((), ("run",), ("resume",), ("status",), ("results",)):
        code, out, _ = command("study", *words, "--help")
        assert code == 0 and "topiarist study" in out


def test_a_changed_file_is_refused(command: Run, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text('data = "iris"\ntraining.epochs = 1\n')
    assert command("study", "run", file, "--workers", 1)[0] == 0
    file.write_text('data = "iris"\ntraining.epochs = 2\n')
    code, out, err = command("study", "run", file, "--workers", 1)
    assert (code, out) == (2, "") and "choose another folder" in one_line(err)
    assert command("study", "run", file, "--workers", 1, "--out", tmp_path / "other")[0] == 0


FAILING = """
data = "iris"
training.epochs = 1
[model]
code = "tests.study.networks:network"
[grid]
"model.options.kind" = ["fine", "fails", "refuses to read"]
"""


def test_failures_are_counted_and_shown(command: Run, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(FAILING)
    code, out, err = command("study", "run", file, "--workers", 1, "--json")
    status = json.loads(out)
    assert (code, err, status["done"], status["failed"], status["waiting"]) == (0, "", 1, 2, 0)
    assert status["failures"] == sorted(
        ["RuntimeError: gave up", "the network cannot read samples of shape (4,): gave up reading"]
    )
    code, out, err = command("study", "status", tmp_path / "study")
    assert (code, err) == (0, "") and "1 of 3 done, 2 failed (100% of the work)" in out
    code, out, err = command("study", "results", tmp_path / "study")
    assert (code, err) == (0, "") and "2 cells failed" in out
    code, out, err = command("study", "results", tmp_path / "study", "--format", "csv", "--table", "cells")
    cells = pandas.read_csv(io.StringIO(out))
    assert cells["state"].tolist() == ["done", "failed", "failed"]
    assert cells["reason"].tolist()[1] == "RuntimeError: gave up"


def test_every_reason_is_shown(command: Run, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(FAILING)
    _, out, _ = command("study", "run", tmp_path / "study.toml", "--workers", 1)
    assert "gave up reading" in join(out) and "RuntimeError: gave up" in join(out)


def test_results_of_a_study_of_which_nothing_is_done(command: Run, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(FAILING.replace('"fine", ', ""))
    assert command("study", "run", tmp_path / "study.toml", "--workers", 1)[0] == 0
    for words in (
        (),
        ("--format", "csv"),
        ("--format", "csv", "--table", "front"),
        ("--format", "json", "--table", "tests"),
    ):
        code, out, err = command("study", "results", tmp_path / "study", *words)
        said = one_line(err)
        assert (code, out) == (2, "") and ("no cell is done yet" in said or "no size 'parameters' was measured" in said)
    code, out, err = command("study", "results", tmp_path / "study", "--format", "csv", "--table", "cells")
    assert (code, err) == (0, "") and "RuntimeError: gave up" in out


@pytest.mark.slow
def test_one_configuration_has_nothing_to_be_compared_with(command: Run, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text('data = "iris"\ntraining.epochs = 1\nseeds = 2\n')
    assert command("study", "run", tmp_path / "study.toml", "--workers", 1)[0] == 0
    code, out, err = command("study", "results", tmp_path / "study")
    assert (code, err) == (0, "") and "as declared" in join(out)
    code, out, err = command("study", "results", tmp_path / "study", "--format", "csv", "--table", "tests")
    assert code == 2 and one_line(err)


@pytest.mark.parametrize("words", [("status",), ("results",)])
def test_a_study_that_was_killed_before_it_was_declared(command: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    with Ledger.to_write(tmp_path):
        pass
    code, out, err = command("study", *words, tmp_path)
    assert (code, out) == (2, "") and "has not begun" in one_line(err)


def test_what_an_interrupted_command_proposes_can_be_done(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "study.toml").write_text(SMALL_TOML)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("topiarist.study.engine.stacks_of", interrupt)
        code, _, err = command("study", "run", tmp_path / "study.toml", "--workers", 1)
    assert code == 130
    if "study resume" in one_line(err):
        assert command("study", "resume", tmp_path / "study", "--workers", 1)[0] == 0


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, tuple[Any, ...]]]:
    """Return the file of a study that takes 2 s, and what it comes to when nobody disturbs it."""
    folder = tmp_path_factory.mktemp("slow")
    (folder / "slow.toml").write_text(SLOW)
    code, out, err = forked(folder, "study", "run", "slow.toml", "--workers", 1, "--json")
    assert (code, err, json.loads(out)["done"]) == (0, "", 16)
    return folder / "slow.toml", outcome(folder / "slow")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_a_clean_stop(
    command: Run, slow: tuple[Path, dict[str, tuple[Any, ...]]], tmp_path: Path, number: signal.Signals
) -> None:
    """Meanwhile, the status is known and a second driver is refused."""
    file, expected = slow
    out = tmp_path / "out"
    with driver(tmp_path, "study", "run", file, "--out", out, "--workers", 1) as started:
        until(lambda: states(out).count("done") >= 2)
        code, said, err = command("study", "status", out, "--json")
        status = json.loads(said)
        assert (code, err, status["running"], status["cells"]) == (0, "", True, 16)
        assert status["done"] + status["waiting"] == 16 and status["done"] >= 2
        assert status["driver"]["process"] == started.pid and status["seconds_left"] > 0
        assert f"by process {started.pid} on" in join(command("study", "status", out)[1])
        code, said, err = command("study", "resume", out, "--workers", 1)
        assert (code, said) == (2, "")
        assert re.search(rf"is being run by process {started.pid} on \S+: wait for it, or stop it first", one_line(err))
        assert started.running
        started.send(number)
        code, said, err = started.end()
    assert (code, said) == (130, "")
    assert one_line(err) == f"interrupted: resume with `topiarist study resume {out}`"
    check_whole(out)
    kept = begun(out)
    assert 2 <= len(kept) < 16 and no_orphans(tmp_path)
    assert f"no: topiarist study resume {out}" in join(command("study", "status", out)[1]).replace("- ", "-")
    code, _, err = command("study", "resume", out, "--workers", 1)
    assert (code, err) == (0, "")
    check_whole(out)
    assert outcome(out) == expected and {key: begun(out)[key] for key in kept} == kept


@pytest.mark.slow
def test_ctrl_c_with_two_workers(command: Run, slow: tuple[Path, dict[str, tuple[Any, ...]]], tmp_path: Path) -> None:
    """A terminal sends Ctrl-C to all processes at once; the workers leave it to the driver."""
    file, expected = slow
    out = tmp_path / "out"
    with driver(tmp_path, "study", "run", file, "--out", out, "--workers", 2) as started:
        until(lambda: states(out).count("done") >= 2)
        started.send_all(signal.SIGINT)
        code, said, err = started.end()
    assert (code, said) == (130, "")
    assert one_line(err) == f"interrupted: resume with `topiarist study resume {out}`"
    assert no_orphans(tmp_path)
    check_whole(out)
    kept = begun(out)
    assert 2 <= len(kept) < 16
    code, _, err = command("study", "resume", out, "--workers", 1)
    assert (code, err) == (0, "")
    assert outcome(out) == expected and {key: begun(out)[key] for key in kept} == kept


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_workers_are_started(
    slow: tuple[Path, dict[str, tuple[Any, ...]]], tmp_path: Path, number: signal.Signals
) -> None:
    out = tmp_path / "out"
    with driver(tmp_path, "study", "run", slow[0], "--out", out, "--workers", 2) as started:
        until(lambda: driven_by(out) == started.pid)
        time.sleep(0.3)
        started.send_all(number) if number == signal.SIGINT else started.send(number)
        code, said, err = started.end()
    assert (code, said) == (130, "")
    assert one_line(err) == f"interrupted: resume with `topiarist study resume {out}`"
    assert no_orphans(tmp_path)
    check_whole(out)


@pytest.mark.slow
@pytest.mark.parametrize("largest_file", [1000, 20_000, 40_000, 60_000])
def test_files_that_must_not_grow(command: Run, finished: Path, tmp_path: Path, largest_file: int) -> None:
    file, out = finished.with_suffix(".toml"), tmp_path / "out"
    words = ("study", "run", file, "--out", out, "--workers", 1)
    code, said, err = forked(tmp_path, *words, largest_file=largest_file)
    assert (code, said) == (2, "") and str(out) in one_line(err)
    if states(out):
        check_whole(out)
    code, said, err = command(*words)
    assert (code, err) == (0, "")
    check_whole(out)
    assert outcome(out) == outcome(finished)


@pytest.mark.slow
def test_a_full_disk(command: Run, finished: Path, tmp_path: Path) -> None:
    """The less room there is, the earlier it ends; each time in one line, and each time nothing is lost."""
    file = finished.with_suffix(".toml")
    with small_disk(tmp_path / "disk", kilobytes=2000) as disk:
        seen: list[int] = []
        for number, room in enumerate((0, 8, 60, 140)):
            out = disk / f"out{number}"
            ballast = fill(disk, leave_kilobytes=room)
            code, said, err = command("study", "run", file, "--out", out, "--workers", 1)
            assert (code, said) == (2, ""), f"{room} KB are enough"
            assert str(out) in one_line(err) and re.search(r"No space left|disk is full|disk I/O error", err)
            done = states(out).count("done")
            seen.append(done)
            ballast.unlink()
            if states(out):
                check_whole(out)
            assert not list(out.glob("*/.*")), "no half a file is left behind"
            kept = begun(out) if states(out) else {}
            code, _, err = command("study", "run", file, "--out", out, "--workers", 1)
            assert (code, err) == (0, "")
            check_whole(out)
            assert outcome(out) == outcome(finished) and {key: begun(out)[key] for key in kept} == kept
            for path in sorted(out.rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
        assert seen[0] == 0


def test_a_folder_that_is_read_only(command: Run, finished: Path, tmp_path: Path) -> None:
    folder, file = tmp_path / "folder", finished.with_suffix(".toml")
    folder.mkdir()
    with read_only(folder):
        code, said, err = command("study", "run", file, "--out", folder, "--workers", 1)
        assert (code, said) == (2, "") and "Read-only file system" in one_line(err) and str(folder) in err
        code, said, err = command("study", "run", file, "--out", folder / "below", "--workers", 1)
        assert (code, said) == (2, "") and "Read-only file system" in one_line(err)
    assert not list(folder.iterdir())


@pytest.mark.slow
def test_a_study_in_a_folder_that_is_read_only_can_be_looked_at(
    command: Run, slow: tuple[Path, dict[str, tuple[Any, ...]]], tmp_path: Path
) -> None:
    """Also right after its driver was killed, when half of it is in the side files of the ledger."""
    file, expected = slow
    out = tmp_path / "out"
    with driver(tmp_path, "study", "run", file, "--out", out, "--workers", 1) as started:
        until(lambda: states(out).count("done") >= 2)
        started.send(signal.SIGKILL)
        started.end()
    kept = begun(out)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with read_only(out):
        code, said, err = command("study", "status", out, "--json")
        assert (code, err, json.loads(said)["done"]) == (0, "", len(kept))
        assert command("study", "results", out, "--format", "csv")[0] == 0
        code, said, err = command("study", "resume", out, "--workers", 1)
        assert (code, said) == (2, "") and str(out) in one_line(err)
    assert {path: path.read_bytes() for path in before} == before
    assert command("study", "resume", out, "--workers", 1)[0] == 0
    check_whole(out)
    assert outcome(out) == expected and {key: begun(out)[key] for key in kept} == kept
    with read_only(out):
        assert json.loads(command("study", "status", out, "--json")[1])["done"] == 16
        assert command("study", "results", out)[0] == 0


def test_a_folder_of_somebody_else(command: Run, finished: Path, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("the superuser may write everywhere")
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o555)
    code, said, err = command("study", "run", finished.with_suffix(".toml"), "--out", folder, "--workers", 1)
    assert (code, said) == (2, "") and "Permission denied" in one_line(err)
