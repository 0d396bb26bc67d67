"""The options of `topiarist shape`, in panels: the methods, the budget, training after the cut."""

from pathlib import Path
from typing import Annotated, Literal

import typer

DISTINCTIVENESS, GENETIC, MAGNITUDE = "Distinctiveness", "Genetic", "Magnitude: pruning while training"
SURGEON = "Surgeon: training and changing on the way"
BUDGET, AFTER = "The budget", "After the cut, or during it"

Method = Annotated[
    Literal["distinctiveness", "genetic", "genetic-front", "magnitude", "factorisation", "surgeon"],
    typer.Option("--method", help="What decides."),
]
Published = Annotated[bool, typer.Option("--published", help="As the method's paper has it, to the letter.")]
Out = Annotated[Path | None, typer.Option("--out", help="Where to save the network (.safetensors).")]
Space = Annotated[
    list[str] | None,
    typer.Option("--space", help="Cut only this space of units, such as hidden0; once a space.  [default: all]"),
]
Rounds = Annotated[
    int,
    typer.Option(
        "--rounds", min=1, rich_help_panel=DISTINCTIVENESS, help="Cut in so many steps, with training between."
    ),
]
MultipleOf = Annotated[
    int,
    typer.Option("--multiple-of", min=1, rich_help_panel=DISTINCTIVENESS, help="Keep widths to multiples of this."),
]

Angle = Annotated[
    float | None,
    typer.Option("--angle", rich_help_panel=DISTINCTIVENESS, help="Units nearer than this to others go: 0 to 90°."),
]
Keep = Annotated[
    float | None,
    typer.Option(
        "--keep",
        rich_help_panel=DISTINCTIVENESS,
        help="Fraction of the units of each layer that stays; factorisation: of its squared singular values"
        "  [default there: 0.95].",
    ),
]
Pairs = Annotated[
    Literal["in order", "most similar first", "all at once"],
    typer.Option("--pairs", rich_help_panel=DISTINCTIVENESS, help="Published: in which order pairs are visited."),
]

Penalty = Annotated[
    float, typer.Option("--penalty", rich_help_panel=GENETIC, help="λ: what size costs beside accuracy.")
]
Fitness = Annotated[
    Literal["relative", "absolute", "refitted"],
    typer.Option(
        "--fitness",
        rich_help_panel=GENETIC,
        help="Accuracy minus λ times the share of units (relative), or their number (absolute); refitted: the latter, "
        "with the last layer refitted to each subset, which ends at much the same size from any start.",
    ),
]
Population = Annotated[int, typer.Option("--population", min=2, rich_help_panel=GENETIC, help="Individuals.")]
JudgedOn = Annotated[
    Literal["held-out", "training"],
    typer.Option("--judged-on", rich_help_panel=GENETIC, help="Validation samples, or those of training."),
]
Generations = Annotated[
    int | None,
    typer.Option(
        "--generations",
        min=1,
        rich_help_panel=GENETIC,
        help="At most so many.  [default: 50, of the front 100]",
    ),
]

Sparsity = Annotated[
    float | None,
    typer.Option("--sparsity", rich_help_panel=MAGNITUDE, help="Fraction of the weights that goes.  [default: 0.8]"),
]
Bits = Annotated[
    Literal["32", "16", "8"],
    typer.Option("--bits", rich_help_panel=MAGNITUDE, help="Of a weight in the packed file that is saved."),
]
Units = Annotated[
    bool, typer.Option("--units", rich_help_panel=MAGNITUDE, help="Whole units go, in the place of single weights.")
]
PruningSchedule = Annotated[
    Literal["polynomial", "linear", "constant", "one-shot"],
    typer.Option("--schedule", rich_help_panel=MAGNITUDE, help="How weights go over the epochs."),
]
Scope = Annotated[
    Literal["layer", "global"],
    typer.Option("--scope", rich_help_panel=MAGNITUDE, help="The same fraction of each layer, or ranked together."),
]
WeightScore = Annotated[
    Literal["magnitude", "taylor", "movement"],
    typer.Option("--score", rich_help_panel=MAGNITUDE, help="By |w|, by |w · gradient|, or by how w moves."),
]
Pattern = Annotated[
    str | None,
    typer.Option("--pattern", metavar="N:M", rich_help_panel=MAGNITUDE, help="2:4 makes 2 of every 4 weights zero."),
]

Aim = Annotated[
    str | None,
    typer.Option(
        "--aim",
        metavar="AIM",
        rich_help_panel=SURGEON,
        help="better, balanced or smaller; or what the mean chance of the true class must gain for twice the"
        " parameters, such as 0.003."
        "  [default: balanced]",
    ),
]
Kind = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        rich_help_panel=SURGEON,
        help="A change to try, once a kind: renew, grow, widen, deepen, remove, fold, factorise."
        "  [default: all but widen and deepen]",
    ),
]
Interval = Annotated[
    int | None,
    typer.Option(
        "--interval",
        min=1,
        metavar="EPOCHS",
        rich_help_panel=SURGEON,
        help="Between decisions.  [default: a 20th of the epochs; published 10]",
    ),
]
MaxGrowth = Annotated[
    int | None,
    typer.Option(
        "--max-growth",
        min=1,
        metavar="TIMES",
        rich_help_panel=SURGEON,
        help="How many times its width a layer may have after the race of widths.  [default: 8]",
    ),
]
StopAt = Annotated[
    float | None,
    typer.Option(
        "--stop-at",
        metavar="ACCURACY",
        rich_help_panel=SURGEON,
        help="Stop training at this accuracy on the validation part: 0.9.",
    ),
]
Paper = Annotated[
    list[str] | None,
    typer.Option(
        "--paper",
        metavar="NAME=VALUE",
        rich_help_panel=SURGEON,
        help="With --published, repeatable: initial (epochs), branches, redraws, batches, relative_floor,"
        " absolute_floor, top (so many edits of all kinds together), memory (none, cycle or lineage).",
    ),
]
Epochs = Annotated[
    int | None,
    typer.Option(
        "--epochs",
        min=1,
        rich_help_panel=SURGEON,
        help="Of the whole training.  [default: 50; published 100]",
    ),
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        "--batch", "--batch-size", min=1, rich_help_panel=SURGEON, help="Samples a step of it.  [default: 16]"
    ),
]
LearningRate = Annotated[
    float | None,
    typer.Option(
        "--lr",
        "--learning-rate",
        rich_help_panel=SURGEON,
        help="Initial rate of it.  [default: 0.001, falling by a cosine; published 0.005]",
    ),
]
SideBySide = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        rich_help_panel=SURGEON,
        help="Processes that train what competes side by side; they change no result.  [default: 1]",
    ),
]
RecommendOnly = Annotated[
    bool,
    typer.Option(
        "--recommend-only",
        rich_help_panel=SURGEON,
        help="Print what the network and training samples say of its widths and its depth; change and write nothing.",
    ),
]

Size = Annotated[
    str | None, typer.Option("--budget", metavar="SIZE", rich_help_panel=BUDGET, help="File size: 500kB, 1.5MB.")
]
MaxParameters = Annotated[
    int | None, typer.Option("--max-parameters", min=1, rich_help_panel=BUDGET, help="At most so many parameters.")
]
MaxMacs = Annotated[
    int | None, typer.Option("--max-macs", min=1, rich_help_panel=BUDGET, help="Multiply-accumulates a sample.")
]
MaxLatency = Annotated[
    float | None, typer.Option("--max-latency", metavar="MS", rich_help_panel=BUDGET, help="Milliseconds a sample.")
]
MaxDrop = Annotated[
    float | None,
    typer.Option("--max-drop", rich_help_panel=BUDGET, help="Accuracy that may be lost on validation data: 0.01."),
]

Finetune = Annotated[
    int | None,
    typer.Option(
        "--finetune", min=1, metavar="EPOCHS", rich_help_panel=AFTER, help="Fine-tune so long.  [default: magnitude 20]"
    ),
]
FinetuneRate = Annotated[float, typer.Option("--finetune-lr", rich_help_panel=AFTER, help="Highest rate of it.")]
Distil = Annotated[
    bool | None,
    typer.Option(
        "--distil/--no-distil",
        rich_help_panel=AFTER,
        help="Also learn what the uncut network answers.  [default: with --finetune, not with --rewind]",
    ),
]
Rewind = Annotated[
    int | None,
    typer.Option(
        "--rewind",
        min=0,
        metavar="EPOCH",
        rich_help_panel=AFTER,
        help="Repeat the original training from this epoch on, with its learning rates.",
    ),
]
Early = Annotated[
    Path | None,
    typer.Option(
        "--early",
        rich_help_panel=AFTER,
        help="With --rewind: start from the weights in this file, those of that epoch (train --until-epoch).",
    ),
]
