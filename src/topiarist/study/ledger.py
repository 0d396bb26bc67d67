"""The ledger of a study: one SQLite file, one row per cell, written by the driver alone; other files beside it.

A row is written when its result is final. Files are named by their content and are there before the row that names
them, so a crash at any moment leaves a ledger that is true.
"""

import math
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from topiarist.errors import TopiaristError
from topiarist.files import (
    JsonObject,
    cannot_write,
    canonical_json,
    check_readable,
    parse_json,
    sha256,
    write_atomically,
)

if TYPE_CHECKING:
    from topiarist.study.job import CellStack, StackResult

FILE = "ledger.sqlite"
SIDE_FILES = tuple(f"{FILE}{ending}" for ending in ("-wal", "-shm", "-journal"))  # SQLite opens and removes them
State = Literal["waiting", "done", "failed"]
# What is known of a study as a whole, and which of it is needed to resume it.
LARGEST_WHOLE = 2**63 - 1  # of a table's column of whole numbers
FACTS: Mapping[str, type] = {"declaration": dict, "folder": str, "samples": str, "versions": dict, "driver": dict}
NEEDED = ("declaration", "folder", "samples", "versions")

# The tables; each step brings a ledger of the version before to the next. Steps are never changed.
STEPS = (
    """
    CREATE TABLE study (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
    CREATE TABLE cells (
        hash TEXT PRIMARY KEY,
        number INTEGER NOT NULL,
        stack INTEGER NOT NULL,
        label TEXT NOT NULL,
        choices TEXT NOT NULL,
        configuration TEXT NOT NULL,
        fold INTEGER,
        seed INTEGER NOT NULL,
        state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'done', 'failed')),
        started REAL,
        seconds REAL,
        machine TEXT,
        versions TEXT,
        result TEXT,
        reason TEXT,
        history TEXT,
        model TEXT
    ) STRICT;
    """,
    # A bar with the time left needs to know how much of the work is done, not how many cells.
    "ALTER TABLE cells ADD COLUMN cost REAL NOT NULL DEFAULT 1;",
)


@dataclass(frozen=True, kw_only=True)
class StudyProgress:
    """How far a study is: cells by state, and the share of the work that is settled."""

    cells: int
    done: int
    failed: int
    share: float


class Ledger:
    """A study's folder, open for writing or for reading."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder, self.connection = folder, connection

    @classmethod
    @contextmanager
    def to_write(cls, folder: Path) -> Iterator[Self]:
        """Open or make the ledger of a folder; the caller holds the folder's lock."""
        with _closing(folder, f"file:{_uri(folder)}") as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            _migrate(connection)
            yield cls(folder, connection)

    @classmethod
    @contextmanager
    def to_read(cls, folder: Path) -> Iterator[Self]:
        """Open the ledger of a folder as it is, also while a driver writes to it."""
        if not (folder / FILE).is_file():
            raise TopiaristError(f"there is no study in {folder}")
        for name in SIDE_FILES:
            check_readable(folder / name)
        address = f"file:{_uri(folder)}?mode=ro{_immutable(folder)}"
        with _closing(folder, address) as connection:
            known = _is_current(connection)
        if not known:
            with cls.to_write(folder):  # brings it to this version
                pass
        with _closing(folder, address) as connection:
            yield cls(folder, connection)

    def facts(self) -> JsonObject:
        """Return what is known of the study as a whole; nothing before it begins."""
        rows = self.connection.execute("SELECT * FROM study")
        return {row["key"]: self._parsed(row["value"], FACTS.get(row["key"])) for row in rows}

    def note(self, **facts: Any) -> None:
        """Write down facts of the study as a whole."""
        rows = [(key, canonical_json(value)) for key, value in facts.items()]
        with self.connection:
            self.connection.executemany("INSERT OR REPLACE INTO study VALUES (?, ?)", rows)

    def declare(self, stacks: "Sequence[CellStack]", numbers: Mapping[str, int], **facts: Any) -> None:
        """Write down all cells and the study's facts, at once."""
        rows = [
            (
                cell.hash,
                numbers[cell.hash],
                stack.number,
                cell.label,
                canonical_json(cell.choices),
                canonical_json(cell.record),
                cell.fold,
                cell.seed,
                stack.cost / len(stack.cells),
            )
            for stack in stacks
            for cell in stack.cells
        ]
        with self.connection:
            self.connection.executemany(
                "INSERT INTO cells (hash, number, stack, label, choices, configuration, fold, seed, cost)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )
            self.connection.executemany(
                "INSERT INTO study VALUES (?, ?)", [(key, canonical_json(value)) for key, value in facts.items()]
            )

    def progress(self) -> StudyProgress:
        """Count the cells by state."""
        query = "SELECT state, COUNT(*) AS cells, SUM(cost) AS cost FROM cells GROUP BY state"
        found = {row["state"]: (row["cells"], row["cost"]) for row in self.connection.execute(query)}
        whole = sum(cost for _, cost in found.values())
        waiting = found.get("waiting", (0, 0.0))[1]
        return StudyProgress(
            cells=sum(cells for cells, _ in found.values()),
            done=found.get("done", (0, 0.0))[0],
            failed=found.get("failed", (0, 0.0))[0],
            share=1 - waiting / whole if whole else 1.0,
        )

    def states(self) -> dict[str, State]:
        """Return the state of every cell."""
        return {row["hash"]: row["state"] for row in self.connection.execute("SELECT hash, state FROM cells")}

    def rows(self) -> list[JsonObject]:
        """Return all that is known of the cells, in the order declared."""
        rows = [dict(row) for row in self.connection.execute("SELECT * FROM cells ORDER BY number")]
        for row in rows:
            self._parsed(row["choices"], dict)
            if not all(math.isfinite(row[name] or 0) for name in ("started", "seconds", "cost")):
                raise self._damaged("a cell has a time or a cost that is not finite")
            if row["state"] == "done":
                self._check_figures(self._parsed(row["result"], dict))
            elif row["result"] is not None:
                raise self._damaged(f"a cell that is {row['state']} has a result")
        return rows

    def _parsed(self, text: str | None, kind: type | None) -> Any:
        """Return what a JSON text of the ledger says, which is of a kind where that is known."""
        if not isinstance(text, str | None):
            raise self._damaged(f"it holds {text!r:.50} in the place of text")
        try:
            found = parse_json(text or "")
        except ValueError as error:
            raise self._damaged(f"it holds text that is not JSON ({error})") from error
        if kind is not None and not isinstance(found, kind):
            raise self._damaged(f"it holds {found!r:.50} in the place of a {kind.__name__}")
        return found

    def _check_figures(self, figures: JsonObject) -> None:
        """Raise where a figure of a cell is no number, text, or nothing, of which tables are made."""
        for name, value in figures.items():
            if isinstance(value, list | dict) or (isinstance(value, int) and abs(value) > LARGEST_WHOLE):
                raise self._damaged(f"a cell has {value!r:.20} for its {name:.50}, which is no figure")

    def _damaged(self, why: str) -> TopiaristError:
        return TopiaristError(f"the ledger {self.folder / FILE} is damaged: {why}")

    def record(self, done: "StackResult") -> None:
        """Write the results of a stack: the files first, then all its rows at once."""
        share = done.seconds / (len(done.results) + len(done.failures))
        made = (done.started, share, done.machine, canonical_json(done.versions))
        results = []
        for result in done.results:
            history = self._keep("histories", ".json", result.history)
            model = None if result.model is None else self._keep("models", ".safetensors", result.model)
            results.append((*made, canonical_json(result.figures), history, model, result.hash))
        with self.connection:
            self.connection.executemany(
                "UPDATE cells SET state = 'done', started = ?, seconds = ?, machine = ?, versions = ?, result = ?,"
                " reason = NULL, history = ?, model = ? WHERE hash = ? AND state <> 'done'",
                results,
            )
            self._fail(done.failures, done.started)

    def fail(self, stack: "CellStack", reason: str) -> None:
        """Write down why a stack gave no results."""
        with self.connection:
            self._fail({cell.hash: reason for cell in stack.cells}, time.time())

    def _fail(self, reasons: Mapping[str, str], started: float) -> None:
        """Write down, inside a transaction, why cells have no result; one that has keeps it."""
        self.connection.executemany(
            "UPDATE cells SET state = 'failed', started = ?, reason = ? WHERE hash = ? AND state <> 'done'",
            [(started, reason, name) for name, reason in reasons.items()],
        )

    def _keep(self, kind: str, ending: str, content: bytes) -> str:
        """Keep a file by the name of its content, and give that name."""
        name = sha256(content)
        place = self.folder / kind / f"{name}{ending}"
        if not place.exists():
            try:
                place.parent.mkdir(exist_ok=True)
            except OSError as error:
                raise cannot_write(place, error) from error
            write_atomically(place, content)
        return name


@contextmanager
def _closing(folder: Path, address: str) -> Iterator[sqlite3.Connection]:
    """Connect, close afterwards, and turn what SQLite refuses into one line."""
    connection = None
    try:
        connection = sqlite3.connect(address, uri=True, timeout=30, isolation_level="IMMEDIATE")
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA trusted_schema = OFF")  # a ledger may come from anyone
        _check_tables(folder, connection)
        yield connection
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter from damaged names of columns
        said = f"cannot use the ledger {folder / FILE}: {error}"
        # A full disk or a lock pass; a file that is damaged, or no ledger, does not become one.
        hint = "; what was recorded is kept, and the study can be resumed"
        raise TopiaristError(said + hint * isinstance(error, sqlite3.OperationalError)) from error
    finally:
        if connection is not None:
            connection.close()


def _check_tables(folder: Path, connection: sqlite3.Connection) -> None:
    """Refuse a ledger that computes: views that never end, triggers that write when the study does."""
    query = "SELECT type, name FROM sqlite_master WHERE type NOT IN ('table', 'index') OR sql LIKE '%GENERATED%'"
    found = connection.execute(query).fetchone()
    if found is not None:
        what = found["type"] if found["type"] != "table" else "table with columns that are computed"
        raise TopiaristError(f"the ledger {folder / FILE} is none of ours: it has a {what}, '{found['name']}'")


def _uri(folder: Path) -> str:
    """Write the ledger's path as SQLite reads it."""
    return (folder / FILE).resolve().as_uri().removeprefix("file://")


def _immutable(folder: Path) -> str:
    """A ledger in a folder that cannot be written to is read without the side files that SQLite would make."""
    return "" if os.access(folder, os.W_OK) or (folder / f"{FILE}-wal").exists() else "&immutable=1"


def _version_of(connection: sqlite3.Connection) -> int:
    """Return the version of a ledger, 0 for an empty one; one that is later than this topiarist is refused."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > len(STEPS):
        raise TopiaristError(f"the ledger is of version {version}, this topiarist knows up to {len(STEPS)}: update it")
    return version


def _is_current(connection: sqlite3.Connection) -> bool:
    """Return whether a ledger is of this version."""
    return _version_of(connection) == len(STEPS)


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring a ledger to this version, in one transaction, unless somebody else just did."""
    if _is_current(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    for step in STEPS[_version_of(connection) :]:
        for statement in step.split(";"):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(STEPS)}")
    connection.commit()
