"""What `topiarist data` prints."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from topiarist.cli.output import say
from topiarist.files import JsonObject

if TYPE_CHECKING:
    from rich.progress import TaskID

    from topiarist.data.readers.download import Progress


def show_sounds(found: JsonObject) -> None:
    """Print how many spectrograms were written, and where."""
    for note in found["notes"]:
        say(note)
    size = f"{found['clips']} clips at {found['rate']} Hz, {found['bands']} bands × {found['frames']} frames"
    say(f"{size}: {found['out']}")


def print_listing(listing: JsonObject) -> None:
    """Print data sets as a table."""
    rows = [("name", "description", "samples", "classes", "MB", "where")]
    for row in listing["data_sets"]:
        size = f"{row['size_bytes'] / 1e6:.0f}" if row.get("size_bytes") else ""
        rows.append((row["name"], row["description"], str(row["samples"]), str(row["classes"]), size, whereabouts(row)))
    print_columns(rows, right=("samples", "classes", "MB"))
    say(f"\nThe cache is {listing['cache']}")


def whereabouts(row: JsonObject) -> str:
    """Return in a word where a data set is now."""
    if row["kind"] == "bundled":
        return "bundled"
    return "to download" if row["folder"] is None else "cached"


def print_summary(summary: JsonObject) -> None:
    """Print data as lines and a table."""
    parts = list(summary["samples"])
    say(summary["name"])
    say(f"samples        {', '.join(f'{count} {part}' for part, count in summary['samples'].items())}")
    say(f"input shape    {' × '.join(str(size) for size in summary['input_shape'])}")
    say(f"preprocessing  {preprocessing_line(**summary['preprocessing'])}")
    for note in summary["notes"]:
        say(f"note           {note}")
    say("")
    if summary.get("targets"):
        heading = "number" if summary["task"] == "numbers" else "label"
        print_columns([(heading, *parts), *target_rows(summary, parts)], right=parts)
    else:
        rows = [(row["name"], *(str(row[part]) for part in parts)) for row in summary["classes"]]
        print_columns([("class", *parts), *rows], right=parts)
    if summary["columns"]:
        say("")
        print_columns(decision_rows(summary["columns"]), right=("different", "inputs"))


def target_rows(summary: JsonObject, parts: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the mean and deviation of numbers in each part, or how many samples have each label."""

    def shown(found: JsonObject | None) -> str:
        if found is None:
            return ""
        if summary["task"] == "labels":
            return f"{found['mean']:.1%}"
        return f"{found['mean']:.4g} ± {found['deviation']:.4g}"

    return [(row["name"], *(shown(row.get(part)) for part in parts)) for row in summary["targets"]]


def decision_rows(columns: Sequence[JsonObject]) -> list[tuple[str, ...]]:
    """Return what was decided for each column as rows of text below their headings."""
    from topiarist.data.columns.decisions import shown_gaps

    rows: list[tuple[str, ...]] = [("column", "read as", "different", "gaps", "inputs", "remarks")]
    for each in columns:
        gaps, inputs = shown_gaps(each["gaps"]), str(each["inputs"]) if each["inputs"] else ""
        remarks = "; ".join(each["remarks"])
        rows.append((each["name"], each["read_as"], f"{each['different']:,}", gaps, inputs, remarks))
    return rows


def preprocessing_line(
    *, scaling: str, number_columns: int, text_columns: int, effect_columns: int, date_columns: int
) -> str:
    """Return in a line how raw samples become what the network reads."""
    kinds = {
        "of numbers": number_columns,
        "of text as one-hot": text_columns,
        "of text by their effects": effect_columns,
        "of dates": date_columns,
    }
    columns = [f"{count} column{'' if count == 1 else 's'} {kind}" for kind, count in kinds.items() if count]
    return ", ".join(["no scaling" if scaling == "none" else f"scaling {scaling}", *columns])


def print_columns(rows: Sequence[Sequence[str]], *, right: Sequence[str]) -> None:
    """Print rows of text below their headings; plain, since rich takes as long to import as all else that is shown."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        gaps = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        aligned = zip(rows[0], row, gaps, strict=True)
        say("  ".join(gap + cell if name in right else cell + gap for name, cell, gap in aligned).rstrip())


@contextmanager
def progress_bar() -> Iterator["Progress | None"]:
    """Yield a function to report a download to: a bar with the time left on a terminal, None in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        tasks: dict[str, TaskID] = {}

        def show(name: str, done: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], completed=done, total=total)

        yield show
