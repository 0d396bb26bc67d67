"""Reads a study from a TOML file; what is wrong is named by its line."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from topiarist.errors import SettingsError
from topiarist.study.declaration import Declaration

HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]")
ENTRY = re.compile(r"""\s*((?:[\w\-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w\-]+|"[^"]*"|'[^']*'))*)\s*=""")
PART = re.compile(r"""[\w\-]+|"[^"]*"|'[^']*'""")
TOKEN = re.compile(r"\"\"\"|'''|\"(?:\\.|[^\"\\])*\"|'[^']*'|#.*|[\[\]{}]")


def read_declaration(path: Path) -> dict[str, Any]:
    """Read and check a declaration, down to the last configuration, and give its values."""
    try:
        text = path.read_text(encoding="utf-8")
        declared = tomllib.loads(text)
    except OSError as error:
        raise SettingsError(f"cannot read the study {path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not TOML: {error}") from error
    except RecursionError as error:
        raise SettingsError(f"{path} is not a study: its tables are nested too deep") from error
    try:
        return Declaration(**{"name": path.stem, **declared}).to_json()
    except SettingsError as error:
        line = line_of(text, error.setting)
        place = f"{path}, line {line}" if line is not None else str(path)
        raise SettingsError(f"{place}: {str(error).removeprefix('Declaration: ')}", setting=error.setting) from error
    except RecursionError as error:
        raise SettingsError(f"{path} is not a study: its tables are nested too deep") from error


def line_of(text: str, key: str) -> int | None:
    """Find the line that sets a key such as variants.1.model.hidden, or the table that holds it."""
    best: tuple[int, int] | None = None
    wanted = key.split(".")
    for number, path in paths(text):
        if wanted[: len(path)] == path and (best is None or len(path) > best[0]):
            best = len(path), number
    return None if best is None else best[1]


def paths(text: str) -> Iterator[tuple[int, list[str]]]:
    """Give the lines at which a table or an entry begins, each with its path."""
    header: list[str] = []
    counts: dict[tuple[str, ...], int] = {}
    for number, line in beginnings(text.split("\n")):
        if table := HEADER.match(line):
            names = split(table[2])
            if table[1] == "[[":
                counts[tuple(names)] = counts.get(tuple(names), -1) + 1
            header = []
            for place, name in enumerate(names, start=1):
                inside = counts.get(tuple(names[:place]))
                header += [name] if inside is None else [name, str(inside)]
            yield number, header
        elif entry := ENTRY.match(line):
            yield number, [*header, *(part for name in split(entry[1]) for part in name.split("."))]


def beginnings(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Give the lines that do not go on with a list, a table or a text of the line before, numbered from 1."""
    depth, text = 0, ""
    for number, line in enumerate(lines, start=1):
        if not depth and not text:
            yield number, line
        for token in TOKEN.findall(line):
            if token in ('"""', "'''"):
                text = "" if text == token else text or token
            elif not text and token in "[{":
                depth += 1
            elif not text and token in "]}":
                depth -= 1


def split(key: str) -> list[str]:
    """Take a dotted key apart."""
    return [part.strip("\"'") for part in PART.findall(key)]
