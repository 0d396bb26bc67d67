"""The engine: the same results however a study is run, whatever interrupts it, and whatever fails in it."""

import datetime
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest

from tests.study.networks import by_code
from tests.study.studies import SMALL, begun, check_whole, outcome, rows, states
from tests.study.tasks import lines
from topiarist.data import Data
from topiarist.errors import DataError, SettingsError, TopiaristError, TopiaristWarning
from topiarist.study.job import CellStack, StackResult, run_stack
from topiarist.study.ledger import StudyProgress
from topiarist.study.lock import is_running, only_driver
from topiarist.study.samples import StudySamples
from topiarist.study.study import Study


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, ...]]:
    """Return what the small study comes to in one go, with one worker."""
    out = tmp_path_factory.mktemp("reference")
    Study(**{**SMALL, "stack": 2}).run(out)
    check_whole(out)
    assert set(states(out)) == {"done"}
    return outcome(out)


def interrupting(after: int) -> Callable[[StudyProgress], None]:
    """Press Ctrl-C when so many cells are done."""

    def stop(progress: StudyProgress) -> None:
        if progress.done >= after:
            raise KeyboardInterrupt

    return stop


@pytest.mark.slow
def test_a_study_gives_the_same_each_time_it_is_run(tmp_path: Path, reference: dict[str, tuple[Any, ...]]) -> None:
    Study(**{**SMALL, "stack": 2}).run(tmp_path / "again")
    assert outcome(tmp_path / "again") == reference


@pytest.mark.slow
def test_progress_is_reported_from_the_first_cell_to_the_last(tmp_path: Path) -> None:
    seen: list[StudyProgress] = []
    results = Study(**{**SMALL, "stack": 2}).run(tmp_path / "new" / "deep", on_progress=seen.append)
    assert [progress.done for progress in seen] == [0, 4, 8, 12, 16]
    assert [progress.share for progress in seen] == sorted(progress.share for progress in seen)
    assert seen[0].share == 0.0 and seen[-1].share == pytest.approx(1.0)
    assert {(progress.cells, progress.failed) for progress in seen} == {(16, 0)}
    assert results.cells["state"].tolist() == ["done"] * 16


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 4, 12, 16])
def test_an_interrupted_study_goes_on_where_it_was(
    tmp_path: Path, reference: dict[str, tuple[Any, ...]], after: int
) -> None:
    study = Study(**{**SMALL, "stack": 2})
    with pytest.raises(KeyboardInterrupt):
        study.run(tmp_path, on_progress=interrupting(after))
    check_whole(tmp_path)
    before = begun(tmp_path)
    assert len(before) == after and not is_running(tmp_path)
    assert {key: value for key, value in outcome(tmp_path).items() if key in before} == {
        key: reference[key] for key in before
    }
    Study.in_folder(tmp_path).run(tmp_path)
    assert outcome(tmp_path) == reference
    now = begun(tmp_path)
    assert {key: now[key] for key in before} == before, "nothing that has a result is run again"


@pytest.mark.slow
def test_nothing_that_has_a_result_is_run_again(tmp_path: Path) -> None:
    """The networks themselves say when they are trained."""
    log = tmp_path / "log"
    declared = {
        "data": "iris",
        "training": {"epochs": 1},
        "model": by_code(log=str(log)),
        "grid": {"model.options.width": [2, 3, 4, 5]},
        "methods": [{}, {"name": "distinctiveness", "keep_fraction": 0.5}],
    }
    for done in (2, 6):
        with pytest.raises(KeyboardInterrupt):
            Study(**declared).run(tmp_path / "out", on_progress=interrupting(done))
    Study(**declared).run(tmp_path / "out")
    Study(**declared).run(tmp_path / "out")
    assert sorted(line.split()[0] for line in lines(log)) == ["2", "3", "4", "5"]


@pytest.mark.slow
def test_stacks_do_not_depend_on_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums of a stack depend on its members: a cell that is tried again is tried with the same ones."""
    taken: list[list[str]] = []

    def watched(stack: CellStack, samples: StudySamples) -> StackResult:
        taken.append([cell.hash for cell in stack.cells])
        return run_stack(stack, samples)

    monkeypatch.setattr("topiarist.study.engine.run_stack", watched)
    study = Study(**{**SMALL, "stack": 2})
    study.run(tmp_path / "whole")
    whole = list(taken)
    study.run(tmp_path / "part")
    with closing(sqlite3.connect(tmp_path / "part" / "ledger.sqlite")) as connection, connection:
        connection.execute("UPDATE cells SET state = 'waiting', result = NULL WHERE stack < 3 AND number % 3 = 0")
    kept = begun(tmp_path / "part")
    taken.clear()
    study.run(tmp_path / "part")
    assert taken == whole[:3], "whole stacks, and only those that lack something"
    assert outcome(tmp_path / "part") == outcome(tmp_path / "whole")
    now = begun(tmp_path / "part")
    assert {key: now[key] for key in kept} == kept


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"seeds": 3},
        {"training": {"epochs": 3}},
        {"grid": {"model.hidden": [[5], [4, 2]]}},
        {"grid": {"model.hidden": [[4, 3], [5]]}},
        {"methods": [{"name": "none"}]},
        {"stack": 3},
        {"name": "another"},
        {"data": "wine"},
    ],
)
def test_another_study_in_the_folder_is_refused_and_left_alone(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(KeyboardInterrupt):
        Study(**SMALL).run(tmp_path, on_progress=interrupting(1))
    before = outcome(tmp_path)
    with pytest.raises(SettingsError, match="holds another study, or this one before it was changed") as caught:
        Study(**{**SMALL, **change}).run(tmp_path)
    assert "\n" not in str(caught.value) and outcome(tmp_path) == before


def table(folder: Path, change: Callable[[pandas.DataFrame], pandas.DataFrame] = lambda frame: frame) -> None:
    numbers = numpy.random.default_rng(0).normal(size=(60, 2)).round(3)
    frame = pandas.DataFrame(numbers, columns=["a", "b"]).assign(kind=["x", "y", "z"] * 20)
    change(frame).to_csv(folder / "table.csv", index=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.assign(a=[9.0, *frame["a"][1:]]),
        lambda frame: frame.assign(kind=["y", *frame["kind"][1:]]),
        lambda frame: frame.iloc[::-1],
        lambda frame: frame.iloc[:-1],
        lambda frame: frame.rename(columns={"a": "c"}),
        lambda frame: frame[["b", "a", "kind"]],
        lambda frame: frame.assign(c=frame["a"] * 2),
        lambda frame: frame.assign(kind=frame["kind"].replace({"x": "w"})),
    ],
)
def test_other_data_are_refused(tmp_path: Path, change: Callable[[pandas.DataFrame], pandas.DataFrame]) -> None:
    table(tmp_path)
    (tmp_path / "study.toml").write_text(
        'seeds = 2\ntraining.epochs = 1\n[data]\nlocation = "table.csv"\ntarget = "kind"\n'
    )
    study = Study.from_file(tmp_path / "study.toml")
    with pytest.raises(KeyboardInterrupt):
        study.run(tmp_path / "out", on_progress=interrupting(0))
    table(tmp_path, change)
    with pytest.raises(DataError, match=r"the data have changed since the study in .* began: start anew") as caught:
        Study.in_folder(tmp_path / "out").run(tmp_path / "out")
    assert "\n" not in str(caught.value)
    table(tmp_path)
    assert Study.in_folder(tmp_path / "out").run(tmp_path / "out").cells["state"].tolist() == ["done"] * 2


def test_data_that_are_gone_are_one_line(tmp_path: Path) -> None:
    table(tmp_path)
    (tmp_path / "study.toml").write_text('training.epochs = 1\n[data]\nlocation = "table.csv"\ntarget = "kind"\n')
    study = Study.from_file(tmp_path / "study.toml")
    study.run(tmp_path / "out")
    (tmp_path / "table.csv").unlink()
    with pytest.raises(DataError, match=r"table\.csv"):
        Study.in_folder(tmp_path / "out").run(tmp_path / "out")


def test_samples_in_memory_take_the_place_of_those_named(tmp_path: Path) -> None:
    x = numpy.random.default_rng(0).normal(size=(90, 5))
    data = Data.from_arrays(x, (x[:, 0] > 0).astype(int), name="in memory", scaling="zscore")
    study = Study(data="nowhere", training={"epochs": 2}, model={"hidden": [3]}, folds=3)
    results = study.run(tmp_path, data=data)
    assert results.cells["parameters"].tolist() == [5 * 3 + 3 + 3 * 2 + 2] * 3
    assert results.cells["samples"].tolist() == [30] * 3
    before = outcome(tmp_path)
    assert study.run(tmp_path, data=data).rows == results.rows
    other = Data.from_arrays(x + 1, (x[:, 0] > 0).astype(int), name="in memory", scaling="zscore")
    with pytest.raises(DataError, match="the data have changed"):
        study.run(tmp_path, data=other)
    assert outcome(tmp_path) == before


def test_nothing_is_written_before_all_is_checked(tmp_path: Path) -> None:
    bad: list[dict[str, Any]] = [
        {"data": "nowhere.csv"},
        {"data": "iris", "grid": {"model.activation": ["relu", "rely"]}},
        {"data": "iris", "model": by_code(), "grid": {"model.options.kind": ["fine", "cannot be built"]}},
    ]
    for declared in bad:
        with pytest.raises(TopiaristError):
            Study(**declared).run(tmp_path / "out")
        assert not (tmp_path / "out").exists()


def test_a_bad_number_of_workers_is_found_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="workers must be at least 1"):
        Study(**SMALL).run(tmp_path / "out", workers=0)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(TopiaristError, match=r"cannot write .*file") as caught:
            Study(**SMALL).run(out)
        assert "\n" not in str(caught.value)


FAILING: dict[str, Any] = {
    "data": "iris",
    "training": {"epochs": 1},
    "variants": [
        {"name": "stacked", "model.hidden": [3]},
        {"name": "fine", "model": by_code(width=3)},
        {"name": "fails", "model": by_code(kind="fails")},
        {"name": "cannot travel", "model": by_code(kind="cannot travel")},
        {"name": "refuses", "model": by_code(kind="refuses to read")},
    ],
    "seeds": 2,
}
REASONS = {
    "fails": "RuntimeError: gave up",
    "cannot travel": "CannotTravelError: one, two",
    "refuses": "the network cannot read samples of shape (4,): gave up reading",
}


@pytest.mark.slow
def test_what_fails_is_recorded_with_its_reason_and_the_others_finish(tmp_path: Path) -> None:
    seen: list[StudyProgress] = []
    results = Study(**FAILING).run(tmp_path, on_progress=seen.append)
    check_whole(tmp_path)
    for row in results.rows:
        state = "failed" if row["label"] in REASONS else "done"
        assert (row["state"], row["reason"]) == (state, REASONS.get(row["label"]))
    assert (seen[-1].done, seen[-1].failed) == (4, 6) and seen[-1].share == pytest.approx(1.0)
    assert set(results.summary()["configuration"]) == {"stacked", "fine"}
    before = rows(tmp_path)
    Study(**FAILING).run(tmp_path)
    assert rows(tmp_path) == before, "what failed is settled"


def test_what_failed_is_tried_again_where_one_asks_for_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    study = Study(
        data="iris",
        training={"epochs": 1},
        model=by_code(log=str(log)),
        grid={"model.options.width": [2, 3], "model.options.kind": ["fine", "fails"]},
    )
    study.run(tmp_path / "out")
    first = rows(tmp_path / "out")
    log.unlink()
    study.run(tmp_path / "out", retry_failed=True)
    check_whole(tmp_path / "out")
    second = rows(tmp_path / "out")
    assert [row["state"] for row in second] == ["done", "failed"] * 2
    assert [row for row in second if row["state"] == "done"] == [row for row in first if row["state"] == "done"]
    assert sorted({line.split()[0] for line in lines(log)}) == ["2", "3"], "of each width the one that failed"
    assert len(lines(log)) == 4, "an unexpected error is tried twice"


def test_a_failure_that_passes_is_done_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(_: object) -> None:
        raise RuntimeError("not today")

    monkeypatch.setattr("tests.study.networks.Perceptron.behave", cannot)
    study = Study(data="iris", training={"epochs": 1}, model=by_code(), seeds=2)
    assert study.run(tmp_path).cells["state"].tolist() == ["failed"] * 2
    monkeypatch.undo()
    assert study.run(tmp_path).cells["state"].tolist() == ["failed"] * 2
    results = study.run(tmp_path, retry_failed=True)
    assert results.cells["state"].tolist() == ["done"] * 2 and results.cells["reason"].isna().all()


def test_a_method_that_fails_does_not_take_the_training_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise TopiaristError("cannot be cut")

    monkeypatch.setattr("topiarist.study.treating.resize_all", refuse)
    results = Study(
        data="iris", training={"epochs": 1}, methods=[{}, {"name": "distinctiveness", "keep_fraction": 0.5}]
    ).run(tmp_path)
    assert results.cells["state"].tolist() == ["done", "failed"]


@pytest.mark.slow
def test_a_second_driver_is_refused_and_a_stale_lock_is_not(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("left behind")
    assert not is_running(tmp_path)
    with only_driver(tmp_path):
        assert is_running(tmp_path)
        with pytest.raises(TopiaristError, match="is being run by another process: wait for it, or stop it first"):
            Study(**SMALL).run(tmp_path)
    assert not is_running(tmp_path) and (tmp_path / "lock").exists()
    Study(**SMALL).run(tmp_path)
    with only_driver(tmp_path), pytest.raises(TopiaristError, match=r"is being run by process \d+ on \S+: wait for it"):
        Study(**SMALL).run(tmp_path)


@pytest.mark.slow
def test_other_versions_are_warned_of(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        Study(**SMALL).run(tmp_path, on_progress=interrupting(1))
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as connection, connection:
        connection.execute("""UPDATE study SET value = '{"torch":"1.0"}' WHERE key = 'versions'""")
    with pytest.warns(TopiaristWarning, match=r"the study began with torch 1\.0: results may differ"):
        Study(**SMALL).run(tmp_path)


@pytest.mark.parametrize("value", [float("inf"), datetime.date(2020, 1, 1), (1, 2)])
def test_the_users_code_gets_the_same_options_before_and_after_an_interruption(value: Any) -> None:
    try:
        study = Study(data="iris", model={"code": "a:b", "options": {"x": value}})
    except SettingsError:
        return
    assert Study(**study.to_json()).cells[0].settings.model.options == study.cells[0].settings.model.options


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the cluster has no workers left")  # it may seem so while both are started anew
@pytest.mark.usefixtures("all_steps")  # as in other processes
def test_two_workers_give_what_one_gives_also_where_workers_die(tmp_path: Path) -> None:
    """One network kills every worker that takes it, one only the first: all other cells finish, bit for bit."""
    once = {"name": "dies once", "model": by_code(kind="dies once", log=str(tmp_path / "once"))}
    declared = {**FAILING, "variants": [*FAILING["variants"], once], "seeds": 1}
    (tmp_path / "once.died").touch()
    alone = Study(**declared).run(tmp_path / "alone")
    assert sorted(set(alone.cells["state"])) == ["done", "failed"]
    (tmp_path / "once.died").unlink()

    deadly = {"name": "dies", "model": by_code(kind="dies", log=str(tmp_path / "always"))}
    both = {**declared, "variants": [*declared["variants"], deadly]}
    Study(**both).run(tmp_path / "both", workers=2)
    check_whole(tmp_path / "both")
    expected, found = outcome(tmp_path / "alone"), outcome(tmp_path / "both")
    assert {key: found[key] for key in expected} == expected
    dead = [row for row in rows(tmp_path / "both") if row["label"] == "dies"]
    assert {(row["state"], row["reason"]) for row in dead} == {
        ("failed", "every worker that took this died (killed, or out of memory)")
    }
    assert (tmp_path / "once.died").exists()


def test_one_stack_that_is_left_does_not_run_in_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be the one that kills its process."""
    asked: list[dict[str, Any]] = []

    def pool(shared: StudySamples, **words: Any) -> None:
        asked.append(words)
        raise TopiaristError("no pool today")

    monkeypatch.setattr("topiarist.study.engine.open_pool", pool)
    with pytest.raises(TopiaristError, match="no pool today"):
        Study(data="iris").run(tmp_path, workers=2)
    assert asked == [{"workers": 2, "cluster": None, "tasks": 1}]
