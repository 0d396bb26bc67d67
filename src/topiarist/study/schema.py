"""The tables of a ledger; each step brings a ledger of the version before to the next."""

import sqlite3

from topiarist.errors import TopiaristError

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


def version_of(connection: sqlite3.Connection) -> int:
    """Give the version of a ledger, 0 for an empty one; one that is later than this topiarist is refused."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > len(STEPS):
        raise TopiaristError(f"the ledger is of version {version}, this topiarist knows up to {len(STEPS)}: update it")
    return version


def is_current(connection: sqlite3.Connection) -> bool:
    """Say whether a ledger is of this version."""
    return version_of(connection) == len(STEPS)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a ledger to this version, in one transaction, unless somebody else just did."""
    if is_current(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    for step in STEPS[version_of(connection) :]:
        for statement in step.split(";"):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(STEPS)}")
    connection.commit()
