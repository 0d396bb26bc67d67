"""`topiarist study`: run a declared comparison, watch it, resume it, and read its results."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from topiarist.cli.options import AsJson, Cluster, Device, Workers
from topiarist.cli.output import InterruptionError, emit, say_table
from topiarist.cli.study_output import ended_by_signals, show_results, show_status, status_of, study_bar

if TYPE_CHECKING:
    from topiarist.study.study import Study

app = typer.Typer(help="Compare configurations over folds and seeds, with statistics.", no_args_is_help=True)

StudyFile = Annotated[Path, typer.Argument(metavar="FILE", help="A .toml file that declares a study.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder that holds a study.")]
AllowCode = Annotated[
    bool,
    typer.Option(
        "--allow-code",
        help="Run the code that the study names, whatever it is. Without it, functions that take input_shape and "
        "classes are run, of a study that was begun here.",
    ),
]
TableName = Literal["summary", "cells", "tests", "front"]


@app.command("run")
def run_command(
    file: StudyFile,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="The folder for results.  [default: FILE without its ending]"),
    ] = None,
    workers: Workers = None,
    cluster: Cluster = None,
    device: Device = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Run a study; after an interruption, the same command resumes it.

    Example: topiarist study run sizes.toml --workers 2
    """
    from topiarist.study.study import Study

    study = Study.from_file(file, allow_code=allow_code)
    place = file.with_suffix("") if out is None else out
    drive(study, place, workers=workers, cluster=cluster, device=device, retry_failed=False, as_json=as_json)


@app.command("resume")
def resume_command(
    folder: Folder,
    workers: Workers = None,
    cluster: Cluster = None,
    device: Device = None,
    allow_code: AllowCode = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Also try again what failed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Resume a study that was interrupted; nothing that has a result is run again.

    Example: topiarist study resume sizes
    """
    from topiarist.study.study import Study

    study = Study.in_folder(folder, allow_code=allow_code)
    drive(study, folder, workers=workers, cluster=cluster, device=device, retry_failed=retry_failed, as_json=as_json)


@app.command("status")
def status_command(folder: Folder, as_json: AsJson = False) -> None:
    """Show the progress of a study, also while it runs.

    Example: topiarist study status sizes
    """
    emit(status_of(folder), as_json=as_json, show=show_status)


@app.command("results")
def results_command(
    folder: Folder,
    form: Annotated[
        Literal["csv", "json", "parquet", "latex", "markdown"] | None,
        typer.Option("--format", help="Print for programs and papers, instead of a table for people."),
    ] = None,
    table: Annotated[TableName, typer.Option("--table", help="The table to print in that format.")] = "summary",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The file to write, instead of standard output.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option("--metric", help="The measure to compare by.  [default: that of the task]"),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", metavar="CONFIGURATION", help="What the others are compared with.  [default: the first]"
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            "--margin", min=0, help="Find the smallest configuration that loses no more than this against the baseline."
        ),
    ] = None,
    size: Annotated[
        Literal["parameters", "nonzero", "memory_kb", "file_kb", "macs", "latency_ms"],
        typer.Option("--size", help="The measure of size."),
    ] = "parameters",
    test: Annotated[
        Literal["auto", "corrected-t", "signed-rank", "rank-sum"],
        typer.Option(
            "--test",
            help="The statistical test; auto is the corrected t-test for folds and the rank-sum test for seeds.",
        ),
    ] = "auto",
) -> None:
    """Show the results of a study: means, spreads, tests against a baseline, the Pareto front.

    Example: topiarist study results sizes --margin 0.01
    """
    from topiarist.errors import SettingsError
    from topiarist.files import check_place
    from topiarist.study.ledger import FILE as LEDGER
    from topiarist.study.ledger import SIDE_FILES
    from topiarist.study.lock import FILE as LOCK
    from topiarist.study.results import Results

    if out is not None and form is None:
        raise SettingsError("--out belongs to a table for programs: name its form with --format")
    if out is not None:
        check_place(out, inputs=[folder / name for name in (LEDGER, *SIDE_FILES, LOCK, "histories", "models")])
    results = Results.read(folder)
    if form is None:
        show_results(results, metric=metric or results.primary, baseline=baseline, margin=margin, size=size, test=test)
        return
    frame = {
        "summary": lambda: results.summary(metric),
        "cells": lambda: results.cells,
        "tests": lambda: results.compare(baseline, metric, test=test),
        "front": lambda: results.front(metric, sizes=[size]).table,
    }[table]()
    write_table(
        frame, form, caption=f"{results.facts.get('declaration', {}).get('name', folder.name)}: {table}", out=out
    )


def write_table(frame: Any, form: Any, *, caption: str, out: Path | None) -> None:
    """Write a table to a file or to standard output."""
    from topiarist.errors import SettingsError
    from topiarist.files import write_atomically
    from topiarist.report import format_table

    content = format_table(frame, form, caption=caption)
    if out is not None:
        write_atomically(out, content)
    elif form == "parquet":
        raise SettingsError("a parquet table cannot be printed: name a file with --out")
    else:
        say_table(content.decode())


def drive(
    study: "Study",
    out: Path,
    *,
    workers: int | None,
    cluster: str | None,
    device: str | None,
    retry_failed: bool,
    as_json: bool,
) -> None:
    """Run a study with a bar; an interruption prints how to resume."""
    from topiarist.study.ledger import FILE as LEDGER

    try:
        with ended_by_signals(), study_bar(study.name) as on_progress:
            how: dict[str, Any] = {"workers": workers, "cluster": cluster, "device": device}
            study.run(out, **how, retry_failed=retry_failed, on_progress=on_progress)
    except KeyboardInterrupt:
        known = (out / LEDGER).exists()
        hint = f"resume with `topiarist study resume {out}`" if known else "nothing was written"
        raise InterruptionError(f"interrupted: {hint}") from None
    emit(status_of(out), as_json=as_json, show=show_status)
