"""`topiarist rightsize`: from data and a budget to a small, proven, deployable network."""

import shlex
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from topiarist.cli import shape_options as option
from topiarist.cli.options import AsJson, DataLocation, Group, Into, Scaling, Seed, Target, parse_shape
from topiarist.cli.output import emit
from topiarist.cli.rightsize_output import progress, say, show_nearest, show_record
from topiarist.cli.train_options import InputShape
from topiarist.errors import SettingsError, TopiaristWarning

if TYPE_CHECKING:
    from torch import nn

    from topiarist.data import Data

NOTHING_FITS = 3
TIMES = {"quick": "1 minute", "normal": "10 minutes", "thorough": "1 hour"}


def rightsize_command(
    data: DataLocation,
    target: Target = None,
    group: Group = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="FILE|MODULE:FUNCTION",
            help="A network to start from: a .safetensors file, or code that builds one.  [default: one that suits]",
        ),
    ] = None,
    into: Into = None,
    trained: Annotated[
        bool | None,
        typer.Option(
            "--trained/--fresh",
            help="Take the model as it is, or train it first.  [default: as it is, if it beats chance]",
        ),
    ] = None,
    size: option.Size = None,
    max_parameters: option.MaxParameters = None,
    max_macs: option.MaxMacs = None,
    max_latency: Annotated[
        str | None,
        typer.Option("--max-latency", metavar="TIME", rich_help_panel=option.BUDGET, help="Of a sample: 2ms, 500us."),
    ] = None,
    max_drop: Annotated[
        float, typer.Option("--max-drop", rich_help_panel=option.BUDGET, help="Accuracy that may be lost: 0.01.")
    ] = 0.01,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            metavar="NAMES",
            help="What makes candidates, with commas between: distinctiveness, genetic, factorisation, magnitude,"
            " surgeon.  [default: all]",
        ),
    ] = None,
    effort: Annotated[
        Literal["quick", "normal", "thorough"],
        typer.Option("--effort", help="About 1 minute, 10 minutes or 1 hour of work; large networks can take longer."),
    ] = "normal",
    input_shape: InputShape = None,
    scaling: Annotated[
        Scaling | None,
        typer.Option(
            "--scaling",
            help="In the place of what suits the data: minmax for a network that was trained on pixels in [0, 1].",
        ),
    ] = None,
    samples: Annotated[
        int | None, typer.Option("--samples", min=2, help="Train on so many samples at most, drawn by the seed.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="The folder for report, networks and ONNX file.")] = Path(
        "rightsized"
    ),
    onnx: Annotated[bool, typer.Option("--onnx/--no-onnx", help="Whether to export the network as ONNX.")] = True,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Find the smallest network that is not worse than the baseline, prove it, save, export and report it.

    Example: topiarist rightsize digits --effort quick

    A table: topiarist rightsize flowers.csv --target species

    A network of yours: topiarist rightsize images/ --model networks:make --budget 100kB --max-latency 2ms

    Exit code 3 says that no network fits the budget and loses no more than is allowed; the nearest are listed.
    """
    from topiarist.cli.train_options import named
    from topiarist.measurement import Budget
    from topiarist.measurement.budget import parse_kb
    from topiarist.report.writing import write_report
    from topiarist.rightsizing import UnreachableError, rightsize
    from topiarist.rightsizing.delivery import deliver

    check_folder(out)
    asked = parse_methods(methods)
    with named(option_names()):
        budget = Budget(
            file_kb=None if size is None else parse_kb(size),
            parameters=max_parameters,
            macs=max_macs,
            latency_ms=None if max_latency is None else parse_ms(max_latency),
        )
        if not 0 < max_drop < 1:
            raise SettingsError(f"max_drop: max_drop must lie between 0 and 1; found {max_drop}")
    how: dict[str, Any] = {"target": target, "group": group, "seed": seed, "samples": samples, "scaling": scaling}
    how["input_shape"] = parse_shape(input_shape)
    task, start = task_and_model(data, model, into, how)
    say(f"about {TIMES[effort]} of work on {task.name} ({effort}; --effort chooses)", quiet=as_json)
    try:
        with progress(f"rightsizing {task.name}") as tell:
            found = rightsize(
                task,
                start,
                budget=budget,
                max_drop=max_drop,
                methods=asked,
                effort=effort,
                trained=trained,
                seed=seed,
                on_progress=tell,
            )
            record = deliver(found, out, onnx=onnx)
    except UnreachableError as error:
        show_nearest(error.record, as_json=as_json)
        raise typer.Exit(NOTHING_FITS) from error
    record["settings"]["command"] = shlex.join(["topiarist", *sys.argv[1:]])
    page = write_report(record, out)
    for note in record["plan"]["notes"]:
        warnings.warn(note, TopiaristWarning, stacklevel=1)
    summary = {**record, "out": str(out), "report": str(page)}
    emit(summary, as_json=as_json, show=show_record)


def option_names() -> dict[str, str]:
    """Say which option stands for which setting."""
    return {
        "file_kb": "--budget",
        "parameters": "--max-parameters",
        "macs": "--max-macs",
        "latency_ms": "--max-latency",
        "max_drop": "--max-drop",
    }


def task_and_model(
    data: str, model: str | None, into: str | None, how: Mapping[str, Any]
) -> "tuple[Data, nn.Module | Callable[[], nn.Module] | None]":
    """Read data and network; the data of a network from a file are seen as it has learned to see them."""
    from topiarist.cli.loading import load_network, task_for
    from topiarist.features.described import load_described
    from topiarist.models import card_of
    from topiarist.models.building import build_by_code
    from topiarist.randomness import isolated

    if into is not None and model is None:
        raise SettingsError("--into says what a model file is loaded into: name the file with --model")
    if model is None:
        return load_described(data, **how), None
    if Path(model).suffix != ".safetensors":
        if ":" not in model:
            raise SettingsError(f"--model names a .safetensors file or module:function; found '{model}'")
        reference = model
        with isolated(how["seed"]):
            build_by_code(reference)  # whatever is wrong with it is said before the work
        return load_described(data, **how), lambda: build_by_code(reference)
    network = load_network(Path(model), into)
    if card_of(network).preprocessing is None:
        return load_described(data, **how), network
    if any(how[name] is not None for name in ("samples", "input_shape", "scaling")):
        raise SettingsError("--samples, --input-shape and --scaling are as the model's file has them: leave them out")
    return task_for(network, data, target=how["target"], group=how["group"]), network


def parse_methods(text: str | None) -> list[Any]:
    """Read names of methods with commas between; all of them where none is given."""
    from topiarist.rightsizing import METHODS

    names = list(METHODS) if text is None else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in METHODS:
            raise SettingsError(f"--methods names some of {', '.join(METHODS)}, with commas between; found '{name}'")
    return names


def parse_ms(text: str) -> float:
    """Read a time such as 2ms, 500us or 0.01 s as milliseconds; a bare number is in milliseconds."""
    import re

    units = {"": 1.0, "ms": 1.0, "us": 1e-3, "µs": 1e-3, "s": 1e3}
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([a-zµ]*)\s*", text)
    if match is None or match[2] not in units:
        raise SettingsError(f"a time is written like 2ms or 500us; found '{text}'")
    return float(match[1]) * units[match[2]]


def check_folder(out: Path) -> None:
    """Refuse a place where the results could not be written, before the work."""
    import os

    above = next(place for place in (out, *out.absolute().parents) if place.exists())
    if not above.is_dir():
        raise SettingsError(f"--out names a folder; {above} is a file")
    if not os.access(above, os.W_OK):
        raise SettingsError(f"cannot write {out}: the folder {above} cannot be written to")
