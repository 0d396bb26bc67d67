"""`topiarist reproduce`: the published systems as ready-made studies."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from topiarist.cli.derived import derive, naming, with_options
from topiarist.cli.options import DATA_FORMS, AsJson, Cluster, Device, Seed, Target, Workers
from topiarist.cli.output import InterruptionError, console, count_bar, emit, say
from topiarist.cli.study_output import ended_by_signals, study_bar
from topiarist.errors import SettingsError
from topiarist.files import JsonObject, check_folder
from topiarist.reproductions.faces.options import FaceImageOptions
from topiarist.reproductions.scenes.options import ScenesMixing, ScenesOptions, ScenesPruning
from topiarist.reproductions.surgeon.options import SurgeonScope

app = typer.Typer(help="Run a published system as a ready-made study.", no_args_is_help=True)

OWN = "Options"  # the panel of a command's own options
IMAGES = derive(FaceImageOptions, "A folder of images", spelled={"copies": "--augment"})
SCENES = derive(ScenesOptions, OWN, only=("runs", "epochs", "folds"))
PRUNING = derive(
    ScenesPruning,
    "Pruning: s = s_f + (s_i − s_f)(1 − (t − t₀)/(nΔt))³",
    only=("initial_sparsity", "sparsity", "begin", "every", "times"),
    spelled={
        "sparsity": "--final-sparsity",
        "begin": "--prune-from",
        "every": "--prune-every",
        "times": "--prune-times",
    },
)
MIXING = derive(ScenesMixing, "Block mixing", spelled={"on": "--mix-on"})
ENSEMBLE = derive(ScenesOptions, "The ensemble", only=("vgg_members", "inception_members", "inception_norms"))
SURGEON = derive(SurgeonScope, OWN, spelled={"topologies": "--topology"})


@app.callback()
def published_systems() -> None:
    """Run a published system as a ready-made study."""


@contextmanager
def resumable() -> Iterator[None]:
    """Print one line on Ctrl-C and on a signal to stop: how to resume."""
    with ended_by_signals():
        try:
            yield
        except KeyboardInterrupt:
            raise InterruptionError("interrupted: run the same command again to resume") from None


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
    device: Device = None,
    as_json: AsJson = False,
) -> None:
    """Compare every good practice of training with its alternatives, with tests, curves and a table.

    Example: topiarist reproduce practices --quick --out practices
    """
    from topiarist.reproductions.practices.reproduce import reproduce_practices

    check_folder(out, ("index.html",), inputs=(data,))
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
            device=device,
            on_progress=on_progress,
        )
    emit(found, as_json=as_json, show=show_findings)


@app.command("faces")
@with_options(IMAGES)
def faces_command(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where page, tables, figures and ledger go.")],
    data: Annotated[
        Path | None,
        typer.Option("--data", help="The .xlsx of descriptors, or a folder of images; a stand-in unless given."),
    ] = None,
    target: Target = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer folds, sizes and angles: a first look.")] = False,
    seed: Seed = 0,
    workers: Workers = None,
    cluster: Cluster = None,
    device: Device = None,
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Reproduce distinctiveness and genetic pruning of networks that tell expressions apart, and add ours.

    Example: topiarist reproduce faces --quick --out faces
    """
    from topiarist.reproductions.faces.reproduce import reproduce_faces

    check_folder(out, ("index.html",), inputs=() if data is None else (data,))
    images = IMAGES.make(options)
    given = [*IMAGES.given(options), *([] if target is None else ["--target"])]
    if given and (data is None or data.is_file()):
        belongs = "belongs" if len(given) == 1 else "belong"
        raise SettingsError(f"{' and '.join(given)} {belongs} to a folder of images: name it with --data")
    with resumable(), count_bar("images") as on_image, study_bar("faces") as on_progress:
        found = reproduce_faces(
            out,
            location=data,
            target=target,
            images=images,
            quick=quick,
            seed=seed,
            workers=workers,
            cluster=cluster,
            device=device,
            on_image=on_image,
            on_progress=on_progress,
        )
    emit(found, as_json=as_json, show=show_found)


@app.command("scenes")
@with_options(SCENES, PRUNING, MIXING, ENSEMBLE)
def scenes_command(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where page, tables, figures and networks go.")],
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            help="The challenge's folder (audio/, meta.csv, evaluation_setup/), or one with one folder per class;"
            " synthesised scenes unless given.",
        ),
    ] = None,
    target: Target = None,
    quick: Annotated[bool, typer.Option("--quick", help="Two seconds of few clips, few epochs: a first look.")] = False,
    seed: Seed = 0,
    workers: Workers = None,
    cluster: Cluster = None,
    device: Device = None,
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Reproduce pruning while training for small ensembles that tell acoustic scenes apart, and add ours.

    Example: topiarist reproduce scenes --quick --out scenes
    """
    from topiarist.reproductions.scenes.reproduce import reproduce_scenes
    from topiarist.reproductions.scenes.study import FULL, QUICK

    check_folder(out, ("index.html",), inputs=() if data is None else (data,))
    scope = QUICK if quick else FULL
    prune, mixing = PRUNING.change(scope.prune, options), MIXING.change(scope.mixing, options)
    with naming(SCENES.names):
        scope = scope.changed(**SCENES.values(options), **ENSEMBLE.values(options), prune=prune, mixing=mixing)
    with resumable(), count_bar("clips") as on_clip:
        found = reproduce_scenes(
            out,
            location=data,
            target=target,
            scope=scope,
            seed=seed,
            workers=workers,
            cluster=cluster,
            device=device,
            on_clip=on_clip,
            watch=study_bar,
        )
    emit(found, as_json=as_json, show=show_found)


@app.command("surgeon")
@with_options(SURGEON)
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
    quick: Annotated[bool, typer.Option("--quick", help="Few epochs, samples and seeds: a first look.")] = False,
    seed: Seed = 0,
    workers: Workers = None,
    cluster: Cluster = None,
    device: Device = None,
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Reproduce training with topology optimisation, the Surgeon, against plain training, and add ours.

    Example: topiarist reproduce surgeon --quick --out surgeon
    """
    from topiarist.reproductions.surgeon.options import FULL, QUICK
    from topiarist.reproductions.surgeon.reproduce import reproduce_surgeon

    check_folder(out, ("index.html",), inputs=[place.rpartition("=")[2] for place in data or ()])
    scope = SURGEON.change(QUICK if quick else FULL, options)
    if scope.paper_seeds and "--seeds" in SURGEON.given(options):
        raise SettingsError("--seeds has no effect with --paper-seeds, which runs 5 seeds 3 times each")
    with resumable(), count_bar("networks") as on_run:
        found = reproduce_surgeon(
            out, data=data or (), scope=scope, seed=seed, workers=workers, cluster=cluster, device=device, on_run=on_run
        )
    emit(found, as_json=as_json, show=show_found)


def show_found(found: JsonObject) -> None:
    """Print the results, and where the files are."""
    for note in found["notes"]:
        say(note)
    say(found["summary"])
    show_failures(found)
    say(f"page: {found['page']}  tables: {found['tables']}  figures: {found['figures']}")


def show_failures(found: JsonObject) -> None:
    """Print how many cells failed, and the command that shows why."""
    for folder in found["failed_in"]:
        say(f"{found['failed']} cells failed: topiarist study status {folder}")


def show_findings(found: JsonObject) -> None:
    """Print what helped and what hurt, and where the files are."""
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
