"""Trains one network of the comparison, plainly or by the Surgeon, and records what it is worth and what it took."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from topiarist.data import AnyPart, Data, Part
from topiarist.errors import ModelError
from topiarist.measurement import measure
from topiarist.methods import shape
from topiarist.models import mlp
from topiarist.models.activations import find_activation, initialise
from topiarist.models.evaluation import count_parameters
from topiarist.randomness import generator
from topiarist.reproductions.surgeon.study import TOPOLOGIES, Run
from topiarist.surgery import Plan
from topiarist.surgery.applying import rebuild
from topiarist.training import History, train

Record = dict[str, Any]
OnShare = Callable[[float], None]


@dataclass(frozen=True)
class Task:
    """A run, the file with which it resumes after an interruption, and the edits of the topology that it trains."""

    run: Run
    checkpoint: Path | None
    plan: Mapping[str, Any] | None = None


def network_of(run: Run, data: Data) -> nn.Module:
    """Build the network that a run begins with."""
    sizes = [math.prod(data.input_shape), *TOPOLOGIES[run.topology], len(data.classes)]
    return mlp(sizes, generator=generator(run.drawn_seed, "initial weights"))


def fresh_network(task: Task, data: Data) -> nn.Module:
    """Build the network to train: that of the run, or the topology that edits make of it, with new weights.

    Layers are initialised as in `mlp`: for ReLU, and by Glorot where no activation follows, which is the last layer and
    the thin one of a truncated SVD.
    """
    start = network_of(task.run, data)
    if task.plan is None:
        return start
    model = rebuild(Plan.from_record(task.plan), start)
    random = generator(task.run.drawn_seed, "weights of the final topology")
    linear = [(name, layer) for name, layer in model.named_modules() if isinstance(layer, nn.Linear)]
    for name, layer in linear:
        without = name.endswith(".narrow") or name == linear[-1][0]
        initialise(layer.weight, "glorot" if without else find_activation("relu").initialisation, generator=random)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
    unknown = next((name for name, value in model.named_parameters() if not bool(value.isfinite().all())), None)
    if unknown is not None:
        raise ModelError(f"the final topology has '{unknown}', for which no initial value is known")
    return model


def train_plainly(task: Task, data: Data, on_share: OnShare) -> Record:
    """Train a network of a fixed topology."""
    run, model = task.run, fresh_network(task, data)
    config, start = run.course, count_parameters(network_of(run, data))
    clock = time.perf_counter()
    history = train(
        model,
        data,
        config,
        checkpoint=task.checkpoint,
        on_epoch=lambda number, _: on_share(number / max(config.epochs, 1)),
    )
    seconds = time.perf_counter() - clock
    chosen_by = measure(model, data, part="validation", latency=False).accuracy
    found = measure(model, data, latency=False).to_json()
    work = {
        "trained_epochs": len(history),
        "sample_macs": float(len(history) * len(data.train) * found["macs"]),
        "curve": curve_of(history),
    }
    return {**record_of(found, chosen_by, start, seconds), **work}


def curve_of(history: History) -> list[tuple[int, float]]:
    """Return the validation accuracy after each epoch."""
    return [(each.number, each.validation_accuracy) for each in history.epochs if each.validation_accuracy is not None]


def train_by_surgeon(task: Task, data: Data, on_share: OnShare) -> Record:
    """Train a network, and change its topology on the way."""
    run, model = task.run, network_of(task.run, data)
    clock = time.perf_counter()
    outcome = shape(
        model,
        data,
        run.method,
        seed=run.drawn_seed,
        latency=False,
        checkpoint=task.checkpoint,
        on_progress=on_share,
    )
    seconds = time.perf_counter() - clock
    lineage = dict(outcome.lineage or {})
    found = record_of(outcome.after.to_json(), outcome.score[1], outcome.before.parameters, seconds)
    work = {name: lineage[name] for name in ("trained_epochs", "sample_macs")}
    return {**found, **work, "lineage": lineage, "reasons": outcome.reasons, "plan": outcome.plan.to_record()}


def record_of(measured: Mapping[str, Any], chosen_by: float, before: int, seconds: float) -> Record:
    """Return what a network is worth: on the test part, and on the part that the Surgeon chooses by."""
    return {
        "test_accuracy": measured["accuracy"],
        "test_log_loss": measured["log_loss"],
        "validation_accuracy": chosen_by,
        "parameters_before": before,
        "parameters": measured["parameters"],
        "seconds": seconds,
    }


def sizes_of_parts(data: Data) -> Record:
    """Return the number of samples of each part, and the share of the largest class where accuracies are measured."""
    sizes: Record = {f"{name}_samples": len(getattr(data, name)) for name in ("train", "validation", "test")}
    return {**sizes, **{f"{name}_majority": majority_of(getattr(data, name)) for name in ("validation", "test")}}


def majority_of(part: AnyPart) -> float:
    """Return the share of the largest class: what a network reaches that answers the same for every sample."""
    assert isinstance(part, Part)
    return float(torch.bincount(part.y).max() / len(part))
