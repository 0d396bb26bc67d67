"""What `topiarist train` does once its options are read: build networks, train, cross-validate, measure, save."""

import statistics
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topiarist.cli.output import checkpoint_beside, epoch_bar, resumable_from
from topiarist.errors import TopiaristWarning
from topiarist.files import JsonObject
from topiarist.models.settings import ModelSettings
from topiarist.training.config import Phase, TrainConfig

if TYPE_CHECKING:
    from torch import nn

    from topiarist.data import Data
    from topiarist.training import History


def fresh_network(settings: ModelSettings, data: "Data", seed: int) -> "nn.Module":
    """Build a network for the data."""
    from topiarist.models.building import build_network

    return build_network(settings, input_shape=data.input_shape, classes=data.task.outputs, seed=seed)


def with_new_head(base: "nn.Module", data: "Data", *, drop: int, add: Sequence[Any], seed: int) -> "nn.Module":
    """Return a trained network with a fresh head for the data."""
    from topiarist.randomness import generator
    from topiarist.training import reuse

    random = generator(seed, "initial weights")
    return reuse(base, classes=data.task.outputs, drop=drop, add=[int(units) for units in add], generator=random)


def cross_validate(
    data: "Data",
    build: "Callable[[Data], nn.Module]",
    config: TrainConfig,
    folds: int,
    phases: Sequence[Phase],
) -> JsonObject:
    """Train one network per fold, all as one computation where they can be, and return the primary metric."""
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
    measured = [measure(model, part, latency=False) for model, part in zip(models, parts, strict=True)]
    accuracies = [each.quality[each.primary] for each in measured]
    if data.task.primary != "accuracy":
        return {
            "folds": folds,
            "metric": data.task.primary,
            "fold_qualities": accuracies,
            "mean_quality": statistics.mean(accuracies),
            "sd_quality": statistics.stdev(accuracies),
        }
    return {
        "folds": folds,
        "fold_accuracies": accuracies,
        "mean_accuracy": statistics.mean(accuracies),
        "sd_accuracy": statistics.stdev(accuracies),
    }


def train_and_measure(
    data: "Data", model: "nn.Module", config: TrainConfig, phases: Sequence[Phase], out: Path | None
) -> JsonObject:
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
