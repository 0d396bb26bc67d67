"""`topiarist data`: list, download and inspect data sets, and turn sounds into spectrograms."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topiarist.cli.data_output import print_listing, print_summary, progress_bar, show_sounds
from topiarist.cli.derived import naming
from topiarist.cli.options import (
    AsJson,
    Category,
    DataLocation,
    Date,
    Drop,
    Group,
    Number,
    Target,
    TaskOption,
    Weight,
    column_choices,
)
from topiarist.cli.output import count_bar, emit, say
from topiarist.files import JsonObject

if TYPE_CHECKING:
    from collections.abc import Mapping

    from topiarist.data.preparation import PreparedSource
    from topiarist.data.source import Rows
    from topiarist.data.targets import Targets

app = typer.Typer(help="List, download and inspect data sets; turn sounds into spectrograms.", no_args_is_help=True)

BUNDLED = {
    "digits": {"description": "handwritten digits, 8 by 8, grey", "samples": 1797, "classes": 10},
    "breast-cancer": {"description": "cell nuclei in 30 numbers, benign or malignant", "samples": 569, "classes": 2},
    "wine": {"description": "wines of three growers in 13 numbers", "samples": 178, "classes": 3},
    "iris": {"description": "flowers of three species in 4 numbers", "samples": 150, "classes": 3},
}


@app.command("list")
def list_data_sets(as_json: AsJson = False) -> None:
    """List the data sets that have a name, and which of them are on this machine.

    Example: topiarist data list
    """
    from topiarist.data.readers.catalogue import cache_folder

    listing = {"cache": str(cache_folder()), "data_sets": [*bundled_rows(), *downloadable_rows()]}
    emit(listing, as_json=as_json, show=print_listing)


@app.command("get")
def get_data_set(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name that `topiarist data list` prints.")],
    as_json: AsJson = False,
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
    text = f"{name} is in {folder} (licence: {entry.licence}; {entry.source})"
    emit(found, as_json=as_json, show=lambda _: say(text))


@app.command("show")
def show_data(
    data: DataLocation,
    target: Target = None,
    group: Group = None,
    weight: Weight = None,
    task: TaskOption = None,
    drop: Drop = None,
    category: Category = None,
    number: Number = None,
    date: Date = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the split.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Load data as every other command does, and print their parts, targets and what was decided for each column.

    Example: topiarist data show flowers.csv --target species --drop row
    """
    import warnings

    from topiarist.data.preparation import prepare
    from topiarist.errors import TopiaristWarning
    from topiarist.features.described import find_described

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)  # they are among the notes
        columns = column_choices(drop, category, number, date)
        named: dict[str, Any] = {"target": target, "group": group, "weight": weight, "task": task}
        summary = summarise(prepare(find_described(data, **named, columns=columns), seed=seed))
    emit(summary, as_json=as_json, show=print_summary)


@app.command("sounds")
def describe_folder_of_sounds(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="Clips with a meta.csv, in the layout of DCASE, or in one folder per class."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Where to write the spectrograms (.npz).")],
    bands: Annotated[int, typer.Option("--bands", help="Number of mel bands.")] = 48,
    window: Annotated[int, typer.Option("--window", help="Samples per window; windows overlap by half.")] = 2048,
    rate: Annotated[int | None, typer.Option("--rate", help="Sampling rate to resample to, in Hz.")] = None,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", help="Length that clips are cut or padded to.  [default: the most common]"),
    ] = None,
    target: Target = None,
    group: Group = None,
    as_json: AsJson = False,
) -> None:
    """Turn a folder of sounds into log-mel spectrograms, which every other command reads as data.

    Example: topiarist data sounds clips --out clips.npz
    """
    from topiarist.errors import DataError
    from topiarist.features.log_mel import LogMel
    from topiarist.features.sounds import archive_of, describe_sounds
    from topiarist.files import check_place, write_atomically

    if out.suffix != ".npz":
        raise DataError(f"spectrograms are written to a .npz file; found '{out.name}'")
    check_place(out, inputs=(folder,))
    with naming({name: f"--{name}" for name in LogMel.model_fields}):
        settings = LogMel(bands=bands, window=window, rate=rate, seconds=seconds)
    with count_bar("clips") as on_clip:
        found = describe_sounds(folder, settings, target=target, group=group, on_clip=on_clip)
    write_atomically(out, archive_of(found))
    clips, _, height, width = found.features.shape
    result = {"out": str(out), "clips": clips, "bands": height, "frames": width, "rate": found.rate}
    emit({**result, "notes": list(found.notes)}, as_json=as_json, show=show_sounds)


def bundled_rows() -> list[JsonObject]:
    """Return the data sets that come with scikit-learn."""
    return [{"name": name, "kind": "bundled", **facts} for name, facts in BUNDLED.items()]


def downloadable_rows() -> list[JsonObject]:
    """Return the data sets of the catalogue; `folder` is None for those that are not in the cache."""
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


def summarise(data: "PreparedSource") -> JsonObject:
    """Return what is worth knowing about data as plain values."""
    rows = {"train": data.split.train, "validation": data.split.validation, "test": data.split.test}
    columns = data.preprocessing.columns
    widths = {column.name: column.width for column in columns}
    return {
        "name": data.source.name,
        "samples": {part: len(chosen) for part, chosen in rows.items()},
        "input_shape": list(data.preprocessing.input_shape),
        **target_summary(data.targets, rows),
        "preprocessing": {
            "scaling": data.preprocessing.scaling,
            "number_columns": sum(column.kind == "number" for column in columns),
            "text_columns": sum(column.kind == "text" and column.encoding == "one-hot" for column in columns),
            "effect_columns": sum(column.encoding == "effect" for column in columns),
            "date_columns": sum(column.kind == "date" for column in columns),
        },
        "columns": [
            {
                "name": decision.name,
                "read_as": decision.read_as,
                "different": decision.distinct,
                "gaps": dict(decision.gaps),
                "inputs": widths.get(decision.name, 0),
                "remarks": decision.said,
            }
            for decision in data.source.columns
        ],
        "notes": list(data.notes),
    }


def target_summary(targets: "Targets", rows: "Mapping[str, Rows]") -> JsonObject:
    """Return how many samples of each class are in each part, or the mean and deviation of numbers and labels there."""
    import numpy

    values, names = targets.values, list(enumerate(targets.names))
    if targets.kind == "classes":
        counts = {part: numpy.bincount(values[chosen], minlength=len(names)) for part, chosen in rows.items()}
        each = [
            {"name": name, **{part: int(count[number]) for part, count in counts.items()}} for number, name in names
        ]
        return {"classes": each}

    def figures(chosen: "Rows", number: int) -> dict[str, float]:
        found = values[chosen, number]
        return {"mean": float(found.mean()), "deviation": float(found.std())}

    known = {part: chosen for part, chosen in rows.items() if len(chosen)}
    each = [
        {"name": name, **{part: figures(chosen, number) for part, chosen in known.items()}} for number, name in names
    ]
    return {"classes": [], "task": targets.kind, "targets": each}
