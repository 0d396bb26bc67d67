"""`topiarist data`: which data sets there are, download one, look at one, describe sounds."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topiarist.cli.derived import naming
from topiarist.cli.options import Group, Target
from topiarist.cli.output import count_bar, emit

if TYPE_CHECKING:
    from rich.progress import TaskID

    from topiarist.data.preparation import PreparedSource
    from topiarist.data.readers.download import Progress

app = typer.Typer(help="Which data sets there are, download one, look at one, describe sounds.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line of standard output.")]

BUNDLED = {
    "digits": {"description": "handwritten digits, 8 by 8, grey", "samples": 1797, "classes": 10},
    "breast-cancer": {"description": "cell nuclei in 30 numbers, benign or malignant", "samples": 569, "classes": 2},
    "wine": {"description": "wines of three growers in 13 numbers", "samples": 178, "classes": 3},
    "iris": {"description": "flowers of three species in 4 numbers", "samples": 150, "classes": 3},
}


@app.command("list")
def list_data_sets(as_json: AsJson = False) -> None:
    """Show the data sets that have a name, and which of them are on this machine.

    Example: topiarist data list
    """
    from topiarist.data.readers.catalogue import cache_folder

    listing = {"cache": str(cache_folder()), "data_sets": [*bundled_rows(), *downloadable_rows()]}
    if as_json:
        typer.echo(json.dumps(listing))
    else:
        print_listing(listing)


@app.command("get")
def get_data_set(
    name: Annotated[str, typer.Argument(help="A name that `topiarist data list` shows.")], as_json: AsJson = False
) -> None:
    """Download a data set into the cache.

    Example: topiarist data get fashion-mnist
    """
    from topiarist.data.readers.catalogue import CATALOGUE
    from topiarist.data.readers.download import fetch
    from topiarist.errors import DataError

    if name in BUNDLED:
        raise DataError(f"'{name}' comes with topiarist and needs no download: topiarist data show {name}")
    with progress_bar() as progress:
        folder = fetch(name, progress=progress)
    entry = CATALOGUE[name]
    found = {"name": name, "folder": str(folder), "licence": entry.licence, "source": entry.source}
    typer.echo(json.dumps(found) if as_json else f"{name} is in {folder} (licence: {entry.licence}; {entry.source})")


@app.command("show")
def show_data(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A name, a file or a folder.")],
    target: Annotated[str | None, typer.Option(help="The column of a table that holds the class.")] = None,
    group: Annotated[str | None, typer.Option(help="The column whose values no two parts may share.")] = None,
    seed: Annotated[int, typer.Option(help="Decides the split.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Load data as every other command would, and say what was found.

    Example: topiarist data show flowers.csv --target species
    """
    import warnings

    from topiarist.data.preparation import prepare
    from topiarist.errors import TopiaristWarning
    from topiarist.features.described import find_described

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)  # they are among the notes
        summary = summarise(prepare(find_described(data, target=target, group=group), seed=seed))
    if as_json:
        typer.echo(json.dumps(summary))
    else:
        print_summary(summary)


@app.command("sounds")
def describe_folder_of_sounds(
    folder: Annotated[
        Path, typer.Argument(help="Clips with a meta.csv, the challenge's layout, or one folder per class.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Where to write the spectrograms (.npz).")],
    bands: Annotated[int, typer.Option("--bands", help="Mel bands.")] = 48,
    window: Annotated[int, typer.Option("--window", help="Samples of a window; half of it is shared.")] = 2048,
    rate: Annotated[int | None, typer.Option("--rate", help="Resample to so many Hz.")] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", help="Cut or pad every clip.  [default: the most common length]")
    ] = None,
    target: Target = None,
    group: Group = None,
    as_json: AsJson = False,
) -> None:
    """Describe a folder of sounds as log-mel spectrograms, which every other command then reads as data.

    Example: topiarist data sounds clips --out clips.npz
    """
    from topiarist.errors import DataError
    from topiarist.features.log_mel import LogMel
    from topiarist.features.sounds import archive_of, describe_sounds
    from topiarist.files import write_atomically

    if out.suffix != ".npz":
        raise DataError(f"spectrograms are written to a .npz file; found '{out.name}'")
    with naming({name: f"--{name}" for name in LogMel.model_fields}):
        settings = LogMel(bands=bands, window=window, rate=rate, seconds=seconds)
    with count_bar("clips") as on_clip:
        found = describe_sounds(folder, settings, target=target, group=group, on_clip=on_clip)
    write_atomically(out, archive_of(found))
    clips, _, height, width = found.features.shape
    result = {"out": str(out), "clips": clips, "bands": height, "frames": width, "rate": found.rate}
    emit({**result, "notes": list(found.notes)}, as_json=as_json, show=show_sounds)


def show_sounds(found: Mapping[str, Any]) -> None:
    """Print what was described."""
    for note in found["notes"]:
        typer.echo(note)
    size = f"{found['clips']} clips at {found['rate']} Hz, {found['bands']} bands × {found['frames']} frames"
    typer.echo(f"{size}: {found['out']}")


def bundled_rows() -> list[dict[str, Any]]:
    """Describe the data sets that come with scikit-learn."""
    return [{"name": name, "kind": "bundled", **facts} for name, facts in BUNDLED.items()]


def downloadable_rows() -> list[dict[str, Any]]:
    """Describe the data sets of the catalogue; `folder` is None for those that are not in the cache."""
    from topiarist.data.readers.catalogue import CATALOGUE, cached

    return [
        {
            "name": name,
            "kind": "download",
            "description": entry.description,
            "samples": entry.samples,
            "classes": len(entry.classes),
            "size_bytes": entry.size_bytes,
            "licence": entry.licence,
            "source": entry.source,
            "folder": None if (folder := cached(name)) is None else str(folder),
        }
        for name, entry in CATALOGUE.items()
    ]


def summarise(data: "PreparedSource") -> dict[str, Any]:
    """Return what is worth knowing about data as plain values."""
    import numpy

    from topiarist.data.labels import number_labels

    labels, classes = number_labels(data.source)
    rows = {"train": data.split.train, "validation": data.split.validation, "test": data.split.test}
    counts = {part: numpy.bincount(labels[chosen], minlength=len(classes)).tolist() for part, chosen in rows.items()}
    columns = data.preprocessing.columns
    return {
        "name": data.source.name,
        "samples": {part: len(chosen) for part, chosen in rows.items()},
        "input_shape": list(data.preprocessing.input_shape),
        "classes": [
            {"name": name, **{part: count[number] for part, count in counts.items()}}
            for number, name in enumerate(classes)
        ],
        "preprocessing": {
            "scaling": data.preprocessing.scaling,
            "number_columns": sum(column.kind == "number" for column in columns),
            "text_columns": sum(column.kind == "text" for column in columns),
        },
        "notes": list(data.notes),
    }


def print_listing(listing: dict[str, Any]) -> None:
    """Show `listing` as a table for people."""
    rows = [("name", "description", "samples", "classes", "MB", "where")]
    for row in listing["data_sets"]:
        size = f"{row['size_bytes'] / 1e6:.0f}" if row.get("size_bytes") else ""
        rows.append((row["name"], row["description"], str(row["samples"]), str(row["classes"]), size, whereabouts(row)))
    print_columns(rows, right=("samples", "classes", "MB"))
    typer.echo(f"\nThe cache is {listing['cache']}")


def print_columns(rows: Sequence[Sequence[str]], *, right: Sequence[str]) -> None:
    """Print rows of text below their headings; plain, since rich takes as long to import as all else that is shown."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        gaps = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        aligned = zip(rows[0], row, gaps, strict=True)
        typer.echo("  ".join(gap + cell if name in right else cell + gap for name, cell, gap in aligned).rstrip())


def whereabouts(row: dict[str, Any]) -> str:
    """Say in a word where a data set is now."""
    if row["kind"] == "bundled":
        return "bundled"
    return "to download" if row["folder"] is None else "cached"


def print_summary(summary: dict[str, Any]) -> None:
    """Show `summary` as lines and a table for people."""
    parts = list(summary["samples"])
    typer.echo(summary["name"])
    typer.echo(f"samples        {', '.join(f'{count} {part}' for part, count in summary['samples'].items())}")
    typer.echo(f"input shape    {' × '.join(str(size) for size in summary['input_shape'])}")
    typer.echo(f"preprocessing  {preprocessing_line(**summary['preprocessing'])}")
    for note in summary["notes"]:
        typer.echo(f"note           {note}")
    typer.echo("")
    rows = [(row["name"], *(str(row[part]) for part in parts)) for row in summary["classes"]]
    print_columns([("class", *parts), *rows], right=parts)


def preprocessing_line(*, scaling: str, number_columns: int, text_columns: int) -> str:
    """Say in a line how raw samples become what the network reads."""
    columns = [
        f"{number_columns} columns of numbers" if number_columns else "",
        f"{text_columns} columns of text as one-hot" if text_columns else "",
    ]
    return ", ".join(["no scaling" if scaling == "none" else f"scaling {scaling}", *filter(None, columns)])


@contextmanager
def progress_bar() -> Iterator["Progress | None"]:
    """Give something to report progress to: a bar with the time left on a terminal, nothing in a pipe."""
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
