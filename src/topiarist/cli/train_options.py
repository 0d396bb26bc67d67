"""The options of `topiarist train`, in panels: the network, learning, the learning rate over time, transfer."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from topiarist.cli.options import given_options
from topiarist.errors import SettingsError

NETWORK, LEARNING, SCHEDULE, TRANSFER = "The network", "Learning", "Learning rate over time", "Transfer"
VARIETY = "Pruning and augmentation"

Hidden = Annotated[
    list[int] | None,
    typer.Option(
        "--hidden", min=1, rich_help_panel=NETWORK, help="Units of a hidden layer; once a layer.  [default: 100]"
    ),
]
Vgg = Annotated[
    str | None,
    typer.Option(
        "--vgg", metavar="A,B,C,D", rich_help_panel=NETWORK, help="Convolutions instead: V(2,2,3,3) is 2,2,3,3."
    ),
]
Inception = Annotated[
    str | None,
    typer.Option("--inception", metavar="P,Q,R", rich_help_panel=NETWORK, help="Inception blocks: I(2,1,2) is 2,1,2."),
]
Activation = Annotated[
    Literal["selu", "elu", "leaky_relu", "relu", "gelu", "silu", "tanh", "sigmoid"],
    typer.Option("--activation", rich_help_panel=NETWORK, help="Of the hidden layers."),
]
BatchNorm = Annotated[bool, typer.Option("--batch-norm", rich_help_panel=NETWORK, help="Normalise each hidden layer.")]
BatchNormPosition = Annotated[
    Literal["before", "after"],
    typer.Option("--batch-norm-position", rich_help_panel=NETWORK, help="Before or after the activation."),
]
BatchNormEpsilon = Annotated[
    float, typer.Option("--batch-norm-epsilon", rich_help_panel=NETWORK, help="ε, added to batch norm's variance.")
]
BatchNormMomentum = Annotated[
    float,
    typer.Option(
        "--batch-norm-momentum", rich_help_panel=NETWORK, help="Share of a batch in batch norm's moving averages."
    ),
]
LeakySlope = Annotated[
    float, typer.Option("--leaky-slope", rich_help_panel=NETWORK, help="Slope of leaky_relu below zero.")
]
PreciseNorms = Annotated[
    bool,
    typer.Option(
        "--precise-norms", rich_help_panel=NETWORK, help="End batch norm with the whole training part's figures."
    ),
]
Dropout = Annotated[
    float | None,
    typer.Option(
        "--dropout",
        min=0,
        max=0.99,
        rich_help_panel=NETWORK,
        help="On the last hidden layers.  [default: 0; of --vgg and --inception 0.5]",
    ),
]
DropoutLayers = Annotated[
    int, typer.Option("--dropout-layers", min=0, rich_help_panel=NETWORK, help="How many of the last hidden layers.")
]
InputDropout = Annotated[
    float, typer.Option("--input-dropout", min=0, max=0.99, rich_help_panel=NETWORK, help="Dropout on the inputs.")
]

Prune = Annotated[
    float | None,
    typer.Option(
        "--prune", rich_help_panel=VARIETY, help="Fraction of the weights that become zero while training: 0.8."
    ),
]
Mixup = Annotated[
    float, typer.Option("--mixup", rich_help_panel=VARIETY, help="Mix pairs of samples: α of the Beta distribution.")
]
TimeMasks = Annotated[
    int, typer.Option("--time-masks", rich_help_panel=VARIETY, help="Hide so many stretches of time (SpecAugment).")
]
BandMasks = Annotated[
    int, typer.Option("--band-masks", rich_help_panel=VARIETY, help="Hide so many stretches of frequency.")
]

Epochs = Annotated[
    int, typer.Option("--epochs", min=0, rich_help_panel=LEARNING, help="Passes over the training part.")
]
Steps = Annotated[
    int | None,
    typer.Option(
        "--steps", min=1, rich_help_panel=LEARNING, help="Optimizer steps in the place of epochs, exactly so many."
    ),
]
UntilEpoch = Annotated[
    int | None,
    typer.Option(
        "--until-epoch", min=0, rich_help_panel=LEARNING, help="Stop after this epoch, with rates as for all of them."
    ),
]
BatchSize = Annotated[
    int, typer.Option("--batch", "--batch-size", min=1, rich_help_panel=LEARNING, help="Samples a step.")
]
LearningRate = Annotated[
    float, typer.Option("--lr", "--learning-rate", rich_help_panel=LEARNING, help="Initial (one-cycle: highest) rate.")
]
Optimizer = Annotated[
    Literal["sgd", "adam", "adamw", "rmsprop"],
    typer.Option("--optimizer", rich_help_panel=LEARNING, help="How steps follow from gradients."),
]
Momentum = Annotated[float, typer.Option("--momentum", rich_help_panel=LEARNING, help="Of sgd and rmsprop.")]
Nesterov = Annotated[bool, typer.Option("--nesterov", rich_help_panel=LEARNING, help="Nesterov's momentum, with sgd.")]
WeightDecay = Annotated[
    float, typer.Option("--weight-decay", min=0, rich_help_panel=LEARNING, help="L2 penalty on kernels.")
]
ClipValue = Annotated[
    float | None, typer.Option("--clip-value", rich_help_panel=LEARNING, help="Bring each gradient entry into ±VALUE.")
]
ClipNorm = Annotated[
    float | None, typer.Option("--clip-norm", rich_help_panel=LEARNING, help="Scale gradients of a larger norm down.")
]
ClipNormOver = Annotated[
    Literal["all", "tensor"],
    typer.Option("--clip-norm-over", rich_help_panel=LEARNING, help="Norm over all gradients, or of each tensor."),
]
EarlyStopping = Annotated[
    int | None,
    typer.Option(
        "--early-stopping",
        min=1,
        metavar="EPOCHS",
        rich_help_panel=LEARNING,
        help="Stop after so many epochs without improvement on the validation part; the best weights are kept.",
    ),
]
Monitor = Annotated[
    Literal["loss", "accuracy", "macro_accuracy"],
    typer.Option("--monitor", rich_help_panel=LEARNING, help="What early stopping and performance scheduling watch."),
]
Balanced = Annotated[
    bool, typer.Option("--balanced", rich_help_panel=LEARNING, help="Weigh classes by inverse frequency.")
]
Folds = Annotated[
    int | None, typer.Option("--folds", min=2, rich_help_panel=LEARNING, help="Cross-validate, all folds at once.")
]
Device = Annotated[str, typer.Option("--device", rich_help_panel=LEARNING, help="Where to compute, e.g. cuda.")]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", min=1, rich_help_panel=LEARNING, help="For torch.  [default: 1 below a million parameters]"
    ),
]

ScheduleName = Annotated[
    Literal["constant", "power", "exponential", "performance", "cosine", "one-cycle"],
    typer.Option("--schedule", rich_help_panel=SCHEDULE, help="How the learning rate changes, step by step."),
]
ScheduleSteps = Annotated[
    float | None,
    typer.Option(
        "--schedule-steps", rich_help_panel=SCHEDULE, help="s of power η/(1+t/s)^c and exponential η·0.1^(t/s)."
    ),
]
SchedulePower = Annotated[
    float, typer.Option("--schedule-power", rich_help_panel=SCHEDULE, help="c of power scheduling.")
]
ScheduleFactor = Annotated[
    float, typer.Option("--schedule-factor", rich_help_panel=SCHEDULE, help="Performance scheduling divides by it.")
]
SchedulePatience = Annotated[
    int,
    typer.Option("--schedule-patience", rich_help_panel=SCHEDULE, help="… after so many epochs that are no better."),
]
Warmup = Annotated[
    int, typer.Option("--warmup", min=0, metavar="STEPS", rich_help_panel=SCHEDULE, help="First rise linearly.")
]

Base = Annotated[
    Path | None, typer.Option("--base", rich_help_panel=TRANSFER, help="A model file whose lower layers are reused.")
]
DropTop = Annotated[
    int, typer.Option("--drop-top", min=0, rich_help_panel=TRANSFER, help="Leave out so many of its top hidden layers.")
]
Phases = Annotated[
    list[str] | None,
    typer.Option(
        "--phase",
        metavar="EPOCHS[:TOP[:LR]]",
        rich_help_panel=TRANSFER,
        help="Train the TOP last layers for so many epochs; once a phase.  [default: 10:1, then 10:3:0.0001]",
    ),
]
Out = Annotated[Path | None, typer.Option("--out", help="Where to write the network (.safetensors).")]
InputShape = Annotated[
    str | None, typer.Option("--input-shape", metavar="1x8x8", help="See flat samples as pictures of this shape.")
]
Projection = Annotated[
    str | None,
    typer.Option(
        "--projection",
        metavar="COLUMNS:COMPONENTS,…",
        help="Principal components of blocks of columns: 4096:5,5456:5 makes 10 inputs of 9552 columns.",
    ),
]

OF_BATCH_NORM = ("batch_norm_position", "batch_norm_epsilon", "batch_norm_momentum")
OF_HIDDEN_LAYERS = ("activation", "leaky_slope", "batch_norm", *OF_BATCH_NORM, "dropout_layers", "input_dropout")
OF_A_FRESH_NETWORK = (*OF_HIDDEN_LAYERS, "dropout", "vgg", "inception")
OPTION_OF = {
    "learning_rate": "--lr",
    "batch_size": "--batch",
    "step_size": "--schedule-steps",
    "power": "--schedule-power",
    "factor": "--schedule-factor",
    "patience": "--schedule-patience",
    "nesterov": "--nesterov",
    "momentum": "--momentum",
    "sparsity": "--prune",
    "mixup": "--mixup",
    "time_masks": "--time-masks",
    "band_masks": "--band-masks",
    "after_epoch": "--after-epoch",
    "until_epoch": "--until-epoch",
    "epochs": "--epochs",
}


@contextmanager
def named(options: Mapping[str, str] = OPTION_OF) -> Iterator[None]:
    """Name the option in the place of the setting: 'TrainConfig: learning_rate must …' becomes '--lr must …'."""
    try:
        yield
    except SettingsError as error:
        said = str(error).partition(": ")[2]
        if not said:
            raise
        if error.setting and error.setting not in options:
            said = said.replace(error.setting, f"--{error.setting.replace('_', '-')}", 1)
        for setting, option in options.items():  # a plain word may stand for itself later in the line
            said = re.sub(rf"\b{setting}\b" if "_" in setting else rf"^{setting}\b", option, said)
        raise SettingsError(said) from error


def training_length(context: typer.Context, epochs: int, steps: int | None) -> dict[str, int]:
    """Return the setting that says how long to train; epochs and steps together are refused."""
    if steps is None:
        return {"epochs": epochs}
    if "epochs" in given_options(context):
        raise SettingsError("--epochs and --steps both say how long to train: give one")
    return {"steps": steps}


def parse_projection(text: str | None) -> tuple[tuple[int, int], ...] | None:
    """Read blocks of columns such as 4096:5,5456:5."""
    if text is None:
        return None
    try:
        pairs = [block.split(":") for block in text.split(",")]
        blocks = tuple((int(columns), int(components)) for columns, components in pairs)
    except ValueError:
        blocks = ((0, 0),)
    if min(min(block) for block in blocks) < 1:
        raise SettingsError(f"--projection is written COLUMNS:COMPONENTS,… like 4096:5,5456:5; found '{text}'")
    return blocks


def parse_family(vgg: str | None, inception: str | None) -> tuple[str, tuple[int, ...]] | None:
    """Read the blocks of a convolutional network; None where none is asked for."""
    from topiarist.models.settings import BLOCKS

    given = {name: text for name, text in (("vgg", vgg), ("inception", inception)) if text is not None}
    if len(given) > 1:
        raise SettingsError("--vgg and --inception both name the network: give one")
    for family, text in given.items():
        parts = text.split(",")
        if not all(part.strip().isdecimal() for part in parts):
            raise SettingsError(f"--{family} takes numbers of layers with commas between; found '{text}'")
        blocks = tuple(map(int, parts))
        if len(blocks) != BLOCKS[family]:
            raise SettingsError(f"--{family} takes {BLOCKS[family]} numbers of layers; found {len(blocks)}")
        return family, blocks
    return None
