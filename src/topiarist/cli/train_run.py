"""What `topiarist train` does once its options are understood."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topiarist.cli.output import InterruptionError, epoch_bar
from topiarist.errors import TopiaristWarning

if TYPE_CHECKING:
    from torch import nn

    from topiarist.data import Data
    from topiarist.training import History, Phase, TrainConfig


def build_network(
    data: "Data",
    network: Mapping[str, Any],
    hidden: Sequence[int] | None,
    *,
    family: tuple[str, tuple[int, ...], Mapping[str, Any]] | None,
    base: "nn.Module | None",
    drop_top: int,
    seed: int,
) -> "nn.Module":
    """Give a fresh network for the data, or the base with a fresh head."""
    from topiarist.models import ModelSettings, build_network
    from topiarist.randomness import generator
    from topiarist.training import reuse

    random = generator(seed, "initial weights")
    if base is not None:
        return reuse(base, classes=len(data.classes), drop=drop_top, add=hidden or (), generator=random)
    if family is None:
        settings = ModelSettings.model_validate({**network, "hidden": hidden or (100,)})
    else:
        settings = ModelSettings.model_validate(dict(zip(("family", "blocks", "options"), family, strict=True)))
    return build_network(settings, input_shape=data.input_shape, classes=len(data.classes), seed=seed)


def cross_validate(
    data: "Data",
    build: "Callable[[Data], nn.Module]",
    config: "TrainConfig",
    folds: int,
    phases: "Sequence[Phase]",
) -> dict[str, Any]:
    """Train one network a fold, all as one computation where they can be, and give the accuracies on the folds."""
    import statistics

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
    data: "Data", model: "nn.Module", config: "TrainConfig", phases: "Sequence[Phase]", out: Path | None
) -> dict[str, Any]:
    """Train on the training part, save where asked, measure on the test part."""
    from topiarist.measurement import measure
    from topiarist.storage import save

    history, notes = run_training(data, model, config, phases, out)
    for note in notes:
        warnings.warn(note, TopiaristWarning, stacklevel=1)
    if out is not None:
        save(model, out, data=data)
    measured = measure(model, data, path=out).to_json()
    return {
        **measured,
        "epochs": len(history.epochs),
        "kept_epoch": history.kept_epoch,
        "stopped": history.stopped,
        "diverged_epoch": history.diverged_epoch,
        "rescue": list(notes),
        "out": None if out is None else str(out),
    }


def run_training(
    data: "Data", model: "nn.Module", config: "TrainConfig", phases: "Sequence[Phase]", out: Path | None
) -> "tuple[History, tuple[str, ...]]":
    """Train with a bar, in phases where declared; return what happened, and what was done about a network that ailed.

    An interruption says how to resume.
    """
    from topiarist.training import train_phases
    from topiarist.training.rescue import train_with_rescue

    if phases:
        with epoch_bar(sum(phase.epochs for phase in phases), "training in phases") as on_epoch:
            return train_phases(model, data, phases, config, on_epoch=on_epoch)[-1], ()
    checkpoint = checkpoint_beside(out)
    with going_on_from(checkpoint), epoch_bar(last_epoch(model, data, config), "training") as on_epoch:
        (history,), notes = train_with_rescue([model], [data], [config], checkpoint=checkpoint, on_epoch=on_epoch)
        return history, notes


def last_epoch(model: "nn.Module", data: "Data", config: "TrainConfig") -> int:
    """Return the number of the last epoch of a training."""
    from topiarist.training.stretches import steps_per_epoch

    per_epoch = 1 if config.steps is None else steps_per_epoch(model, data, config)
    return config.last_epoch(per_epoch)


def checkpoint_beside(out: Path | None) -> Path | None:
    """Name the checkpoint of what will be written; nothing is kept of what will not."""
    return None if out is None else out.with_name(f"{out.name}.checkpoint")


@contextmanager
def going_on_from(checkpoint: Path | None) -> Iterator[None]:
    """Say how to go on where Ctrl-C ends the block."""
    try:
        yield
    except KeyboardInterrupt:
        saved = checkpoint is not None and checkpoint.exists()
        hint = "run the same command again to go on" if saved else "nothing was written"
        raise InterruptionError(f"interrupted: {hint}") from None
