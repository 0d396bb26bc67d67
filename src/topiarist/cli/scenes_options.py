"""The options of `topiarist reproduce scenes`, in panels: how much is run, pruning, mixing, the ensemble."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from topiarist.cli.derived import naming

if TYPE_CHECKING:
    from topiarist.reproductions.scenes.study import ScenesScope

PRUNING, MIXING, ENSEMBLE = "Pruning: s = s_f + (s_i − s_f)(1 − (t − t₀)/(nΔt))³", "Block mixing", "The ensemble"

Recordings = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="The challenge's folder (audio/, meta.csv, evaluation_setup/), or one with one folder per class;"
        " synthesised scenes unless given.",
    ),
]
Folds = Annotated[
    int | None,
    typer.Option(
        "--folds",
        min=2,
        help="Cross-validate, whole cities together; only the training part, where there is a test part.",
    ),
]
Runs = Annotated[int | None, typer.Option("--runs", min=1, help="Ensembles to train.  [default: 10]")]
Epochs = Annotated[int | None, typer.Option("--epochs", min=4, help="Of every training.  [default: 400]")]

InitialSparsity = Annotated[
    float | None,
    typer.Option(
        "--initial-sparsity", rich_help_panel=PRUNING, help="s_i: zeros after the first pruning.  [default: 0.1]"
    ),
]
FinalSparsity = Annotated[
    float | None,
    typer.Option("--final-sparsity", rich_help_panel=PRUNING, help="s_f: zeros at the end.  [default: 0.8]"),
]
PruneFrom = Annotated[
    int | None,
    typer.Option(
        "--prune-from",
        min=0,
        metavar="EPOCH",
        rich_help_panel=PRUNING,
        help="t₀: prune first after so many epochs.  [default: a quarter of them; a tenth with --quick]",
    ),
]
PruneEvery = Annotated[
    int | None,
    typer.Option(
        "--prune-every",
        min=1,
        metavar="EPOCHS",
        rich_help_panel=PRUNING,
        help="Δt: epochs from one pruning to the next.  [default: a fortieth of them; 1 with --quick]",
    ),
]
PruneTimes = Annotated[
    int | None,
    typer.Option(
        "--prune-times",
        min=0,
        metavar="N",
        rich_help_panel=PRUNING,
        help="n: prune so many times after the first.  "
        " [default: up to three quarters of the epochs; half with --quick]",
    ),
]

Pieces = Annotated[
    int | None,
    typer.Option("--pieces", min=1, rich_help_panel=MIXING, help="Pieces of a mixture, of Model 4.  [default: 10]"),
]
Within = Annotated[
    Literal["coarse", "fine"] | None,
    typer.Option("--within", rich_help_panel=MIXING, help="Mix within this class, of Model 4.  [default: coarse]"),
]
MixOn = Annotated[
    Literal["waveform", "spectrogram"] | None,
    typer.Option(
        "--mix-on",
        rich_help_panel=MIXING,
        help="Join pieces of sound, as published, or of spectrograms.  [default: waveform]",
    ),
]

VggMembers = Annotated[
    int | None,
    typer.Option("--vgg-members", min=0, rich_help_panel=ENSEMBLE, help="V(2,2,3,3) of an ensemble.  [default: 5]"),
]
InceptionMembers = Annotated[
    int | None,
    typer.Option("--inception-members", min=0, rich_help_panel=ENSEMBLE, help="I(2,1,2) of an ensemble.  [default: 1]"),
]
InceptionNorms = Annotated[
    bool,
    typer.Option(
        "--inception-norms",
        rich_help_panel=ENSEMBLE,
        help="Batch norm in the blocks of I, which the paper leaves out: pruned in few steps, it then loses little.",
    ),
]

PRUNING_OPTIONS = {
    "initial_sparsity": "--initial-sparsity",
    "sparsity": "--final-sparsity",
    "begin": "--prune-from",
    "every": "--prune-every",
    "times": "--prune-times",
}
SAME_NAME = ("epochs", "runs", "folds", "vgg_members", "inception_members", "inception_norms")


def scope_of(options: Mapping[str, Any]) -> "ScenesScope":
    """Return what the options of the command ask for; a bad one is refused by its name."""
    from topiarist.reproductions.scenes.study import FULL, QUICK

    prune = {name: options[option[2:].replace("-", "_")] for name, option in PRUNING_OPTIONS.items()}
    mixing = {"pieces": options["pieces"], "within": options["within"], "on": options["mix_on"]}
    with naming(PRUNING_OPTIONS):
        return (QUICK if options["quick"] else FULL).changed(
            prune=prune,
            mixing=mixing,
            **{name: options[name] for name in SAME_NAME},
        )
