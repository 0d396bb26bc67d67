"""The work on a stack of cells: train the networks as one, treat and measure each."""

import math
import os
import platform
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version

import torch
from torch import nn

from topiarist.data import AnyPart, Data, Part
from topiarist.errors import ModelError, SettingsError, TopiaristWarning
from topiarist.files import JsonObject, canonical_json
from topiarist.measurement import measure
from topiarist.models import build_network
from topiarist.models.evaluation import numbers_of, placed
from topiarist.parallel import describe
from topiarist.randomness import generator
from topiarist.storage import serialise
from topiarist.study.declaration import Cell
from topiarist.study.samples import StudySamples
from topiarist.study.settings import CellSettings
from topiarist.study.treating import EarlyNetworks, TrainedNetwork, Treated, TreatedNetwork, rewound_epoch, treat_all
from topiarist.tracing import anatomy
from topiarist.training import History, TrainConfig, monte_carlo, reuse, train_many, train_phases
from topiarist.training.inference import first_sample, part_logits, weights_of

PACKAGES = ("topiarist", "torch", "numpy")


@dataclass(frozen=True, kw_only=True)
class CellStack:
    """Cells that one worker takes as one task; they are recorded together or not at all."""

    number: int
    cells: tuple[Cell, ...]
    cost: float
    keep_models: bool
    device: str | None = None  # where cells are trained that declare none


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """The figures of one cell, and its history and network as the content of files."""

    hash: str
    figures: JsonObject
    history: bytes
    model: bytes | None


@dataclass(frozen=True, kw_only=True)
class StackResult:
    """The results of a stack, why some of its cells have none, and where, when and with what they were made."""

    results: tuple[CellResult, ...]
    failures: dict[str, str] = field(default_factory=dict)
    started: float
    seconds: float
    machine: str
    versions: dict[str, str]


def run_stack(stack: CellStack, samples: StudySamples) -> StackResult:
    """Train, treat and measure; what would be a warning is in the figures."""
    started, clock = time.time(), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)
        trained = train_cells(first_of_each_training(stack.cells), samples, stack.device)
        early = train_early(stack.cells, samples, stack.device)
        results, failures = judge_all(stack, trained, treat_all(stack.cells, trained, early))
    return StackResult(
        results=results,
        failures=failures,
        started=started,
        seconds=time.perf_counter() - clock,
        machine=f"{platform.node()} ({platform.machine()}, {os.cpu_count()} cores)",
        versions={"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
    )


def first_of_each_training(cells: Sequence[Cell]) -> list[Cell]:
    """Return one cell for each network to train: methods and predictions share it."""
    return list({cell.training_key: cell for cell in reversed(cells)}.values())[::-1]


def train_cells(cells: Sequence[Cell], samples: StudySamples, device: str | None = None) -> dict[str, TrainedNetwork]:
    """Train one network per cell, as one computation where possible."""
    datas = [samples.of(cell) for cell in cells]
    models = start_networks(cells, datas, samples, device)
    configs = [train_config(cell, device) for cell in cells]
    phases = cells[0].settings.training.phases
    if phases:
        each = zip(models, datas, configs, strict=True)
        histories = [joined(train_phases(model, data, phases, config)) for model, data, config in each]
    else:
        histories = train_many(models, datas, configs)
    keys = [cell.training_key for cell in cells]
    return dict(zip(keys, zip(models, datas, histories, strict=True), strict=True))


def train_early(cells: Sequence[Cell], samples: StudySamples, device: str | None = None) -> EarlyNetworks:
    """Train the networks of early epochs, to which some methods rewind the weights."""
    found: EarlyNetworks = {}
    for epoch in sorted({epoch for epoch in map(rewound_epoch, cells) if epoch is not None}):
        some = first_of_each_training([cell for cell in cells if rewound_epoch(cell) == epoch])
        datas = [samples.of(cell) for cell in some]
        models = start_networks(some, datas, samples, device)
        configs = [train_config(cell, device).model_copy(update={"until_epoch": epoch}) for cell in some]
        train_many(models, datas, configs)
        found |= {(cell.training_key, epoch): model for cell, model in zip(some, models, strict=True)}
    return found


def start_networks(
    cells: Sequence[Cell], datas: Sequence[Data], samples: StudySamples, device: str | None = None
) -> list[nn.Module]:
    """Return fresh networks, or the lower layers of those that are trained first."""
    base = cells[0].settings.base
    if base is None:
        return [network_for(cell.settings, data, cell.training_seed) for cell, data in zip(cells, datas, strict=True)]
    base_datas = [samples.of_base(cell, base) for cell in cells]
    bases = [network_for(cell.settings, data, cell.training_seed) for cell, data in zip(cells, base_datas, strict=True)]
    shorter = {"epochs": base.epochs, "steps": None, "pruning": None}
    train_many(bases, base_datas, [train_config(cell, device).model_copy(update=shorter) for cell in cells])
    return [
        reuse(
            trained,
            classes=data.task.outputs,
            drop=base.drop,
            add=base.add,
            generator=generator(cell.training_seed, "head"),
        )
        for cell, trained, data in zip(cells, bases, datas, strict=True)
    ]


def network_for(settings: CellSettings, data: Data, seed: int) -> nn.Module:
    """Build the declared network for the data at hand."""
    return build_network(settings.model, input_shape=data.input_shape, classes=data.task.outputs, seed=seed)


def train_config(cell: Cell, device: str | None = None) -> TrainConfig:
    """Return the declared training with the cell's own seed, on a device where it declares none."""
    declared = cell.settings.training.model_dump(exclude={"phases", "seed"})
    return TrainConfig(**{**declared, "device": declared["device"] or device}, seed=cell.training_seed)


def joined(histories: Sequence[History]) -> History:
    """Number the epochs of all phases as one."""
    epochs = [epoch for history in histories for epoch in history.epochs]
    before = len(epochs) - len(histories[-1].epochs)
    return replace(
        histories[-1],
        epochs=tuple(replace(epoch, number=number) for number, epoch in enumerate(epochs, start=1)),
        kept_epoch=before + histories[-1].kept_epoch,
    )


def judge_all(
    stack: CellStack, trained: Mapping[str, TrainedNetwork], treated: Treated
) -> tuple[tuple[CellResult, ...], dict[str, str]]:
    """Judge every cell; a method that cannot do its work costs its own cell and no other."""
    results, failures = [], {}
    for cell in stack.cells:
        made = treated[cell.hash]
        try:
            if isinstance(made, Exception):
                raise made
            _, data, history = trained[cell.training_key]
            results.append(judge(cell, made, data, history, stack.keep_models))
        except Exception as error:  # whatever a method raises is the cell's result
            failures[cell.hash] = describe(error)
    return tuple(results), failures


def judge(cell: Cell, made: TreatedNetwork, data: Data, history: History, keep_model: bool) -> CellResult:
    """Measure the network of a cell; the lineage of an evolution is kept beside the history of the training."""
    treated = made.model
    figures = measure(treated, data, latency=cell.latency).to_json()
    passes = cell.settings.prediction.monte_carlo
    if passes is not None:
        figures |= stochastic_figures(treated, data, passes, cell.training_seed)
    figures |= {
        f"train_{data.task.primary}": primary_value(treated, data, data.train),
        f"validation_{data.task.primary}": primary_value(treated, data, data.validation),
        "units": units_of(treated, data),
        "train_samples": len(data.train),
        "epochs": len(history.epochs),
        "kept_epoch": history.kept_epoch,
        "retraining_epochs": made.epochs,
        "diverged_epoch": history.diverged_epoch,
    }
    lineage = {} if made.lineage is None else {"lineage": made.lineage.to_record()}
    return CellResult(
        hash=cell.hash,
        figures=figures,
        history=canonical_json(asdict(history) | lineage).encode(),
        model=serialise(treated, data=data) if keep_model else None,
    )


def primary_value(model: nn.Module, data: Data, part: AnyPart) -> float | None:
    """Return the metric that the task is judged by, of a part; None where it is empty, or not a finite number."""
    if not len(part):
        return None
    outputs, y = part_logits(model, part)
    found = data.task.value(data.task.primary_metric, outputs, y, weights_of(part))
    return found if math.isfinite(found) else None


def units_of(model: nn.Module, data: Data) -> int | None:
    """Count the units of all spaces that can change; None where the network cannot be looked at."""
    try:
        found = anatomy(model, placed(torch.cat([first_sample(data.train)] * 2), numbers_of(model)))
    except ModelError:
        return None
    return sum(space.size for space in found.free.values())


def stochastic_figures(model: nn.Module, data: Data, passes: int, seed: int) -> dict[str, float]:
    """Judge the mean prediction of many passes with dropout."""
    if not isinstance(data.test, Part):
        raise SettingsError("Monte-Carlo dropout needs samples in memory")
    task, weights = data.task, weights_of(data.test)
    mean = monte_carlo(model, data.test.x, passes=passes, seed=seed, task=task).mean.numpy()
    wanted, each = task.true_answers(data.test.y).numpy(), None if weights is None else weights.numpy()
    return {name: task.find_metric(name).value(mean, wanted, each) for name in task.reported}
