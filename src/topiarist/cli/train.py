"""`topiarist train`: a network for some data, with every practice by name."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topiarist.cli import train_options as option
from topiarist.cli.options import AsJson, DataLocation, Group, Scaling, Seed, Target, given_options, parse_shape
from topiarist.cli.output import emit, measurement_rows, print_rows
from topiarist.cli.train_run import build_network, cross_validate, train_and_measure

if TYPE_CHECKING:
    from torch import nn

    from topiarist.data import Data
    from topiarist.training import Phase


def train_command(
    context: typer.Context,
    data: DataLocation,
    target: Target = None,
    group: Group = None,
    scaling: Annotated[Scaling | None, typer.Option("--scaling", help="In the place of what suits the data.")] = None,
    input_shape: option.InputShape = None,
    projection: option.Projection = None,
    out: option.Out = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    hidden: option.Hidden = None,
    vgg: option.Vgg = None,
    inception: option.Inception = None,
    activation: option.Activation = "relu",
    batch_norm: option.BatchNorm = False,
    batch_norm_position: option.BatchNormPosition = "before",
    precise_norms: option.PreciseNorms = False,
    dropout: option.Dropout = None,
    dropout_layers: option.DropoutLayers = 3,
    input_dropout: option.InputDropout = 0.0,
    epochs: option.Epochs = 100,
    steps: option.Steps = None,
    until_epoch: option.UntilEpoch = None,
    batch_size: option.BatchSize = 32,
    learning_rate: option.LearningRate = 0.001,
    optimizer: option.Optimizer = "adam",
    momentum: option.Momentum = 0.0,
    nesterov: option.Nesterov = False,
    weight_decay: option.WeightDecay = 0.0,
    clip_value: option.ClipValue = None,
    clip_norm: option.ClipNorm = None,
    clip_norm_over: option.ClipNormOver = "all",
    early_stopping: option.EarlyStopping = None,
    monitor: option.Monitor = "loss",
    balanced: option.Balanced = False,
    prune: option.Prune = None,
    mixup: option.Mixup = 0.0,
    time_masks: option.TimeMasks = 0,
    band_masks: option.BandMasks = 0,
    folds: option.Folds = None,
    device: option.Device = "cpu",
    threads: option.Threads = None,
    schedule: option.ScheduleName = "constant",
    schedule_steps: option.ScheduleSteps = None,
    schedule_power: option.SchedulePower = 1.0,
    schedule_factor: option.ScheduleFactor = 2.0,
    schedule_patience: option.SchedulePatience = 5,
    warmup: option.Warmup = 0,
    base: option.Base = None,
    drop_top: option.DropTop = 0,
    phases: option.Phases = None,
) -> None:
    """Train a network, of fully connected layers unless --vgg or --inception is given, measure it and save it.

    Example: topiarist train digits --hidden 64 --epochs 60 --early-stopping 8 --out digits.safetensors

    With --folds, cross-validates. With --base, goes on from a trained network. After an interruption, the same command
    with the same --out goes on from where it was.
    """
    from topiarist.data import load_data
    from topiarist.errors import DataError
    from topiarist.training import Augmentation, Pruning, Schedule, TrainConfig

    family, length = option.parse_family(vgg, inception), option.training_length(context, epochs, steps)
    with option.named():
        varied = Augmentation(mixup=mixup, time_masks=time_masks, band_masks=band_masks)
        config = TrainConfig(
            **length,
            until_epoch=until_epoch,
            batch_size=batch_size,
            learning_rate=learning_rate,
            optimizer=optimizer,
            momentum=momentum,
            nesterov=nesterov,
            weight_decay=weight_decay,
            schedule=Schedule(
                name=schedule,
                step_size=schedule_steps,
                power=schedule_power,
                factor=schedule_factor,
                patience=schedule_patience,
                warmup=warmup,
            ),
            clip_value=clip_value,
            clip_norm=clip_norm,
            clip_norm_over=clip_norm_over,
            early_stopping=early_stopping,
            monitor=monitor,
            class_weights="balanced" if balanced else None,
            precise_norms=precise_norms,
            pruning=None if prune is None else Pruning(sparsity=prune),
            augmentation=None if varied == Augmentation() else varied,
            seed=seed,
            device=device,
            threads=threads,
        )
    check_out(out)
    check_transfer(context, base)
    check_family(context, family)
    declared = parse_phases(phases, base)
    task = load_data(
        data,
        target=target,
        group=group,
        scaling=scaling,
        input_shape=parse_shape(input_shape),
        projection=option.parse_projection(projection),
        seed=seed,
    )
    if not len(task.test):
        raise DataError(f"{task.name} has {len(task.train)} samples: too few to set a test part aside")
    network = {
        "activation": activation,
        "batch_norm": batch_norm_position if batch_norm else False,
        "dropout": dropout or 0.0,
        "dropout_layers": dropout_layers,
        "input_dropout": input_dropout,
    }

    def build(part: "Data") -> "nn.Module":
        options = {} if dropout is None else {"dropout": dropout}
        convolutional = None if family is None else (*family, options)
        return build_network(part, network, hidden, family=convolutional, base=base, drop_top=drop_top, seed=seed)

    result: dict[str, Any] = {"data": task.name, "seed": seed, "config": config.model_dump(mode="json")}
    if declared:
        result["phases"] = [phase.model_dump(mode="json") for phase in declared]
    if folds is not None:
        result |= cross_validate(task, build, config, folds, declared)
    if folds is None or out is not None:
        result |= train_and_measure(task, build(task), config, declared, out)
    emit(result, as_json=as_json, show=show_result)


def check_out(out: Path | None) -> None:
    """Refuse a place where the network could not be written, before hours of training."""
    from topiarist.errors import SettingsError
    from topiarist.files import check_place

    if out is None:
        return
    if out.suffix != ".safetensors":
        raise SettingsError(f"--out must end in .safetensors; found '{out}'")
    check_place(out)


def check_family(context: typer.Context, family: tuple[str, tuple[int, ...]] | None) -> None:
    """Refuse options of fully connected layers for a convolutional network."""
    from topiarist.errors import SettingsError

    given = [name for name in ("hidden", *option.OF_HIDDEN_LAYERS) if name in given_options(context)]
    if family is not None and given:
        raise SettingsError(f"--{given[0].replace('_', '-')} has no effect on a network that --{family[0]} builds")


def check_transfer(context: typer.Context, base: Path | None) -> None:
    """Refuse options that would have no effect."""
    from topiarist.errors import SettingsError

    given = given_options(context)
    if base is None:
        if "drop_top" in given:
            raise SettingsError("--drop-top belongs to transfer: name the trained network with --base")
        return
    for name in given:
        if name in option.OF_A_FRESH_NETWORK:
            raise SettingsError(
                f"--{name.replace('_', '-')} has no effect with --base: the network is built as its base"
            )
    if "epochs" in given:
        raise SettingsError("--epochs has no effect with --base: give the epochs of each phase with --phase")
    for name in ("steps", "until_epoch"):
        if name in given:
            option_name = f"--{name.replace('_', '-')}"
            raise SettingsError(f"{option_name} has no effect with --base: give the epochs of each phase with --phase")


def parse_phases(texts: Sequence[str] | None, base: Path | None) -> "Sequence[Phase]":
    """Read phases such as 10:1 or 10:3:0.0001; a base without phases gets the usual two."""
    from topiarist.errors import SettingsError
    from topiarist.training import Phase
    from topiarist.training.transfer import DEFAULT_PHASES

    if not texts:
        return () if base is None else DEFAULT_PHASES
    if base is None:
        raise SettingsError("--phase belongs to transfer: name the trained network with --base")
    phases = []
    for text in texts:
        fields = dict(zip(("epochs", "train_top", "learning_rate"), text.split(":"), strict=False))
        if len(text.split(":")) > 3:
            raise SettingsError(f"a phase is written EPOCHS[:TOP[:LR]]; found '{text}'")
        try:
            phases.append(Phase(**fields))
        except SettingsError as error:
            raise SettingsError(f"--phase {text}: {str(error).removeprefix('Phase: ')}") from error
    return phases


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
