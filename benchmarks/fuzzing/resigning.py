"""Changes inside files that guard themselves: what is changed gets its digest, checksum or length anew.

Bytes changed at random in such a file show only that the guard works. Here the change reaches what reads the content:
the header of a model file, rows of a ledger, members of archives, chunks of an image, cells of a table.
"""

import gzip
import io
import json
import random  # noqa: TID251  # generators that are given, no global state
import re
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.fuzzing.folders import ENDING, changed_folder
from benchmarks.fuzzing.mutating import WORDS, mutated
from benchmarks.fuzzing.tensors import changed_tensors
from benchmarks.fuzzing.trees import NUMBERS, OTHERS, changed, deep

Mutator = Callable[[bytes, random.Random], bytes]
_PNG_START = 8
_TOML_LINE = re.compile(r"(?P<key>\S+) = (?P<value>.+)")
_TOML_KEYS = ["folds", "seeds", "code", "x", '""', "training.epochs", '"model.hidden"', "data"]
_TOML_VALUES = [
    "-1",
    "0",
    "1e999",
    "nan",
    '""',
    "[]",
    "{}",
    "true",
    "9" * 30,
    "[[1]]",
    '"iris"',
    "[0, 0]",
    "1979-05-27",
]


def resigned(name: str, content: bytes, draw: random.Random) -> bytes:
    """Return the content of a file with changes that its guards do not see; bytes are changed where it has none."""
    mutator = next((found for ending, found in MUTATORS.items() if name.endswith(ending)), None)
    return mutated(content, draw, other=content) if mutator is None else mutator(content, draw)


def _folder(content: bytes, draw: random.Random) -> bytes:
    """Change one file of a folder."""
    return changed_folder(content, draw, lambda name, inside: resigned(name, inside, draw))


def _tree(content: bytes, draw: random.Random) -> bytes:
    record = json.loads(content)
    return (json.dumps(changed(record, draw)) if draw.random() < 0.98 else deep(draw)).encode()


def _ledger(content: bytes, draw: random.Random) -> bytes:
    """Change a cell of a table of the ledger: JSON in it, where it holds JSON."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        path.write_bytes(content)
        connection = sqlite3.connect(path)
        for _ in range(draw.randint(1, 3)):
            table = draw.choice(["study", "study", "cells"])
            column = draw.choice([row[1] for row in connection.execute(f"PRAGMA table_info({table})")])
            rows = connection.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
            number, old = draw.choice(rows)
            try:
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (_cell(old, draw), number))
            except (sqlite3.Error, OverflowError):
                continue  # the table itself refuses the value
        if draw.random() < 0.1:
            connection.execute(draw.choice(["DROP TABLE cells", "DELETE FROM study", "PRAGMA user_version = 99"]))
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        return path.read_bytes()


def _cell(old: Any, draw: random.Random) -> Any:
    if isinstance(old, str) and old[:1] in "[{" and draw.random() < 0.8:
        with suppress(ValueError, RecursionError):  # it may have been changed before
            return json.dumps(changed(json.loads(old), draw)) if draw.random() < 0.95 else deep(draw)
    return draw.choice([None, b"\xff\xfe", *(one for one in [*NUMBERS, *OTHERS] if not isinstance(one, list | dict))])


def _zip(content: bytes, draw: random.Random) -> bytes:
    """Change a member of an archive; its checksum is made anew."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as out:
        names = archive.namelist()
        chosen = draw.choice(names)
        for name in names:
            inside = archive.read(name)
            out.writestr(
                name, mutated(inside, draw, other=archive.read(draw.choice(names))) if name == chosen else inside
            )
    return made.getvalue()


def _gzip(content: bytes, draw: random.Random) -> bytes:
    plain = gzip.decompress(content)
    return gzip.compress(mutated(plain, draw, other=plain), mtime=0)


def _png(content: bytes, draw: random.Random) -> bytes:
    """Change the content of a chunk; lengths and checksums are made anew."""
    chunks, place = [], _PNG_START
    while place < len(content):
        size = int.from_bytes(content[place : place + 4], "big")
        chunks.append((content[place + 4 : place + 8], content[place + 8 : place + 8 + size]))
        place += 12 + size
    chosen = draw.randrange(len(chunks))
    kind, inside = chunks[chosen]
    chunks[chosen] = kind, mutated(inside, draw, other=inside)
    written = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    ]
    return content[:_PNG_START] + b"".join(written)


def _toml(content: bytes, draw: random.Random) -> bytes:
    """Change values or keys of a study; the rest still reads as TOML."""
    text = content.decode()
    for _ in range(draw.randint(1, 2)):
        match = draw.choice(list(_TOML_LINE.finditer(text)))
        if draw.random() < 0.8:
            start, end, choices = match.start("value"), match.end("value"), _TOML_VALUES
        else:
            start, end, choices = match.start("key"), match.end("key"), _TOML_KEYS
        text = text[:start] + draw.choice(choices) + text[end:]
    return text.encode()


def _csv(content: bytes, draw: random.Random) -> bytes:
    """Change cells of a table."""
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    rows = [line.split(",") for line in content.decode(encoding).splitlines()]
    for _ in range(draw.randint(1, 20)):
        row = draw.choice(rows)
        words = [word.decode("latin-1") for word in WORDS]
        row[draw.randrange(len(row))] = draw.choice([*words, "1e400", '"', "''", "1.5.5", "2024-13-45", " ", ",", "\r"])
    return "\n".join(",".join(row) for row in rows).encode(encoding, errors="replace")


MUTATORS: dict[str, Mutator] = {
    **dict.fromkeys((".safetensors", ".stack", ".single", ".surgeon"), changed_tensors),
    ENDING: _folder,
    ".sqlite": _ledger,
    ".json": _tree,
    ".npz": _zip,
    ".xlsx": _zip,
    ".gz": _gzip,
    ".png": _png,
    ".toml": _toml,
    ".csv": _csv,
}
