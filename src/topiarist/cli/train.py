"""`topiarist train`: a network for some data, with every practice by name."""

import statistics
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topiarist.cli.derived import derive, with_options
from topiarist.cli.options import (
    AsJson,
    DataLocation,
    Group,
    InputShape,
    Into,
    ModelOut,
    Scaling,
    Seed,
    Target,
    check_model_out,
    parse_shape,
)
from topiarist.cli.output import (
    checkpoint_beside,
    emit,
    epoch_bar,
    measurement_rows,
    print_rows,
    resumable_from,
)
from topiarist.errors import DataError, SettingsError, TopiaristWarning
from topiarist.models.settings import ModelSettings
from topiarist.training.config import Augmentation, Phase, TrainConfig
from topiarist.training.pruning import Pruning

if TYPE_CHECKING:
    from torch import nn

    from topiarist.data import Data
    from topiarist.training import History

TRANSFER = "Transfer"
NETWORK = derive(ModelSettings, "The network", without=("code", "options"))
TRAINING = derive(
    TrainConfig,
    "Training",
    without=("schedule", "distillation", "pruning", "augmentation", "after_epoch", "seed"),
    spelled={"batch_size": "--batch --batch-size", "learning_rate": "--lr --learning-rate"},
)
SCHEDULE = derive(TrainConfig, "Learning rate over time", only=("schedule",), spelled={"schedule.name": "--schedule"})
PRUNING = derive(
    Pruning, "Pruning and augmentation", only=("sparsity",), spelled={"sparsity": "--prune"}, prefix="prune-"
)
AUGMENTATION = derive(Augmentation, "Pruning and augmentation")
CLASS_WEIGHTS = "balanced"


@with_options(NETWORK, TRAINING, SCHEDULE, PRUNING, AUGMENTATION)
def train_command(
    data: DataLocation,
    target: Target = None,
    group: Group = None,
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
    balanced: Annotated[
        bool, typer.Option("--balanced", rich_help_panel="Training", help="Weigh classes by inverse frequency.")
    ] = False,
    base: Annotated[
        Path | None,
        typer.Option("--base", rich_help_panel=TRANSFER, help="A model file whose lower layers are reused."),
    ] = None,
    into: Into = None,
    drop_top: Annotated[
        int | None,
        typer.Option("--drop-top", min=0, rich_help_panel=TRANSFER, help="Leave out so many of its top hidden layers."),
    ] = None,
    phases: Annotated[
        list[str] | None,
        typer.Option(
            "--phase",
            metavar="EPOCHS[:TOP[:LR]]",
            rich_help_panel=TRANSFER,
            help="Train the TOP last layers for so many epochs; repeatable.  [default: 10:1, then 10:3:0.0001]",
        ),
    ] = None,
    **options: Any,
) -> None:
    """Train a network, of fully connected layers unless --family names another, measure it and save it.

    Example: topiarist train digits --hidden 64 --epochs 60 --early-stopping 8 --out digits.safetensors

    With --folds, cross-validates. With --base, continues from a trained network, your own with --into; images are
    resized to what it reads. After an interruption, the same command with the same --out resumes.
    """
    from topiarist.cli.loading import as_base_reads, load_network
    from topiarist.features.described import load_described

    check_model_out(out)
    check_transfer(options, base, drop_top=drop_top, into=into)
    config = training_of(options, balanced=balanced, seed=seed)
    network = None if base is not None else network_of(options)
    declared = parse_phases(phases, base)
    trained = None if base is None else load_network(base, into)
    how: dict[str, Any] = {
        "scaling": scaling,
        "input_shape": parse_shape(input_shape),
        "projection": parse_projection(projection),
        "seed": seed,
    }
    task = load_described(data, target=target, group=group, **how)
    task = task if trained is None else as_base_reads(trained, task, **how)
    if not len(task.test):
        raise DataError(f"{task.name} has {len(task.train)} samples: too few to set a test part aside")

    def build(part: "Data") -> "nn.Module":
        if network is not None:
            return fresh_network(network, part, seed)
        assert trained is not None
        return with_new_head(
            trained, part, drop=drop_top or 0, add=NETWORK.values(options).get("hidden", ()), seed=seed
        )

    result: dict[str, Any] = {"data": task.name, "seed": seed, "config": config.model_dump(mode="json")}
    if declared:
        result["phases"] = [phase.model_dump(mode="json") for phase in declared]
    if folds is not None:
        result |= cross_validate(task, build, config, folds, declared)
    if folds is None or out is not None:
        result |= train_and_measure(task, build(task), config, declared, out)
    emit(result, as_json=as_json, show=show_result)


def training_of(options: Mapping[str, Any], *, balanced: bool, seed: int) -> TrainConfig:
    """Return how to train; epochs and steps together are refused."""
    if options["epochs"] is not None and options["steps"] is not None:
        raise SettingsError("--epochs and --steps both say how long to train: give one")
    if balanced and options.get("class_weights") is not None:
        raise SettingsError("--balanced and --class-weights both weigh classes: give one")
    others: dict[str, Any] = {"class_weights": CLASS_WEIGHTS} if balanced else {}
    if PRUNING.given(options):
        others["pruning"] = PRUNING.make(options)
    if AUGMENTATION.given(options):
        others["augmentation"] = AUGMENTATION.make(options)
    with SCHEDULE.naming():
        return TRAINING.make(options, **SCHEDULE.values(options), **others, seed=seed)


def network_of(options: Mapping[str, Any]) -> ModelSettings:
    """Return the network; dropout of a convolutional one is among the options of its family."""
    values = NETWORK.values(options)
    if values.get("family", "mlp") != "mlp" and "dropout" in values:
        values["options"] = {"dropout": values.pop("dropout")}
    norms = [name for name in ("batch_norm_epsilon", "batch_norm_momentum") if name in values]
    if norms and not values.get("batch_norm"):
        raise SettingsError(f"--{norms[0].replace('_', '-')} has no effect without --batch-norm")
    if "leaky_slope" in values and values.get("activation") != "leaky_relu":
        raise SettingsError("--leaky-slope has no effect without --activation leaky_relu")
    with NETWORK.naming():
        return ModelSettings(**values)


def check_transfer(options: Mapping[str, Any], base: Path | None, *, drop_top: int | None, into: str | None) -> None:
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


def fresh_network(settings: ModelSettings, data: "Data", seed: int) -> "nn.Module":
    """Build a network for the data."""
    from topiarist.models.building import build_network

    return build_network(settings, input_shape=data.input_shape, classes=len(data.classes), seed=seed)


def with_new_head(base: "nn.Module", data: "Data", *, drop: int, add: Sequence[Any], seed: int) -> "nn.Module":
    """Return a trained network with a fresh head for the data."""
    from topiarist.randomness import generator
    from topiarist.training import reuse

    random = generator(seed, "initial weights")
    return reuse(base, classes=len(data.classes), drop=drop, add=[int(units) for units in add], generator=random)


def cross_validate(
    data: "Data",
    build: "Callable[[Data], nn.Module]",
    config: TrainConfig,
    folds: int,
    phases: Sequence[Phase],
) -> dict[str, Any]:
    """Train one network per fold, all as one computation where they can be, and return the accuracies."""
    from topiarist.data import SplitRule
    from topiarist.measurement import measure
    from topiarist.training import train_many, train_phases

    watched = config.early_stopping is not None or config.schedule.name == "performance"
    parts = data.folds(folds, seed=config.seed, validation_fraction=SplitRule().validation_fraction if watched else 0.0)
    models = [build(part) for part in parts]
    if phases:
        for model, part in zip(models, parts, strict=True):
            train_phases(model, part, phases, config)
    else:
        with epoch_bar(last_epoch(models[0], parts[0], config), f"{folds} folds") as on_epoch:
            train_many(models, parts, config, on_epoch=on_epoch)
    accuracies = [measure(model, part, latency=False).accuracy for model, part in zip(models, parts, strict=True)]
    return {
        "folds": folds,
        "fold_accuracies": accuracies,
        "mean_accuracy": statistics.mean(accuracies),
        "sd_accuracy": statistics.stdev(accuracies),
    }


def train_and_measure(
    data: "Data", model: "nn.Module", config: TrainConfig, phases: Sequence[Phase], out: Path | None
) -> dict[str, Any]:
    """Train on the training part, save where asked, measure on the test part."""
    from topiarist.measurement import measure
    from topiarist.storage import save

    history, notes = run_training(data, model, config, phases, out)
    for note in notes:
        warnings.warn(note, TopiaristWarning, stacklevel=1)
    if out is not None:
        save(model, out, data=data)
    return {
        **measure(model, data, path=out).to_json(),
        "epochs": len(history.epochs),
        "kept_epoch": history.kept_epoch,
        "stopped": history.stopped,
        "diverged_epoch": history.diverged_epoch,
        "rescue": list(notes),
        "out": None if out is None else str(out),
    }


def run_training(
    data: "Data", model: "nn.Module", config: TrainConfig, phases: Sequence[Phase], out: Path | None
) -> "tuple[History, tuple[str, ...]]":
    """Train with a bar, in phases where declared; return the history, and notes on a network trained again."""
    from topiarist.training import train_phases
    from topiarist.training.rescue import train_with_rescue

    if phases:
        with epoch_bar(sum(phase.epochs for phase in phases), "training in phases") as on_epoch:
            return train_phases(model, data, phases, config, on_epoch=on_epoch)[-1], ()
    checkpoint = checkpoint_beside(out)
    with resumable_from(checkpoint), epoch_bar(last_epoch(model, data, config), "training") as on_epoch:
        (history,), notes = train_with_rescue([model], [data], [config], checkpoint=checkpoint, on_epoch=on_epoch)
        return history, notes


def last_epoch(model: "nn.Module", data: "Data", config: TrainConfig) -> int:
    """Return the number of the last epoch of a training."""
    from topiarist.training.stretches import steps_per_epoch

    return config.last_epoch(1 if config.steps is None else steps_per_epoch(model, data, config))


def show_result(result: Mapping[str, Any]) -> None:
    """Print what a person wants to know."""
    rows: dict[str, str] = {"data": result["data"]}
    if "folds" in result:
        rows["accuracy"] = (
            f"{result['mean_accuracy']:.2%} ± {result['sd_accuracy']:.2%} (mean and SD of {result['folds']} folds)"
        )
        rows["folds"] = " ".join(f"{accuracy:.1%}" for accuracy in result["fold_accuracies"])
    if "accuracy" in result:
        rows |= {"training": f"{result['stopped']}; the weights of epoch {result['kept_epoch']} are kept"}
        rows |= measurement_rows(result)
        rows |= {} if result["out"] is None else {"saved": result["out"]}
    print_rows(rows)
