"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

DATA_FORMS = (
    "A name (digits, breast-cancer, wine, iris, or one of `topiarist data list`), a .csv, .parquet, .xlsx, .npz, .mat "
    "or IDX file, a CIFAR archive, or a folder with one folder a class or with a meta.csv."
)

DataLocation = Annotated[str, typer.Argument(metavar="DATA", help=DATA_FORMS)]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A .safetensors file that `train` wrote.")]
Target = Annotated[str | None, typer.Option("--target", help="The column of a table that holds the class.")]
Group = Annotated[str | None, typer.Option("--group", help="The column whose values no two parts may share.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same result.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line of standard output.")]
Into = Annotated[
    str | None,
    typer.Option("--into", metavar="MODULE:FUNCTION", help="Code that builds your own network, to load the file into."),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="Processes on this machine; unless given, one a core where that pays."),
]
Cluster = Annotated[
    str | None, typer.Option("--cluster", metavar="ADDRESS", help="A running Dask scheduler: tcp://host:8786.")
]
Scaling = Literal["none", "zscore", "minmax", "unit", "pixels"]


def parse_shape(text: str | None) -> tuple[int, ...] | None:
    """Read a shape such as 1x8x8."""
    from topiarist.errors import SettingsError

    if text is None:
        return None
    try:
        shape = tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1:
        raise SettingsError(f"a shape is written like 1x8x8; found '{text}'")
    return shape


def given_options(context: typer.Context) -> list[str]:
    """Name the options that stand in the call."""
    return [name for name in context.params if str(context.get_parameter_source(name)).endswith("COMMANDLINE")]
