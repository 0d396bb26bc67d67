"""The ledger: sound, true at every moment, and read again by later versions."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.study.studies import SMALL, begun, check_whole, outcome, rows
from topiarist.cli.study_output import status_of
from topiarist.errors import TopiaristError
from topiarist.study import ledger as ledger_file
from topiarist.study.declaration import Declaration
from topiarist.study.job import CellResult, CellStack, StackResult
from topiarist.study.ledger import STEPS, Ledger
from topiarist.study.results import Results
from topiarist.study.study import Study


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a study that is done; nobody writes to it."""
    out = tmp_path_factory.mktemp("finished")
    Study(**SMALL).run(out)
    return out


@pytest.fixture
def stack() -> CellStack:
    cells = Declaration(data="iris", seeds=3).cells
    return CellStack(number=0, cells=tuple(cells), cost=6.0, keep_models=True)


@pytest.fixture
def ledger(tmp_path: Path, stack: CellStack) -> Iterator[Ledger]:
    with Ledger.to_write(tmp_path) as opened:
        numbers = {cell.hash: number for number, cell in enumerate(stack.cells)}
        opened.declare([stack], numbers, declaration={"data": {"location": "iris"}})
        yield opened


def results_of(stack: CellStack, text: str = "first") -> StackResult:
    results = tuple(
        CellResult(
            hash=cell.hash,
            figures={"accuracy": 0.1 + cell.seed, "said": text},
            history=f'{{"epochs":[],"said":"{text}"}}'.encode(),
            model=f"{text} {cell.seed}".encode(),
        )
        for cell in stack.cells
    )
    return StackResult(results=results, started=12.5, seconds=3.0, machine="here", versions={"torch": "2"})


@pytest.mark.slow
def test_a_finished_study_is_whole(finished: Path) -> None:
    check_whole(finished)
    found = rows(finished)
    cells = Study(**SMALL).cells
    assert [row["hash"] for row in found] == [cell.hash for cell in cells]
    assert [row["label"] for row in found] == [cell.label for cell in cells]
    assert [(row["fold"], row["seed"]) for row in found] == [(cell.fold, cell.seed) for cell in cells]
    assert {row["state"] for row in found} == {"done"}
    assert [json.loads(row["configuration"]) for row in found] == [cell.record for cell in cells]
    assert len({row["model"] for row in found}) == 16 and len({row["history"] for row in found}) == 8
    assert len(list((finished / "models").iterdir())) == 16 and len(list((finished / "histories").iterdir())) == 8
    assert all(row["seconds"] > 0 and row["started"] > 0 and row["machine"] for row in found)
    assert all("torch" in json.loads(row["versions"]) for row in found)
    assert sorted(path.name for path in finished.iterdir() if "ledger" not in path.name) == [
        "histories",
        "lock",
        "models",
    ]


def test_the_ledger_is_in_wal_mode_and_every_commit_reaches_the_disk(ledger: Ledger) -> None:
    assert ledger.connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert ledger.connection.execute("PRAGMA synchronous").fetchone()[0] == 2
    assert ledger.connection.execute("PRAGMA user_version").fetchone()[0] == len(STEPS)


def test_what_is_recorded_is_read_back(ledger: Ledger, stack: CellStack) -> None:
    assert set(ledger.states().values()) == {"waiting"}
    ledger.record(results_of(stack))
    assert set(ledger.states().values()) == {"done"}
    for row, cell in zip(ledger.rows(), stack.cells, strict=True):
        assert json.loads(row["result"]) == {"accuracy": 0.1 + cell.seed, "said": "first"}
        assert (row["started"], row["seconds"], row["machine"], row["cost"]) == (12.5, 1.0, "here", 2.0)
        assert row["model"] == sha256(f"first {cell.seed}".encode()).hexdigest()
        assert (ledger.folder / "models" / f"{row['model']}.safetensors").read_bytes() == f"first {cell.seed}".encode()
    check_whole(ledger.folder)


def test_what_is_recorded_never_changes(ledger: Ledger, stack: CellStack) -> None:
    ledger.record(results_of(stack))
    before = ledger.rows()
    ledger.record(results_of(stack, "second"))
    ledger.fail(stack, "too late")
    assert ledger.rows() == before


def test_what_failed_can_be_recorded_later(ledger: Ledger, stack: CellStack) -> None:
    ledger.fail(stack, "the reason")
    assert {(row["state"], row["reason"], row["result"]) for row in ledger.rows()} == {("failed", "the reason", None)}
    check_whole(ledger.folder)
    ledger.record(results_of(stack))
    assert {(row["state"], row["reason"]) for row in ledger.rows()} == {("done", None)}


def test_the_results_of_a_stack_are_recorded_all_or_none(
    ledger: Ledger, stack: CellStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep, kept = Ledger._keep, 0

    def keep_some(self: Ledger, kind: str, ending: str, content: bytes) -> str:
        nonlocal kept
        kept += 1
        if kept == 4:
            raise TopiaristError("no more room")
        return keep(self, kind, ending, content)

    monkeypatch.setattr(Ledger, "_keep", keep_some)
    with pytest.raises(TopiaristError, match="no more room"):
        ledger.record(results_of(stack))
    assert set(ledger.states().values()) == {"waiting"}
    check_whole(ledger.folder)


def test_declaring_twice_is_refused_and_changes_nothing(ledger: Ledger, stack: CellStack) -> None:
    before = ledger.rows()
    with pytest.raises(sqlite3.IntegrityError):
        ledger.declare([stack], {cell.hash: 9 for cell in stack.cells}, declaration={})
    assert ledger.rows() == before and ledger.facts() == {"declaration": {"data": {"location": "iris"}}}


def test_a_reader_sees_what_is_committed_while_a_driver_writes(ledger: Ledger, stack: CellStack) -> None:
    with ledger.connection:
        ledger.connection.execute("BEGIN IMMEDIATE")
        ledger.connection.execute("UPDATE cells SET state = 'failed', reason = 'x'")
        with Ledger.to_read(ledger.folder) as reader:
            assert set(reader.states().values()) == {"waiting"}
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                reader.note(driver=1)
    assert {row["state"] for row in rows(ledger.folder)} == {"failed"}


@pytest.mark.parametrize("name", ["plain", "with space", "100%", "what?", "a#b", "ünïcödé", "a%20b", "quo'te"])
def test_folders_with_any_name(tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    Study(data="iris", training={"epochs": 1}).run(out)
    assert (out / "ledger.sqlite").is_file() and list(tmp_path.iterdir()) == [out]
    assert status_of(out)["done"] == 1


def first_version(folder: Path, *, version: int = 1) -> str:
    """Write a ledger as the first version did, with one cell that is done and one that waits; give what was found."""
    folder.mkdir()
    cells = Declaration(data="iris", training={"epochs": 1}, seeds=2, models=False).cells
    result = {"accuracy": 0.75, "samples": 30, "train_samples": 100, "parameters": 803}
    history = '{"epochs":[],"kept_epoch":0,"stopped":"","diverged_epoch":null}'
    name = sha256(history.encode()).hexdigest()
    (folder / "histories").mkdir()
    (folder / "histories" / f"{name}.json").write_text(history)
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(f"{STEPS[0]} PRAGMA user_version = {version};")
        facts = {
            "declaration": {"data": {"location": "iris"}, "training": {"epochs": 1}, "seeds": [0, 1], "models": False}
        }
        connection.executemany("INSERT INTO study VALUES (?, ?)", [(key, json.dumps(v)) for key, v in facts.items()])
        for number, cell in enumerate(cells):
            known: dict[str, Any] = {"hash": cell.hash, "number": number, "stack": 0, "label": cell.label}
            known |= {"choices": "{}", "configuration": json.dumps(cell.record), "seed": cell.seed}
            if number == 0:
                known |= {"state": "done", "started": 5.0, "seconds": 2.0, "machine": "old", "versions": "{}"}
                known |= {"result": json.dumps(result), "history": name}
            columns, marks = ", ".join(known), ", ".join("?" * len(known))
            connection.execute(f"INSERT INTO cells ({columns}) VALUES ({marks})", list(known.values()))
        connection.commit()
    return name


def test_the_first_step_of_the_schema_never_changes() -> None:
    """Golden: ledgers of version 1 are out there."""
    assert (
        sha256(" ".join(STEPS[0].split()).encode()).hexdigest()
        == "36535879e512b3e1b490d62d1847e37c205918ed4d489dff3bc575737248b7ef"
    )


def test_a_ledger_of_version_1_is_brought_up_and_read(tmp_path: Path) -> None:
    out = tmp_path / "old"
    history = first_version(out)
    with Ledger.to_write(out) as ledger:
        assert ledger.connection.execute("PRAGMA user_version").fetchone()[0] == len(STEPS)
    check_whole(out)
    done, waiting = rows(out)
    assert (done["state"], done["started"], done["history"], done["cost"]) == ("done", 5.0, history, 1.0)
    assert (waiting["state"], waiting["cost"]) == ("waiting", 1.0)
    results = Results.read(out)
    assert results.summary()["mean"].tolist() == [0.75] and results.history(results.rows[0]) == []
    assert status_of(out)["share_of_work"] == 0.5
    with Ledger.to_write(out):  # a second time, nothing is left to do
        pass


def test_a_ledger_of_version_1_is_brought_up_where_it_is_read(tmp_path: Path) -> None:
    first_version(tmp_path / "old")
    status = status_of(tmp_path / "old")
    assert (status["done"], status["waiting"]) == (1, 1)
    assert Results.read(tmp_path / "old").summary()["mean"].tolist() == [0.75]
    check_whole(tmp_path / "old")


def test_two_may_bring_a_ledger_up_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a driver that begins and somebody who asks for the status in that very moment."""
    look, looked = ledger_file._version_of, False

    def look_and_lose(connection: sqlite3.Connection) -> int:
        nonlocal looked
        found = look(connection)
        if not looked:
            looked = True
            with Ledger.to_write(tmp_path):
                pass
        return found

    monkeypatch.setattr(ledger_file, "_version_of", look_and_lose)
    with Ledger.to_write(tmp_path) as ledger:
        assert ledger.rows() == []


def test_a_later_version_is_not_written_to(tmp_path: Path) -> None:
    out = tmp_path / "new"
    first_version(out, version=len(STEPS) + 1)
    before = (out / "ledger.sqlite").read_bytes()
    with pytest.raises(TopiaristError, match=f"of version {len(STEPS) + 1}.*knows up to {len(STEPS)}: update it"):
        Study(data="iris", training={"epochs": 1}, seeds=2, models=False).run(out)
    assert (out / "ledger.sqlite").read_bytes() == before


def test_a_later_version_is_not_read_either(tmp_path: Path) -> None:
    first_version(tmp_path / "new", version=len(STEPS) + 1)
    with pytest.raises(TopiaristError, match="update it"):
        Results.read(tmp_path / "new")


def test_a_migration_that_fails_leaves_the_old_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "old"
    first_version(out)
    before = outcome(out)
    monkeypatch.setattr(
        "topiarist.study.ledger.STEPS", (STEPS[0], "ALTER TABLE cells ADD x TEXT; ALTER TABLE none ADD y;")
    )
    with pytest.raises(TopiaristError, match="no such table"), Ledger.to_write(out):
        pass
    with closing(sqlite3.connect(out / "ledger.sqlite")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert "x" not in {row[1] for row in connection.execute("PRAGMA table_info(cells)")}
    assert outcome(out) == before


@pytest.mark.parametrize("content", [b"hello" * 1000, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_file_that_is_no_ledger_is_one_line_and_stays(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ledger.sqlite").write_bytes(content)
    for use in (Results.read, Study.in_folder, Study(data="iris").run, status_of):
        with pytest.raises(TopiaristError, match="cannot use the ledger") as caught:
            use(tmp_path)
        assert "\n" not in str(caught.value)
    assert (tmp_path / "ledger.sqlite").read_bytes() == content


@pytest.mark.slow
def test_a_torn_ledger_is_one_line(finished: Path, tmp_path: Path) -> None:
    content = (finished / "ledger.sqlite").read_bytes()
    (tmp_path / "ledger.sqlite").write_bytes(content[: len(content) // 2])
    with pytest.raises(TopiaristError, match="cannot use the ledger"):
        Results.read(tmp_path)


def test_a_folder_without_a_study(tmp_path: Path) -> None:
    for use in (Results.read, Study.in_folder, status_of):
        for folder in (tmp_path, tmp_path / "none"):
            with pytest.raises(TopiaristError, match="there is no study in"):
                use(folder)
    assert not list(tmp_path.iterdir())


def test_a_study_that_was_killed_before_it_was_declared_is_begun_anew(tmp_path: Path) -> None:
    with Ledger.to_write(tmp_path):
        pass
    for use in (Study.in_folder, Results.read, status_of):
        with pytest.raises(TopiaristError, match="has not begun: run it again from its file"):
            use(tmp_path)
    assert Study(data="iris", training={"epochs": 1}).run(tmp_path).cells["state"].tolist() == ["done"]


@pytest.mark.slow
def test_reading_needs_no_right_to_write(finished: Path) -> None:
    before = {path: path.read_bytes() for path in finished.rglob("*") if path.is_file() and "ledger" not in path.name}
    started = begun(finished)
    Results.read(finished).summary()
    status_of(finished)
    assert begun(finished) == started
    assert {path: path.read_bytes() for path in before} == before
