"""`topiarist rightsize`: from data and a budget to a small, proven, deployable network."""

import shlex
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from topiarist.cli.derived import with_options
from topiarist.cli.options import (
    BUDGET,
    AsJson,
    Category,
    Cluster,
    DataLocation,
    Date,
    Device,
    Drop,
    Group,
    InputShape,
    Into,
    MetricOption,
    Number,
    Scaling,
    Seed,
    Target,
    TaskOption,
    Weight,
    Workers,
    column_choices,
    parse_shape,
)
from topiarist.cli.output import console, emit, print_rows, say, share_bar
from topiarist.errors import SettingsError, TopiaristWarning

if TYPE_CHECKING:
    from topiarist.rightsizing import RightsizingRecord

NOTHING_FITS = 3


@with_options(BUDGET)
def rightsize_command(
    data: DataLocation,
    target: Target = None,
    group: Group = None,
    weight: Weight = None,
    task: TaskOption = None,
    metric: MetricOption = None,
    each: Annotated[
        bool,
        typer.Option("--each", help="Test each of several targets or labels by itself too, with Holm's correction."),
    ] = False,
    drop: Drop = None,
    category: Category = None,
    number: Number = None,
    date: Date = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="FILE|MODULE:FUNCTION",
            help="A network to start from: a .safetensors file, or code that builds one.  [default: one that suits]",
        ),
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option(
            "--base",
            help="A pretrained network (.safetensors, such as `topiarist train` writes): every baseline starts from its"
            " layers, with a new last one. Images are resized to what it reads; your own network needs --into.",
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
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            metavar="NAMES",
            help="The methods that make candidates, separated by commas; `topiarist resize` lists them."
            "  [default: one of each kind]",
        ),
    ] = None,
    effort: Annotated[
        Literal["quick", "normal", "thorough"],
        typer.Option(
            "--effort",
            help="A declared amount of work: about 1 minute, 10 minutes or 1 hour on one core. The report says what it"
            " leaves out of large data and networks.",
        ),
    ] = "quick",
    teacher: Annotated[
        Literal["baselines", "ensemble", "boosting", "both"] | None,
        typer.Option(
            "--teacher",
            help="Who teaches the networks of a table: the baselines, other networks, gradient boosting, or the best"
            " blend of all three.  [default: both, without --model]",
        ),
    ] = None,
    objective: Annotated[
        Literal["parameters", "macs", "file", "latency"] | None,
        typer.Option(
            "--objective",
            help="What is to become smaller.  [default: parameters and multiply-accumulates both]",
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            min=1,
            metavar="SECONDS",
            help="End the search then, with what is tested; the report says what that cost."
            "  [default: no clock decides]",
        ),
    ] = None,
    input_shape: InputShape = None,
    scaling: Scaling = None,
    samples: Annotated[
        int | None, typer.Option("--samples", min=2, help="Train on so many samples at most, drawn by the seed.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="The folder for report, networks and ONNX file.")] = Path(
        "rightsized"
    ),
    workers: Workers = None,
    cluster: Cluster = None,
    onnx: Annotated[bool, typer.Option("--onnx/--no-onnx", help="Whether to export the network as ONNX.")] = True,
    device: Device = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Find the smallest network that is not worse than the baseline, prove it, save, export and report it.

    Example: topiarist rightsize digits --effort quick

    A table: topiarist rightsize flowers.csv --target species

    A network of yours: topiarist rightsize images/ --model networks:make --budget 100kB --max-latency 2ms

    From a pretrained one: topiarist rightsize images/ --base resnet.safetensors --into networks:resnet

    Numbers or labels: topiarist rightsize homes.csv --target price, or --target red,round,ripe

    Killed or stopped on the way, the same command resumes: finished stages are in OUT.work until all is delivered.

    Exit code 3: no network fits the budget and loses no more than --max-drop (0.01 of the accuracy, 2 % of the RMSE of
    numbers, 0.01 of the ROC AUC of labels); the nearest are listed.
    """
    from dataclasses import replace

    from topiarist.cli.starting import task_and_start
    from topiarist.data import LazySamples
    from topiarist.devices import find_device
    from topiarist.files import check_folder, delivering
    from topiarist.memory import map_large_blocks
    from topiarist.methods import find_method
    from topiarist.report.writing import PAGE_FILE, RECORD_FILE, write_report
    from topiarist.rightsizing import EFFORTS, UnreachableError, rightsize
    from topiarist.rightsizing.delivery import BASELINE_FILE, MODEL_FILE, ONNX_FILE, deliver
    from topiarist.rightsizing.stages import working_in
    from topiarist.storage.trial import compared_alone

    files = (MODEL_FILE, BASELINE_FILE, ONNX_FILE, RECORD_FILE, PAGE_FILE)
    check_folder(out, files, inputs=(data, *(() if model is None else (model,)), *(() if base is None else (base,))))
    asked = None if methods is None else [name.strip() for name in methods.split(",")]
    for name in asked or ():
        find_method(name, setting="--methods")
    budget = BUDGET.make(options)
    if device is not None:
        find_device(device)
    if budget.max_drop == 0:
        raise SettingsError("--max-drop must be above 0: no number of samples can prove that nothing at all is lost")
    how: dict[str, Any] = {"target": target, "group": group, "weight": weight, "task": task}
    how |= {"seed": seed, "samples": samples, "scaling": scaling}
    how |= {"input_shape": parse_shape(input_shape), "columns": column_choices(drop, category, number, date)}
    found_data, start = task_and_start(data, model, into, how, trained=trained, base=base)
    asked_data = found_data.with_metric(metric)
    if len(asked_data.input_shape) == 1 and isinstance(getattr(asked_data.train, "samples", None), LazySamples):
        map_large_blocks()  # those of boosting; training on flat samples takes small ones alone
    if not as_json:
        mantissa, exponent = f"{EFFORTS[effort].work:.0e}".split("e+")
        work = f"{mantissa} × 10^{exponent}"
        say(f"{effort}: at most {work} multiply-accumulates of work on {asked_data.name}; see --effort", err=True)
    try:
        with share_bar(f"rightsizing {asked_data.name}") as tell, working_in(work_folder_of(out)) as stages:
            stages.on_resume = lambda finished: say(resumption_words(finished, work_folder_of(out)), err=True)
            try:
                found = rightsize(
                    asked_data,
                    start,
                    budget=budget,
                    each=each,
                    methods=asked,
                    effort=effort,
                    objective=objective,
                    trained=trained,
                    teacher=teacher,
                    seed=seed,
                    device=device,
                    time_limit=time_limit,
                    workers=workers,
                    cluster=cluster,
                    work_folder=stages,
                    on_progress=tell,
                )
            except UnreachableError:
                stages.remove()
                raise
            del asked_data, found_data  # large ones are not needed any more, and what exports networks is large too
            found = replace(found, data=compared_alone(found.data))
            with delivering(out) as folder:  # networks, record and page appear together
                record = deliver(found, folder, onnx=onnx).with_command(shlex.join(["topiarist", *sys.argv[1:]]))
                page = out / write_report(record, folder).name
            stages.remove()
    except UnreachableError as error:
        show_nearest(error.record, as_json=as_json)
        raise typer.Exit(NOTHING_FITS) from error
    for note in record.notes:
        warnings.warn(note, TopiaristWarning, stacklevel=1)
    summary = {**record.to_json(), "out": str(out), "report": str(page)}
    emit(summary, as_json=as_json, show=lambda _: show_record(record, out, page))


def resumption_words(finished: int, folder: Path) -> str:
    """Return that an earlier run is taken up, and how far that came."""
    done = "1 finished stage" if finished == 1 else f"{finished} finished stages"
    return f"resuming: {done} in {folder}"


def work_folder_of(out: Path) -> Path:
    """Return the folder beside the results that keeps finished stages until they are delivered."""
    place = out.resolve()
    return place.with_name(f"{place.name}.work")


def show_record(record: "RightsizingRecord", out: Path, page: Path) -> None:
    """Print the sentence, the sizes that were tried, and where everything is."""
    from rich.table import Table

    from topiarist.rightsizing.listing import tested_rows

    say(record.verdict.sentence + "\n")
    table, rows = Table(box=None, pad_edge=False), tested_rows(record)
    for name in rows[0]:
        table.add_column(name, justify="left" if name in ("network", "made by", "") else "right")
    for row in rows:
        table.add_row(*row.values())
    console().print(table)
    say("\n" + "; ".join((f"{record.metric.title} over {record.plan.folds} folds", *record.verdict.why)) + "\n")
    files = {"report": str(page), "model": str(out / (record.exports.model or ""))}
    if record.exports.linear is not None:
        files["linear"] = str(out / record.exports.linear)
    if record.exports.onnx is not None:
        files["ONNX"] = str(out / record.exports.onnx)
    print_rows(files)


def show_nearest(record: "RightsizingRecord", *, as_json: bool) -> None:
    """Print that nothing fits, and what comes nearest."""
    say(f"topiarist: {record.verdict.sentence}", err=True)
    for near in record.nearest:
        say(f"  {near.id}: {near.text}", err=True)
    if as_json:
        emit(record.to_json(), as_json=True, show=print)
