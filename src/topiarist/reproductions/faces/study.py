"""Distinctiveness and genetic pruning of networks that tell expressions apart, as one study.

After Tanovic, Comparison of distinctiveness pruning and genetic algorithms for the reduction of a fully trained neural
network: 10–H–7 sigmoid networks, Adam, batch 32, 5 repeats of 10 stratified folds. The text gives the length of the
training once as 300 steps and once as 300 epochs, and no scaling: all of these readings are run. Beside the paper's own
methods stand ours, at the sizes that the paper's end at.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from topiarist.data import Scaling
from topiarist.reproductions.faces import paper
from topiarist.reproductions.faces.methods import SEARCH_READINGS, VARIANTS, Overrides, Rewound, ours, searches
from topiarist.study.study import Study

Keys = Mapping[str, Any]
LEARNING_RATE, BATCH_SIZE = 0.01, 32  # sections 2.3 and 3.2
DEFAULTS = {"penalty": 0, "fitness": "relative", "pairs": "in order"}  # left out, so that what is the same is run once


@dataclass(frozen=True)
class Reading:
    """One way to read what the paper leaves open: the unit of the length of training, and the scaling."""

    length: Literal["steps", "epochs"]
    scaling: Scaling

    @property
    def name(self) -> str:
        """How tables name it."""
        return f"{paper.LENGTH} {self.length}, {SCALING_NAMES[self.scaling]}"


SCALING_NAMES: dict[Scaling, str] = {"zscore": "z-scores", "minmax": "min–max", "unit": "unit norm"}
SCALINGS: tuple[Scaling, ...] = ("zscore", "minmax", "unit")
READINGS = tuple(Reading(length, scaling) for length in ("steps", "epochs") for scaling in SCALINGS)
DEFAULT = READINGS[0]  # with it the published numbers come out on the paper's own features


@dataclass(frozen=True, kw_only=True)
class Scope:
    """How much is run."""

    repeats: int
    folds: int
    sizes: tuple[int, ...]
    table_sizes: tuple[int, ...]
    rates: tuple[float, ...]
    angles: tuple[int, ...]
    penalties: tuple[float, ...]
    absolute_penalties: tuple[float, ...]
    penalty_sizes: tuple[int, ...]
    search_sizes: tuple[int, ...]
    long_epochs: int
    length: int = paper.LENGTH


FULL = Scope(
    repeats=5,  # the decimals of Table 3 are multiples of 0.02: 50 networks per cell
    folds=10,
    sizes=(20, 50, 100, 200, 500),
    table_sizes=(10, 20, 50, 100, 200, 500, 1000),
    rates=(0.01, 0.001, 0.0001),
    angles=tuple(range(0, 95, 5)),
    penalties=(0, 10, 25, 50, 75, 100),
    absolute_penalties=(0.001, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100),
    penalty_sizes=(50, 100, 200, 500),
    search_sizes=(50, 100, 500),
    long_epochs=2000,
)
QUICK = Scope(
    repeats=1,
    folds=5,
    sizes=(20, 100, 500),
    table_sizes=(20, 100, 500),
    rates=(0.01, 0.001),
    angles=(0, 15, 30, 45, 60, 75, 90),
    penalties=(0, 50, 100),
    absolute_penalties=(0.001, 0.1, 1, 100),
    penalty_sizes=(50, 100),
    search_sizes=(100,),
    long_epochs=600,
)


@dataclass(frozen=True)
class Entry:
    """One configuration in one part of the reproduction, found by its keys."""

    part: str
    keys: Keys
    overrides: Overrides


@dataclass(frozen=True)
class Plan:
    """The study, and where each part finds its configurations; equal ones are run once."""

    study: Study
    scope: Scope
    rewound: Rewound
    labels: Mapping[tuple[str, tuple[tuple[str, Any], ...]], str] = field(repr=False)

    def rows(self, part: str) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield the keys and the label of each configuration of a part."""
        for (name, keys), label in self.labels.items():
            if name == part:
                yield dict(keys), label


def plan_faces(
    location: str, *, samples: int, projection: tuple[tuple[int, int], ...] | None, scope: Scope, seed: int
) -> Plan:
    """Declare one study for all tables and figures, for data of so many samples."""
    steps_per_epoch = math.ceil(samples * (scope.folds - 1) / scope.folds / BATCH_SIZE)
    rewound = Rewound.of(scope.length, steps_per_epoch)
    variants: dict[str, Overrides] = {}
    labels: dict[tuple[str, tuple[tuple[str, Any], ...]], str] = {}
    for entry in entries(scope, rewound):
        known = next((label for label, overrides in variants.items() if overrides == entry.overrides), None)
        label = known or f"{entry.part}: {', '.join(f'{name} {value}' for name, value in entry.keys.items())}"
        variants[label] = entry.overrides
        labels[entry.part, tuple(entry.keys.items())] = label
    data: Overrides = {"location": location, "seed": seed, "validation_fraction": 0.0}
    study = Study(
        name="faces",
        data=data | ({} if projection is None else {"projection": projection}),
        model={"hidden": [100], "activation": "sigmoid"},
        training={"learning_rate": LEARNING_RATE, "batch_size": BATCH_SIZE},
        variants=[{"name": label, **overrides} for label, overrides in variants.items()],
        folds=scope.folds,
        seeds=list(range(seed, seed + scope.repeats)),
        new_folds_per_seed=True,
        models=False,
    )
    return Plan(study, scope, rewound, labels)


def entries(scope: Scope, rewound: Rewound) -> Iterator[Entry]:
    """Yield everything that is run, part by part."""
    yield from paper_entries(scope)
    for reading in READINGS:
        for size in scope.sizes:
            for name, method in VARIANTS.items():
                keys = {"length": reading.length, "scaling": reading.scaling, "units": size, "variant": name}
                yield Entry("readings", keys, network(scope, size, reading=reading, method=method))
    for order in ("in order", "most similar first", "all at once"):
        for size in scope.sizes:
            for name in ("15°", "45°"):
                method = {**VARIANTS[name], "pairs": order}
                keys = {"order": order, "units": size, "variant": name}
                yield Entry("pair orders", keys, network(scope, size, method=method))
    for reading_name, changes in SEARCH_READINGS.items():
        for size in scope.search_sizes:
            for name, fitness in searched().items():
                keys = {"reading": reading_name, "units": size, "search": name}
                yield Entry("search readings", keys, network(scope, size, method={**fitness, **changes}))
    for size in scope.sizes:
        for name, method in ours(size, rewound).items():
            yield Entry("ours", {"units": size, "variant": name}, network(scope, size, method=method))
        for name, method in searches().items():
            yield Entry("searches", {"units": size, "variant": name}, network(scope, size, method=method))


def paper_entries(scope: Scope) -> Iterator[Entry]:
    """Yield what the paper itself reports, in the default reading."""
    for rate in scope.rates:
        for size in scope.table_sizes:
            yield Entry("table 1", {"learning rate": rate, "units": size}, network(scope, size, rate=rate))
    yield Entry("long training", {"units": 20}, long_training(scope.long_epochs))
    for angle in scope.angles:
        method = {**VARIANTS["15°"], "angle_degrees": angle}
        yield Entry("angles", {"angle": angle}, network(scope, 100, method=method))
    for size in scope.penalty_sizes:
        for fitness, penalties in (("relative", scope.penalties), ("absolute", scope.absolute_penalties)):
            for penalty in penalties:
                method = {**VARIANTS["λ = 0"], "penalty": penalty, "fitness": fitness}
                keys = {"fitness": fitness, "units": size, "penalty": penalty}
                yield Entry("penalties", keys, network(scope, size, method=method))
    for size in scope.sizes:
        for name, method in VARIANTS.items():
            yield Entry("variants", {"units": size, "variant": name}, network(scope, size, method=method))


def searched() -> dict[str, Overrides]:
    """Return the searches that are tried in other readings: by both equations, with a small and a large penalty."""
    free = VARIANTS["λ = 0"]
    return {
        "λ = 0": free,
        "equation 5, λ = 50": VARIANTS["λ = 50"],
        "equation 6, λ = 0.1": {**free, "fitness": "absolute", "penalty": 0.1},
        "equation 6, λ = 10": {**free, "fitness": "absolute", "penalty": 10},
    }


def network(
    scope: Scope,
    size: int,
    *,
    rate: float = LEARNING_RATE,
    reading: Reading = DEFAULT,
    method: Keys | None = None,
) -> Overrides:
    """Return the settings of one network, those of the study left out."""
    found: Overrides = {"data": {"scaling": reading.scaling}, "model": {"hidden": [size]}}
    found["training"] = {reading.length: scope.length}
    if rate != LEARNING_RATE:
        found["training"]["learning_rate"] = rate
    if method is not None and method["name"] != "none":
        found["method"] = {name: value for name, value in method.items() if DEFAULTS.get(name) != value}
    return found


def long_training(epochs: int) -> Overrides:
    """Train for long, and watch both the training part and a part that is held out."""
    return {
        "data": {"scaling": DEFAULT.scaling, "validation_fraction": 0.2},
        "model": {"hidden": [20]},
        "training": {"epochs": epochs, "watch_training": True},
    }
