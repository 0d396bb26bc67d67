"""`topiarist reproduce`: the published systems as ready-made studies."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from topiarist.cli import scenes_options as scenes
from topiarist.cli.options import DATA_FORMS, AsJson, Cluster, Seed, Target, Workers
from topiarist.cli.output import InterruptionError, console, count_bar, emit
from topiarist.cli.study_output import ended_by_signals, study_bar

app = typer.Typer(help="Run a published system as a ready-made study.", no_args_is_help=True)


@app.callback()
def published_systems() -> None:
    """Run a published system as a ready-made study."""


@contextmanager
def resumable() -> Iterator[None]:
    """End with one line on Ctrl-C and on a signal to stop, and say how to go on."""
    with ended_by_signals():
        try:
            yield
        except KeyboardInterrupt:
            raise InterruptionError("interrupted: run the same command again to go on") from None


@app.command("practices")
def practices_command(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where page, table, figures and ledger go.")],
    data: Annotated[str, typer.Option("--data", metavar="DATA", help=f"digits unless given. {DATA_FORMS}")] = "digits",
    target: Target = None,
    samples: Annotated[
        int | None,
        typer.Option("--samples", min=2, help="Training samples at most; 10,000, or 2,000 with --quick, unless given."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer epochs and samples: a first look.")] = False,
    seed: Seed = 0,
    workers: Workers = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Compare every good practice of training with its alternatives, with tests, curves and a table.

    Example: topiarist reproduce practices --quick --out practices
    """
    from topiarist.reproductions.practices.reproduce import reproduce_practices

    with resumable(), study_bar("practices") as on_progress:
        found = reproduce_practices(
            out,
            location=data,
            target=target,
            samples=samples,
            quick=quick,
            seed=seed,
            workers=workers,
            cluster=cluster,
            on_progress=on_progress,
        )
    emit(found, as_json=as_json, show=show_findings)


@app.command("faces")
def faces_command(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where page, tables, figures and ledger go.")],
    data: Annotated[
        Path | None,
        typer.Option("--data", help="The .xlsx of descriptors, or a folder of pictures; a stand-in unless given."),
    ] = None,
    target: Target = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer folds, sizes and angles: a first look.")] = False,
    align: Annotated[bool, typer.Option("--align", help="Level pictures by the eyes before the crop.")] = False,
    augment: Annotated[
        int, typer.Option("--augment", min=0, metavar="COPIES", help="Changed copies of each picture, for training.")
    ] = 0,
    missing: Annotated[
        Literal["whole", "skip"],
        typer.Option("--missing", help="Where no face is found: take the whole picture, or leave it out."),
    ] = "whole",
    seed: Seed = 0,
    workers: Workers = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Reproduce distinctiveness and genetic pruning of networks that tell expressions apart, and add ours.

    Example: topiarist reproduce faces --quick --out faces
    """
    from topiarist.errors import SettingsError
    from topiarist.reproductions.faces.data import FaceImageOptions
    from topiarist.reproductions.faces.reproduce import reproduce_faces

    images = FaceImageOptions(align=align, missing=missing, copies=augment)
    if (images != FaceImageOptions() or target is not None) and (data is None or data.is_file()):
        raise SettingsError(
            "--align, --augment, --missing and --target belong to a folder of pictures: name it with --data"
        )
    with resumable(), count_bar("pictures") as on_image, study_bar("faces") as on_progress:
        found = reproduce_faces(
            out,
            location=data,
            target=target,
            images=images,
            quick=quick,
            seed=seed,
            workers=workers,
            cluster=cluster,
            on_image=on_image,
            on_progress=on_progress,
        )
    emit(found, as_json=as_json, show=show_found)


@app.command("scenes")
def scenes_command(
    context: typer.Context,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where page, tables, figures and networks go.")],
    data: scenes.Recordings = None,
    target: Target = None,
    folds: scenes.Folds = None,
    runs: scenes.Runs = None,
    epochs: scenes.Epochs = None,
    initial_sparsity: scenes.InitialSparsity = None,
    final_sparsity: scenes.FinalSparsity = None,
    prune_from: scenes.PruneFrom = None,
    prune_every: scenes.PruneEvery = None,
    prune_times: scenes.PruneTimes = None,
    pieces: scenes.Pieces = None,
    within: scenes.Within = None,
    mix_on: scenes.MixOn = None,
    vgg_members: scenes.VggMembers = None,
    inception_members: scenes.InceptionMembers = None,
    inception_norms: scenes.InceptionNorms = False,
    quick: Annotated[bool, typer.Option("--quick", help="Two seconds of few clips, few epochs: a first look.")] = False,
    seed: Seed = 0,
    workers: Workers = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Reproduce pruning while training for small ensembles that tell acoustic scenes apart, and add ours.

    Example: topiarist reproduce scenes --quick --out scenes
    """
    from topiarist.reproductions.scenes.reproduce import reproduce_scenes

    scope = scenes.scope_of(context.params)
    with resumable(), count_bar("clips") as on_clip:
        found = reproduce_scenes(
            out,
            location=data,
            target=target,
            scope=scope,
            seed=seed,
            workers=workers,
            cluster=cluster,
            on_clip=on_clip,
            watch=study_bar,
        )
    emit(found, as_json=as_json, show=show_found)


@app.command("surgeon")
def surgeon_command(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where page, tables, figures and networks go.")],
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            metavar="[NAME=]DATA",
            help="Repeatable; digits as a stand-in unless given. What is called SVHN, CIFAR-10, CIFAR-100, EuroSAT,"
            f" EMNIST or Fashion-MNIST is compared with the paper's row. {DATA_FORMS}",
        ),
    ] = None,
    topology: Annotated[
        list[str] | None,
        typer.Option(
            "--topology",
            metavar="[small|medium|large]",
            help="Repeatable; 10, 10-10-10 or 300-100-100 hidden units.  [default: all]",
        ),
    ] = None,
    setting: Annotated[
        Literal["published", "ours", "both"],
        typer.Option("--setting", help="The Surgeon of the paper, or ours, each with its own training."),
    ] = "both",
    seeds: Annotated[int | None, typer.Option("--seeds", min=1, help="Runs of each network.  [default: 5]")] = None,
    epochs: Annotated[
        int | None, typer.Option("--epochs", min=1, help="Of every training.  [default: those of each setting]")
    ] = None,
    samples: Annotated[
        int | None, typer.Option("--samples", min=2, help="Training samples at most; all unless given.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few epochs, samples and seeds: a first look.")] = False,
    paper_seeds: Annotated[
        bool, typer.Option("--paper-seeds", help="The paper's seeds 6, 63, 72, 77 and 97, three runs of each.")
    ] = False,
    seed: Seed = 0,
    workers: Workers = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Reproduce training with topology optimisation, the Surgeon, against plain training, and add ours.

    Example: topiarist reproduce surgeon --quick --out surgeon
    """
    from topiarist.errors import SettingsError
    from topiarist.reproductions.surgeon.reproduce import reproduce_surgeon
    from topiarist.reproductions.surgeon.study import FULL, QUICK, topologies_named

    if paper_seeds and seeds is not None:
        raise SettingsError("--seeds has no effect with --paper-seeds, which runs 5 seeds 3 times each")
    scope = (QUICK if quick else FULL).changed(
        seeds=seeds,
        epochs=epochs,
        samples=samples,
        topologies=topologies_named(topology or ()),
        settings=None if setting == "both" else (setting,),
        paper_seeds=paper_seeds,
    )
    with resumable(), count_bar("networks") as on_run:
        found = reproduce_surgeon(
            out,
            data=data or (),
            scope=scope,
            seed=seed,
            workers=workers,
            cluster=cluster,
            on_run=on_run,
        )
    emit(found, as_json=as_json, show=show_found)


def show_found(found: Mapping[str, Any]) -> None:
    """Print what came out, and where the rest is."""
    for note in found["notes"]:
        typer.echo(note)
    typer.echo(found["summary"])
    show_failures(found)
    typer.echo(f"page: {found['page']}  tables: {found['tables']}  figures: {found['figures']}")


def show_failures(found: Mapping[str, Any]) -> None:
    """Say how many cells failed, and what tells why."""
    for folder in found["failed_in"]:
        typer.echo(f"{found['failed']} cells failed: topiarist study status {folder}")


def show_findings(found: Mapping[str, Any]) -> None:
    """Print the paper's claims with their verdicts, what helped and what hurt, and where the rest is."""
    from rich.table import Table
    from rich.text import Text

    from topiarist.report.cells import signed

    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("practice", "alternative", "difference", "p (Holm)", "verdict"):
        table.add_column(column, justify="right" if column in ("difference", "p (Holm)") else "left")
    for row in found["findings"]:
        if row["verdict"] in ("helped", "hurt"):
            points = row["metric"] == "accuracy"
            difference = (
                f"{signed(100 * row['difference'], 2)} points" if points else f"{signed(row['difference'], 4)} log loss"
            )
            style = "" if row["verdict"] == "helped" else "dim"
            cells = (row["practice"], row["alternative"], difference, f"{row['p']:.4f}", row["verdict"])
            table.add_row(*(Text(cell, style=style) for cell in cells))
    screen = console()
    screen.print(Text(found["summary"]))
    screen.print(table)
    show_failures(found)
    screen.print(Text(f"page: {found['page']}  table: {found['table']}  figures: {found['figures']}"))
