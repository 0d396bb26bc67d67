"""Distinctiveness and genetic pruning of networks that tell expressions apart, as one study.

After Tanovic, Comparison of distinctiveness pruning and genetic algorithms for the reduction of a fully trained neural
network: 10–H–7 sigmoid networks, Adam, batch 32, 300 epochs, stratified folds. Beside the paper's own methods stand
ours, at the sizes that the paper's end at.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from topiarist.data import Scaling
from topiarist.study.study import Study

Overrides = dict[str, Any]
Keys = Mapping[str, Any]
SCALINGS: tuple[Scaling, ...] = ("unit", "zscore", "minmax")
LEARNING_RATE = 0.01
EPOCHS = 300
KEPT = 25  # about what 45° leaves of every start
DEFAULTS = {"penalty": 0, "fitness": "relative"}  # left out, so that what is the same is run once
VARIANTS: dict[str, Overrides] = {
    "unpruned": {"name": "none"},
    "15°": {"name": "distinctiveness", "published": True, "angle_degrees": 15},
    "45°": {"name": "distinctiveness", "published": True, "angle_degrees": 45},
    "λ = 0": {"name": "genetic", "published": True},
    "λ = 50": {"name": "genetic", "published": True, "penalty": 50},
}


@dataclass(frozen=True, kw_only=True)
class Scope:
    """How much is run."""

    folds: int
    sizes: tuple[int, ...]
    table_sizes: tuple[int, ...]
    rates: tuple[float, ...]
    angles: tuple[int, ...]
    penalties: tuple[float, ...]
    penalty_sizes: tuple[int, ...]
    long_epochs: int
    paper_rewound: bool  # whether the paper's cuts are rewound too: they differ in width, and are trained one by one


FULL = Scope(
    folds=10,
    sizes=(20, 50, 100, 200, 500),
    table_sizes=(10, 20, 50, 100, 200, 500, 1000),
    rates=(0.01, 0.001, 0.0001),
    angles=tuple(range(0, 95, 5)),
    penalties=(0, 10, 25, 50, 75, 100),
    penalty_sizes=(50, 100, 200, 500),
    long_epochs=2000,
    paper_rewound=True,
)
QUICK = Scope(
    folds=5,
    sizes=(20, 100, 500),
    table_sizes=(20, 100, 500),
    rates=(0.01, 0.001),
    angles=(0, 15, 30, 45, 60, 75, 90),
    penalties=(0, 50, 100),
    penalty_sizes=(20, 100),
    long_epochs=600,
    paper_rewound=False,
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
    labels: Mapping[tuple[str, tuple[tuple[str, Any], ...]], str] = field(repr=False)

    def rows(self, part: str) -> Iterator[tuple[dict[str, Any], str]]:
        """Give the keys and the label of each configuration of a part."""
        for (name, keys), label in self.labels.items():
            if name == part:
                yield dict(keys), label


def plan_faces(location: str, *, projection: tuple[tuple[int, int], ...] | None, scope: Scope, seed: int) -> Plan:
    """Declare one study for all tables and figures."""
    variants: dict[str, Overrides] = {}
    labels: dict[tuple[str, tuple[tuple[str, Any], ...]], str] = {}
    for entry in entries(scope):
        known = next((label for label, overrides in variants.items() if overrides == entry.overrides), None)
        label = known or f"{entry.part}: {', '.join(f'{name} {value}' for name, value in entry.keys.items())}"
        variants[label] = entry.overrides
        labels[entry.part, tuple(entry.keys.items())] = label
    data: Overrides = {"location": location, "seed": seed, "validation_fraction": 0.0}
    study = Study(
        name="faces",
        data=data | ({} if projection is None else {"projection": projection}),
        model={"hidden": [100], "activation": "sigmoid"},
        training={"epochs": EPOCHS, "learning_rate": LEARNING_RATE, "batch_size": 32},
        variants=[{"name": label, **overrides} for label, overrides in variants.items()],
        folds=scope.folds,
        seeds=[seed],
        models=False,
    )
    return Plan(study, scope, labels)


def entries(scope: Scope) -> Iterator[Entry]:
    """Give everything that is run, part by part."""
    for rate in scope.rates:
        for size in scope.table_sizes:
            yield Entry("table 1", {"learning rate": rate, "units": size}, network(size, rate=rate))
    yield Entry("long training", {"units": 20}, long_training(scope.long_epochs))
    for scaling in SCALINGS:
        for size in scope.sizes:
            for name in ("unpruned", "15°", "45°"):
                overrides = network(size, scaling=scaling, method=VARIANTS[name])
                yield Entry("scalings", {"scaling": scaling, "units": size, "variant": name}, overrides)
    for angle in scope.angles:
        method = {**VARIANTS["15°"], "angle_degrees": angle}
        yield Entry("angles", {"angle": angle}, network(100, method=method))
    for size in scope.penalty_sizes:
        for fitness in ("relative", "absolute"):
            for penalty in scope.penalties:
                method = {**VARIANTS["λ = 0"], "penalty": penalty, "fitness": fitness}
                keys: Keys = {"fitness": fitness, "units": size, "penalty": penalty}
                yield Entry("penalties", keys, network(size, method=method))
    for size in scope.sizes:
        for name, method in VARIANTS.items():
            yield Entry("variants", {"units": size, "variant": name}, network(size, method=method))
        for name, method in ours(size, paper_rewound=scope.paper_rewound).items():
            yield Entry("ours", {"units": size, "variant": name}, network(size, method=method))
        for name, method in searches().items():
            yield Entry("searches", {"units": size, "variant": name}, network(size, method=method))


def network(size: int, *, rate: float = LEARNING_RATE, scaling: str = "unit", method: Keys | None = None) -> Overrides:
    """Give the settings of one network, those of the study left out."""
    found: Overrides = {"data": {"scaling": scaling}, "model": {"hidden": [size]}}
    if rate != LEARNING_RATE:
        found["training"] = {"learning_rate": rate}
    if method is not None and method["name"] != "none":
        found["method"] = {name: value for name, value in method.items() if DEFAULTS.get(name) != value}
    return found


def long_training(epochs: int) -> Overrides:
    """Train for long, and watch a part that is held out."""
    return {
        "data": {"scaling": "unit", "validation_fraction": 0.2},
        "model": {"hidden": [20]},
        "training": {"epochs": epochs},
    }


def ours(size: int, *, paper_rewound: bool) -> dict[str, Overrides]:
    """Cut to the size at which the paper's 45° ends: by the paper's method and by ours, with and without training."""
    keep: Overrides = {"name": "distinctiveness", "keep_fraction": min(1.0, KEPT / size)}
    published = VARIANTS["45°"]
    tuning: Overrides = {"kind": "fine-tuning", "epochs": 5, "distillation": None}
    distilled: Overrides = {"kind": "fine-tuning", "epochs": 5}
    late = {"kind": "rewinding", "epoch": EPOCHS - 50}
    early = {"kind": "rewinding", "epoch": 10, "weights": True}
    return {
        "unpruned": VARIANTS["unpruned"],
        "paper, 45°": published,
        "paper, 45°, fine-tuned": {**published, "retraining": tuning},
        **(
            {
                "paper, 45°, rate rewound": {**published, "retraining": late},
                "paper, 45°, weights rewound": {**published, "retraining": early},
            }
            if paper_rewound
            else {}
        ),
        "ours": keep,
        "ours, fine-tuned": {**keep, "retraining": tuning},
        "ours, fine-tuned by distillation": {**keep, "retraining": distilled},
        "ours, rate rewound": {**keep, "retraining": late},
        "ours, weights rewound": {**keep, "retraining": early},
        "ours, in 4 rounds": {**keep, "rounds": 4, "retraining": distilled},
    }


def searches() -> dict[str, Overrides]:
    """Genetic searches whose final sizes are compared over all starts."""
    return {
        "relative, λ = 50": VARIANTS["λ = 50"],
        "absolute, λ = 1": {**VARIANTS["λ = 0"], "penalty": 1, "fitness": "absolute"},
        "refitted, λ = 1": {"name": "genetic", "fitness": "refitted", "penalty": 1, "judged_on": "training"},
    }
