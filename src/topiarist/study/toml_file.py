"""Reads a study from a TOML file; what is wrong is named by its line."""

import re
import tomllib
from pathlib import Path
from typing import Any

from topiarist.errors import SettingsError
from topiarist.study.declaration import Declaration

HEADER = re.compile(r"^\s*\[(\[?)\s*([^\[\]]+?)\s*\]")
ENTRY = re.compile(r"""^\s*([\w.\-"' ]+?)\s*=""")


def read_declaration(path: Path) -> dict[str, Any]:
    """Read and check a declaration, down to the last configuration, and give its values."""
    try:
        text = path.read_text(encoding="utf-8")
        declared = tomllib.loads(text)
    except OSError as error:
        raise SettingsError(f"cannot read the study {path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not TOML: {error}") from error
    try:
        return Declaration(**{"name": path.stem, **declared}).to_json()
    except SettingsError as error:
        line = line_of(text, error.setting)
        place = f"{path}, line {line}" if line is not None else str(path)
        raise SettingsError(f"{place}: {str(error).removeprefix('Declaration: ')}", setting=error.setting) from error


def line_of(text: str, key: str) -> int | None:
    """Find the line that sets a key such as variants.1.model.hidden, or the table that holds it."""
    best: tuple[int, int] | None = None
    wanted = split(key)
    for number, path in enumerate(paths(text.splitlines()), start=1):
        if path and wanted[: len(path)] == path and (best is None or len(path) > best[0]):
            best = len(path), number
    return None if best is None else best[1]


def paths(lines: list[str]) -> list[list[str]]:
    """Give, for each line, the path of the table or entry that begins there; nothing for any other line."""
    header: list[str] = []
    counts: dict[str, int] = {}
    found = []
    for line in lines:
        path: list[str] = []
        if table := HEADER.match(line):
            header = split(table[2])
            if table[1]:
                counts[table[2]] = counts.get(table[2], -1) + 1
                header = [*header, str(counts[table[2]])]
            path = header
        elif entry := ENTRY.match(line):
            path = [*header, *split(entry[1])]
        found.append(path)
    return found


def split(key: str) -> list[str]:
    """Take a dotted key apart."""
    return [part.strip().strip("\"'") for part in key.split(".")]
