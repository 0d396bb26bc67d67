"""What reproductions share around their studies: variants declared once; tables, figures and a page written."""

import re
from collections.abc import Hashable, Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import pandas

from topiarist.files import write_atomically
from topiarist.report import format_table
from topiarist.study.results import Results

Key = TypeVar("Key", bound=Hashable)
Overrides = dict[str, Any]  # what a variant of a study changes, section by section


def name_variants(
    entries: Iterable[tuple[Key, str, Overrides]],
) -> tuple[list[Overrides], dict[Key, str]]:
    """Return the variants of a study, and the label under which each entry (key, label, overrides) is found.

    Entries with equal overrides are one variant, under the label of the first: what is the same is run once.
    """
    variants: dict[str, Overrides] = {}
    labels: dict[Key, str] = {}
    for key, name, overrides in entries:
        labels[key] = next((label for label, known in variants.items() if known == overrides), name)
        variants[labels[key]] = overrides
    return [{"name": label, **overrides} for label, overrides in variants.items()], labels


def write_findings(
    out: Path, tables: Mapping[str, pandas.DataFrame], figures: Mapping[str, str], page: str
) -> dict[str, str]:
    """Write `tables/` (those with rows), `figures/` and `index.html` below a folder; return where they are."""
    for folder in ("tables", "figures"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    files = {f"tables/{name}.csv": format_table(table, "csv") for name, table in tables.items() if len(table)}
    write_files(out, files | figure_files(figures) | {"index.html": page.encode()})
    return {"page": str(out / "index.html"), "tables": str(out / "tables"), "figures": str(out / "figures")}


def figure_files(figures: Mapping[str, str]) -> dict[str, bytes]:
    """Return the files of figures, by their place in the folder of a reproduction."""
    return {f"figures/{name}.svg": svg.encode() for name, svg in figures.items()}


def write_files(out: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a folder, each whole or not at all."""
    for name, content in files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out / name, content)


def failures_of(studies: Iterable[Results]) -> dict[str, object]:
    """Return how many cells failed, and where."""
    counts = {str(study.folder): int((study.cells["state"] == "failed").sum()) for study in studies}
    return {"failed": sum(counts.values()), "failed_in": [folder for folder, count in counts.items() if count]}


def drawn_of(figures: Mapping[str, str], *names: str) -> tuple[str, ...]:
    """Return the figures of these names that could be drawn."""
    return tuple(figures[name] for name in names if name in figures)


def file_stem(name: str) -> str:
    """Return the name of a file for what has a name in words."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def versions() -> str:
    """Return with what the figures were made."""
    return ", ".join(f"{package} {version(package)}" for package in ("topiarist", "torch", "numpy"))
