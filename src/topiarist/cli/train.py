"""`topiarist train`: train a network, with every option of training by its name."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topiarist.cli.derived import CallValues, derive, naming, with_options
from topiarist.cli.options import (
    AsJson,
    Category,
    DataLocation,
    Date,
    Drop,
    Group,
    InputShape,
    Into,
    MetricOption,
    ModelOut,
    Number,
    Scaling,
    Seed,
    Target,
    TaskOption,
    Weight,
    check_model_out,
    column_choices,
    parse_shape,
)
from topiarist.cli.output import emit, measurement_rows, metric_word, print_rows, shown_metric
from topiarist.cli.train_run import cross_validate, fresh_network, train_and_measure, with_new_head
from topiarist.errors import DataError, SettingsError
from topiarist.files import JsonObject
from topiarist.models.settings import ModelSettings
from topiarist.training.config import Augmentation, Phase, TrainConfig
from topiarist.training.pruning import Pruning

if TYPE_CHECKING:
    from torch import nn

    from topiarist.data import Data

TRANSFER = "Transfer"
NETWORK = derive(
    ModelSettings,
    "The network",
    without=("code", "options"),
    defaults={"dropout": "0; 0.5 for vgg and inception"},
)


def parse_class_weights(text: str) -> str | tuple[float, ...]:
    """Read `balanced`, or weights such as 1,2.5,1."""
    if text == BALANCED:
        return text
    try:
        weights = tuple(float(part) for part in text.split(","))
    except ValueError:
        weights = (math.nan,)
    if not all(map(math.isfinite, weights)):
        form = f"class weights are written {BALANCED}, or one number per class as 1,2.5,1"
        raise SettingsError(f"{form}; found '{text}'")
    return weights


BALANCED = "balanced"
TRAINING = derive(
    TrainConfig,
    "Training",
    without=("schedule", "distillation", "pruning", "augmentation", "watch_training", "after_epoch", "seed"),
    spelled={"batch_size": "--batch --batch-size", "learning_rate": "--lr --learning-rate"},
    read={"class_weights": ("balanced|A,B,…", parse_class_weights)},
)
SCHEDULE = derive(TrainConfig, "Learning rate over time", only=("schedule",), spelled={"schedule.name": "--schedule"})
PRUNING = derive(
    Pruning,
    "Pruning and augmentation",
    only=("sparsity",),
    spelled={"sparsity": "--prune"},
    defaults={"sparsity": ""},
    prefix="prune-",
)
AUGMENTATION = derive(Augmentation, "Pruning and augmentation")


@with_options(NETWORK, TRAINING, SCHEDULE, PRUNING, AUGMENTATION)
def train_command(
    data: DataLocation,
    target: Target = None,
    group: Group = None,
    weight: Weight = None,
    task: TaskOption = None,
    metric: MetricOption = None,
    drop: Drop = None,
    category: Category = None,
    number: Number = None,
    date: Date = None,
    scaling: Scaling = None,
    input_shape: InputShape = None,
    projection: Annotated[
        str | None,
        typer.Option(
            "--projection",
            metavar="COLUMNS:COMPONENTS,…",
            help="Principal components of blocks of columns: 4096:5,5456:5 makes 10 inputs of 9552 columns.",
        ),
    ] = None,
    out: ModelOut = None,
    folds: Annotated[int | None, typer.Option("--folds", min=2, help="Cross-validate, all folds at once.")] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    base: Annotated[
        Path | None,
        typer.Option("--base", rich_help_panel=TRANSFER, help="A model file whose lower layers are reused."),
    ] = None,
    into: Into = None,
    drop_top: Annotated[
        int | None,
        typer.Option(
            "--drop-top", min=0, rich_help_panel=TRANSFER, help="Leave out this many of its top hidden layers."
        ),
    ] = None,
    phases: Annotated[
        list[str] | None,
        typer.Option(
            "--phase",
            metavar="EPOCHS[:TOP[:LR]]",
            rich_help_panel=TRANSFER,
            help="Train the TOP last layers for EPOCHS epochs; repeatable.  [default: 10:1, then 10:3:0.0001]",
        ),
    ] = None,
    **options: Any,
) -> None:
    """Train a network, measure it and save it; it is fully connected unless --family names another.

    Example: topiarist train digits --hidden 64 --epochs 60 --early-stopping 8 --out digits.safetensors

    With --folds, the command cross-validates. With --base, it continues from a trained network; with --into as well,
    from your own; images are resized to what that network reads. After an interruption, the same command with the same
    --out resumes.
    """
    from topiarist.cli.loading import as_base_reads, load_network
    from topiarist.devices import find_device
    from topiarist.features.described import load_described

    check_model_out(out, inputs=(data, *(() if base is None else (base,))), resumes=True)
    check_transfer(options, base, drop_top=drop_top, into=into)
    config = training_of(options, seed=seed)
    if config.device is not None:
        find_device(config.device)
    network = None if base is not None else network_of(options)
    declared = parse_phases(phases, base)
    trained = None if base is None else load_network(base, into)
    how: dict[str, Any] = {
        "scaling": scaling,
        "input_shape": parse_shape(input_shape),
        "projection": parse_projection(projection),
        "seed": seed,
    }
    columns = column_choices(drop, category, number, date)
    named: dict[str, Any] = {"target": target, "group": group, "weight": weight, "task": task}
    found = load_described(data, **named, columns=columns, **how)
    found = (found if trained is None else as_base_reads(trained, found, **how)).with_metric(metric)
    if not len(found.test):
        raise DataError(f"{found.name} has {len(found.train)} samples: too few to set a test part aside")

    def build(part: "Data") -> "nn.Module":
        if network is not None:
            return fresh_network(network, part, seed)
        assert trained is not None
        return with_new_head(
            trained, part, drop=drop_top or 0, add=NETWORK.values(options).get("hidden", ()), seed=seed
        )

    result: JsonObject = {
        "data": found.name,
        "task": str(found.task),
        "seed": seed,
        "config": config.model_dump(mode="json"),
    }
    if declared:
        result["phases"] = [phase.model_dump(mode="json") for phase in declared]
    if folds is not None:
        result |= cross_validate(found, build, config, folds, declared)
    if folds is None or out is not None:
        result |= train_and_measure(found, build(found), config, declared, out)
    emit(result, as_json=as_json, show=show_result)


def training_of(options: CallValues, *, seed: int) -> TrainConfig:
    """Return how to train; epochs and steps together are refused."""
    if options["epochs"] is not None and options["steps"] is not None:
        raise SettingsError("--epochs and --steps both say how long to train: give one")
    others: dict[str, Any] = {}
    if PRUNING.given(options):
        others["pruning"] = PRUNING.make(options)
    if AUGMENTATION.given(options):
        others["augmentation"] = AUGMENTATION.make(options)
    values = {**TRAINING.values(options), **SCHEDULE.values(options), **others}
    with naming(TRAINING.names | SCHEDULE.names):
        return TrainConfig(**values, seed=seed)


def network_of(options: CallValues) -> ModelSettings:
    """Return the network; dropout of a convolutional one is among the options of its family."""
    values = NETWORK.values(options)
    if values.get("family", "mlp") != "mlp" and "dropout" in values:
        values["options"] = {"dropout": values.pop("dropout")}
    norms = [name for name in ("batch_norm_epsilon", "batch_norm_momentum") if name in values]
    if norms and not values.get("batch_norm"):
        raise SettingsError(f"--{norms[0].replace('_', '-')} has no effect without --batch-norm")
    if "leaky_slope" in values and values.get("activation") != "leaky_relu":
        raise SettingsError("--leaky-slope has no effect without --activation leaky_relu")
    with naming(NETWORK.names):
        return ModelSettings(**values)


def check_transfer(options: CallValues, base: Path | None, *, drop_top: int | None, into: str | None) -> None:
    """Raise SettingsError for options that would have no effect."""
    if base is None:
        for option, given in (("--drop-top", drop_top), ("--into", into)):
            if given is not None:
                raise SettingsError(f"{option} belongs to transfer: name the trained network with --base")
        return
    for option in NETWORK.given(options):
        if option != "--hidden":
            raise SettingsError(f"{option} has no effect with --base: the network is built as its base")
    for option in TRAINING.given(options):
        if option in ("--epochs", "--steps", "--until-epoch"):
            raise SettingsError(f"{option} has no effect with --base: give the epochs of each phase with --phase")


def parse_phases(texts: Sequence[str] | None, base: Path | None) -> Sequence[Phase]:
    """Read phases such as 10:1 or 10:3:0.0001; a base without phases gets the usual two."""
    from topiarist.training.transfer import DEFAULT_PHASES

    if not texts:
        return () if base is None else DEFAULT_PHASES
    if base is None:
        raise SettingsError("--phase belongs to transfer: name the trained network with --base")
    phases = []
    for text in texts:
        parts = text.split(":")
        if len(parts) > 3:
            raise SettingsError(f"a phase is written EPOCHS[:TOP[:LR]]; found '{text}'")
        try:
            phases.append(Phase(**dict(zip(("epochs", "train_top", "learning_rate"), parts, strict=False))))
        except SettingsError as error:
            raise SettingsError(f"--phase {text}: {str(error).removeprefix('Phase: ')}") from error
    return phases


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


def show_result(result: JsonObject) -> None:
    """Print a training as a table."""
    rows: dict[str, str] = {"data": result["data"], "task": result["task"]}
    if "fold_accuracies" in result:
        rows["accuracy"] = (
            f"{result['mean_accuracy']:.2%} ± {result['sd_accuracy']:.2%} (mean and SD of {result['folds']} folds)"
        )
        rows["folds"] = " ".join(f"{accuracy:.1%}" for accuracy in result["fold_accuracies"])
    elif "folds" in result:
        name = result["metric"]
        mean, deviation = (shown_metric(name, result[key]) for key in ("mean_quality", "sd_quality"))
        rows[metric_word(name)] = f"{mean} ± {deviation} (mean and SD of {result['folds']} folds)"
        rows["folds"] = " ".join(shown_metric(name, quality) for quality in result["fold_qualities"])
    if "stopped" in result:
        rows |= {"training": f"{result['stopped']}; the weights of epoch {result['kept_epoch']} are kept"}
        rows |= measurement_rows(result)
        rows |= {} if result["out"] is None else {"saved": result["out"]}
    print_rows(rows)
