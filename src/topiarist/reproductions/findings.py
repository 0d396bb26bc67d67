"""Writes what a reproduction found: tables, figures and a page."""

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas

from topiarist.files import write_atomically
from topiarist.report import format_table
from topiarist.study.results import Results

PACKAGES = ("topiarist", "torch", "numpy")


def write_findings(
    out: Path, tables: Mapping[str, pandas.DataFrame], figures: Mapping[str, str], page: str
) -> dict[str, str]:
    """Write `tables/`, those that have rows, `figures/` and `index.html` below a folder, and say where they are."""
    for folder, content in (
        ("tables", {f"{name}.csv": format_table(table, "csv") for name, table in tables.items() if len(table)}),
        ("figures", {f"{name}.svg": svg.encode() for name, svg in figures.items()}),
    ):
        (out / folder).mkdir(parents=True, exist_ok=True)
        for name, text in content.items():
            write_atomically(out / folder / name, text)
    write_atomically(out / "index.html", page.encode())
    return {"page": str(out / "index.html"), "tables": str(out / "tables"), "figures": str(out / "figures")}


def failures_of(studies: Iterable[Results]) -> dict[str, Any]:
    """Give how many cells failed, and the folders of the studies where they did."""
    counts = {str(study.folder): int((study.cells["state"] == "failed").sum()) for study in studies}
    return {"failed": sum(counts.values()), "failed_in": [folder for folder, count in counts.items() if count]}


def drawn_of(figures: Mapping[str, str], *names: str) -> tuple[str, ...]:
    """Give the figures of these names that could be drawn."""
    return tuple(figures[name] for name in names if name in figures)


def file_stem(name: str) -> str:
    """Give the name of a file for what has a name in words."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def versions() -> str:
    """Say with what the figures were made."""
    return ", ".join(f"{package} {version(package)}" for package in PACKAGES)
