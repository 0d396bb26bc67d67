"""Small studies, and what of a study's folder must not depend on where, when and how often it was run.

The ledger is read with plain SQL, so that a mistake in `Ledger` cannot hide itself.
"""

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

Row = dict[str, Any]

SMALL: dict[str, Any] = {
    "data": "iris",
    "training": {"epochs": 2},
    "grid": {"model.hidden": [[5], [4, 3]]},
    "methods": [{"name": "none"}, {"name": "distinctiveness", "keep_fraction": 0.5}],
    "folds": 2,
    "seeds": 2,
}  # 16 cells of 8 trainings in 2 stacks

SMALL_TOML = """
data = "iris"
folds = 2
seeds = 2
training.epochs = 2
grid.model.hidden = [[5], [4, 3]]
methods = [{ name = "none" }, { name = "distinctiveness", keep_fraction = 0.5 }]
"""


def rows(out: Path) -> list[Row]:
    """Return the rows of the ledger, in the order declared."""
    with closing(sqlite3.connect(f"file:{out / 'ledger.sqlite'}?mode=ro", uri=True, timeout=30)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute("SELECT * FROM cells ORDER BY number")]


def outcome(out: Path) -> dict[str, tuple[Any, ...]]:
    """Return what every cell came to, figures and the hashes of history and network included, digit by digit."""
    kept = ("number", "label", "state", "reason", "result", "history", "model")
    return {row["hash"]: tuple(row[name] for name in kept) for row in rows(out)}


def states(out: Path) -> list[str]:
    """Return the state of each cell; none of a study that has not begun."""
    try:
        return [row["state"] for row in rows(out)]
    except sqlite3.OperationalError:
        return []


def begun(out: Path) -> dict[str, float]:
    """Return when each cell that is done was begun."""
    return {row["hash"]: row["started"] for row in rows(out) if row["state"] == "done"}


def driven_by(out: Path) -> int | None:
    """Return the process that drives a study, or drove it last."""
    try:
        with closing(sqlite3.connect(f"file:{out / 'ledger.sqlite'}?mode=ro", uri=True, timeout=30)) as connection:
            found = connection.execute("SELECT value FROM study WHERE key = 'driver'").fetchone()
    except sqlite3.OperationalError:
        return None
    return None if found is None else int(json.loads(found[0])["process"])


def check_whole(out: Path) -> None:
    """See that the ledger is sound, and that the files which its rows name are there and are what they were."""
    with closing(sqlite3.connect(out / "ledger.sqlite", timeout=30)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    found = rows(out)
    assert len({row["hash"] for row in found}) == len(found)
    for row in found:
        assert (row["result"] is not None) == (row["state"] == "done"), row
        assert (row["reason"] is not None) == (row["state"] == "failed"), row
        for kind, ending in (("history", "histories/{}.json"), ("model", "models/{}.safetensors")):
            if row[kind] is not None:
                assert sha256((out / ending.format(row[kind])).read_bytes()).hexdigest() == row[kind]


def until(condition: Callable[[], bool], *, seconds: float = 240) -> None:
    """Wait for something to come true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not so after {seconds} s"
        time.sleep(0.02)
