"""Arguments and options that several commands share."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from topiarist.cli.derived import derive
from topiarist.errors import SettingsError
from topiarist.measurement.budget import Budget, parse_kb, parse_ms

if TYPE_CHECKING:
    from topiarist.data.columns.choices import ColumnChoices

DATA_FORMS = (
    "A name (digits, breast-cancer, wine, iris, or one of `topiarist data list`), a .csv, .parquet, .xlsx, .npz, .mat "
    "or IDX file, a CIFAR archive, or a folder with one folder per class or with a meta.csv."
)

DataLocation = Annotated[str, typer.Argument(metavar="DATA", help=DATA_FORMS)]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A .safetensors file, such as `train` writes.")]
Target = Annotated[
    str | None,
    typer.Option("--target", metavar="COLUMN[,COLUMN…]", help="The column of a table to predict; several with commas."),
]
TaskOption = Annotated[
    Literal["classes", "numbers", "labels"] | None,
    typer.Option("--task", help="What the target is.  [default: what its values suggest]"),
]
MetricOption = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="What decides, such as f1, log_loss, mae or r2.  [default: accuracy, RMSE, or ROC AUC of labels]",
    ),
]
Weight = Annotated[
    str | None, typer.Option("--weight", metavar="COLUMN", help="A column that says how much each sample counts.")
]
Group = Annotated[
    str | None, typer.Option("--group", help="A column, such as a patient's name, whose values stay in one part each.")
]
COLUMNS = "Columns of a table"
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="COLUMN", rich_help_panel=COLUMNS, help="Leave a column out; repeatable."),
]
Category = Annotated[
    list[str] | None,
    typer.Option("--category", metavar="COLUMN", rich_help_panel=COLUMNS, help="Read a column as categories."),
]
Number = Annotated[
    list[str] | None,
    typer.Option("--number", metavar="COLUMN", rich_help_panel=COLUMNS, help="Read a column as numbers."),
]
Date = Annotated[
    list[str] | None,
    typer.Option(
        "--date",
        metavar="COLUMN[=FORM]",
        rich_help_panel=COLUMNS,
        help="Read a column as dates, perhaps in a form such as %d/%m/%Y.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="NAME",
        help="Where to compute: cpu, cuda, cuda:1, mps, or auto, which is this machine's accelerator.  [default: cpu]",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of all random choices: the same seed, the same result.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line of standard output.")]
Into = Annotated[
    str | None,
    typer.Option("--into", metavar="MODULE:FUNCTION", help="Your code that builds the network to load the file into."),
]
ModelOut = Annotated[Path | None, typer.Option("--out", help="Where to save the network (.safetensors).")]
Workers = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="Processes on this machine.  [default: one per core, where that is faster]"),
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="ADDRESS", help="Address of a running Dask scheduler: tls://host:8786."),
]
Scaling = Annotated[
    Literal["none", "zscore", "minmax", "unit", "pixels"] | None,
    typer.Option(
        "--scaling", help="How inputs are scaled; minmax maps pixels to [0, 1].  [default: what suits the data]"
    ),
]
InputShape = Annotated[
    str | None, typer.Option("--input-shape", metavar="1x8x8", help="Read flat samples as images of this shape.")
]

BUDGET = derive(
    Budget,
    "Budget: upper limits",
    spelled={
        "file_kb": "--max-size --budget",
        "memory_kb": "--max-memory",
        "parameters": "--max-parameters",
        "macs": "--max-macs",
        "latency_ms": "--max-latency",
        "runtime": "--runtime",
        "threads": "--threads",
        "max_drop": "--max-drop",
    },
    read={"file_kb": ("SIZE", parse_kb), "memory_kb": ("SIZE", parse_kb), "latency_ms": ("TIME", parse_ms)},
)


def column_choices(
    drop: list[str] | None, category: list[str] | None, number: list[str] | None, date: list[str] | None
) -> "ColumnChoices":
    """Return what the call decides about columns."""
    from topiarist.data.columns.choices import ColumnChoices

    return ColumnChoices(
        drop=tuple(drop or ()), category=tuple(category or ()), number=tuple(number or ()), date=tuple(date or ())
    )


def parse_shape(text: str | None) -> tuple[int, ...] | None:
    """Read a shape such as 1x8x8."""
    if text is None:
        return None
    try:
        shape = tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1:
        raise SettingsError(f"a shape is written like 1x8x8; found '{text}'")
    return shape


def check_model_out(out: Path | None, *, inputs: Iterable[Path | str] = (), resumes: bool = False) -> None:
    """Refuse a place where a network, or its checkpoint, could not be written, before hours of training."""
    from topiarist.cli.output import checkpoint_beside
    from topiarist.files import check_place

    if out is None:
        return
    if out.suffix != ".safetensors":
        raise SettingsError(f"--out must end in .safetensors; found '{out}'")
    check_place(out, inputs=inputs)
    if resumes and (checkpoint := checkpoint_beside(out)) is not None:
        check_place(checkpoint, inputs=inputs)
