"""`topiarist train`: a network for some data, with every practice by name."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topiarist.cli import train_options as option
from topiarist.cli.loading import load_network
from topiarist.cli.options import AsJson, DataLocation, Group, Into, Scaling, Seed, Target, parse_shape
from topiarist.cli.output import emit, measurement_rows, print_rows
from topiarist.cli.train_base import as_base_reads
from topiarist.cli.train_checks import check_family, check_layers, check_out, check_transfer
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
    batch_norm_epsilon: option.BatchNormEpsilon = 1e-5,
    batch_norm_momentum: option.BatchNormMomentum = 0.1,
    leaky_slope: option.LeakySlope = 0.01,
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
    into: Into = None,
    drop_top: option.DropTop = 0,
    phases: option.Phases = None,
) -> None:
    """Train a network, of fully connected layers unless --vgg or --inception is given, measure it and save it.

    Example: topiarist train digits --hidden 64 --epochs 60 --early-stopping 8 --out digits.safetensors

    With --folds, cross-validates. With --base, goes on from a trained network, your own with --into; images are
    resized to what it reads. After an interruption, the same command
    with the same --out goes on from where it was.
    """
    from topiarist.errors import DataError
    from topiarist.features.described import load_described
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
    network = {
        "activation": activation,
        "leaky_slope": leaky_slope,
        "batch_norm": batch_norm_position if batch_norm else False,
        "batch_norm_epsilon": batch_norm_epsilon,
        "batch_norm_momentum": batch_norm_momentum,
        "dropout": dropout or 0.0,
        "dropout_layers": dropout_layers,
        "input_dropout": input_dropout,
    }
    check_out(out)
    check_transfer(context, base)
    trained = None if base is None else load_network(base, into)
    check_family(context, family)
    if family is None and base is None:
        check_layers(context, network)
    declared = parse_phases(phases, base)
    how: dict[str, Any] = {
        "scaling": scaling,
        "input_shape": parse_shape(input_shape),
        "projection": option.parse_projection(projection),
        "seed": seed,
    }
    task = load_described(data, target=target, group=group, **how)
    task = task if trained is None else as_base_reads(trained, task, **how)
    if not len(task.test):
        raise DataError(f"{task.name} has {len(task.train)} samples: too few to set a test part aside")

    def build(part: "Data") -> "nn.Module":
        options = {} if dropout is None else {"dropout": dropout}
        convolutional = None if family is None else (*family, options)
        return build_network(part, network, hidden, family=convolutional, base=trained, drop_top=drop_top, seed=seed)

    result: dict[str, Any] = {"data": task.name, "seed": seed, "config": config.model_dump(mode="json")}
    if declared:
        result["phases"] = [phase.model_dump(mode="json") for phase in declared]
    if folds is not None:
        result |= cross_validate(task, build, config, folds, declared)
    if folds is None or out is not None:
        result |= train_and_measure(task, build(task), config, declared, out)
    emit(result, as_json=as_json, show=show_result)


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
