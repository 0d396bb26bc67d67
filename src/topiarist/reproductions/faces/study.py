"""Distinctiveness and genetic pruning of networks that recognise facial expressions, as one study.

After Tanovic, Comparison of distinctiveness pruning and genetic algorithms for the reduction of a fully trained neural
network: 10–H–7 sigmoid networks, Adam, batch 32, 5 repeats of 10 stratified folds. The text gives the length of the
training once as 300 steps and once as 300 epochs, and no scaling: all of these readings are run. Beside the paper's own
methods stand ours, at the sizes that the paper's end at.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

from topiarist.data import Scaling
from topiarist.reproductions.faces import methods, paper
from topiarist.reproductions.faces.methods import Rewound
from topiarist.reproductions.findings import Overrides, name_variants
from topiarist.study.study import Study

Entry = tuple[str, dict[str, Any], Overrides]  # a part, what finds a configuration in it, and the configuration
LEARNING_RATE, BATCH_SIZE = 0.01, 32  # sections 2.3 and 3.2
SCALING_NAMES: dict[Scaling, str] = {"zscore": "z-scores", "minmax": "min–max", "unit": "unit norm"}


@dataclass(frozen=True)
class FacesReading:
    """One way to read what the paper leaves open: the unit of the length of training, and the scaling."""

    length: Literal["steps", "epochs"]
    scaling: Scaling

    @property
    def name(self) -> str:
        """How tables name it."""
        return f"{paper.LENGTH} {self.length}, {SCALING_NAMES[self.scaling]}"


READINGS = tuple(FacesReading(length, scaling) for length in ("steps", "epochs") for scaling in SCALING_NAMES)
DEFAULT = READINGS[0]  # with it the published numbers come out on the paper's own features


@dataclass(frozen=True, kw_only=True)
class FacesScope:
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


FULL = FacesScope(
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
QUICK = FacesScope(
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
class FacesPlan:
    """The study, and the label under which each part finds its configurations; equal ones are run once."""

    study: Study
    scope: FacesScope
    rewound: Rewound
    labels: Mapping[tuple[str, tuple[tuple[str, Any], ...]], str] = field(repr=False)

    def rows(self, part: str) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield the keys and the label of each configuration of a part."""
        for (name, keys), label in self.labels.items():
            if name == part:
                yield dict(keys), label


def plan_faces(
    location: str, *, samples: int, projection: tuple[tuple[int, int], ...] | None, scope: FacesScope, seed: int
) -> FacesPlan:
    """Declare one study for all tables and figures, for data of so many samples."""
    steps_per_epoch = math.ceil(samples * (scope.folds - 1) / scope.folds / BATCH_SIZE)
    rewound = Rewound.of(scope.length, steps_per_epoch)
    variants, labels = name_variants(
        ((part, tuple(keys.items())), f"{part}: {', '.join(f'{name} {key}' for name, key in keys.items())}", overrides)
        for part, keys, overrides in (*_paper_entries(scope), *_other_entries(scope, rewound))
    )
    data: Overrides = {"location": location, "seed": seed, "validation_fraction": 0.0}
    study = Study(
        name="faces",
        data=data | ({} if projection is None else {"projection": projection}),
        model={"hidden": [100], "activation": "sigmoid"},
        training={"learning_rate": LEARNING_RATE, "batch_size": BATCH_SIZE},
        variants=variants,
        folds=scope.folds,
        seeds=list(range(seed, seed + scope.repeats)),
        new_folds_per_seed=True,
        models=False,
    )
    return FacesPlan(study, scope, rewound, labels)


def _paper_entries(scope: FacesScope) -> Iterator[Entry]:
    """Yield what the paper itself reports, in the default reading."""
    for rate, size in product(scope.rates, scope.table_sizes):
        yield "table 1", {"learning rate": rate, "units": size}, _network(scope, size, rate=rate)
    long_training: Overrides = {  # the training part and a part that is held out are both watched
        "data": {"scaling": DEFAULT.scaling, "validation_fraction": 0.2},
        "model": {"hidden": [20]},
        "training": {"epochs": scope.long_epochs, "watch_training": True},
    }
    yield "long training", {"units": 20}, long_training
    for angle in scope.angles:
        yield "angles", {"angle": angle}, _network(scope, 100, methods.distinctive(angle))
    for size in scope.penalty_sizes:
        for fitness, penalties in (("relative", scope.penalties), ("absolute", scope.absolute_penalties)):
            for penalty in penalties:
                keys = {"fitness": fitness, "units": size, "penalty": penalty}
                yield "penalties", keys, _network(scope, size, methods.genetic(penalty, fitness))
    for size, (name, method) in product(scope.sizes, methods.VARIANTS.items()):
        yield "variants", {"units": size, "variant": name}, _network(scope, size, method)


def _other_entries(scope: FacesScope, rewound: Rewound) -> Iterator[Entry]:
    """Yield other readings of the paper, and ours."""
    for reading, size, (name, method) in product(READINGS, scope.sizes, methods.VARIANTS.items()):
        keys = {"length": reading.length, "scaling": reading.scaling, "units": size, "variant": name}
        yield "readings", keys, _network(scope, size, method, reading=reading)
    for order, size, angle in product(methods.PAIR_ORDERS, scope.sizes, (15, 45)):
        keys = {"order": order, "units": size, "variant": f"{angle}°"}
        yield "pair orders", keys, _network(scope, size, methods.distinctive(angle, order))
    searches = product(methods.SEARCH_READINGS.items(), scope.search_sizes, methods.READ_SEARCHES.items())
    for (reading_name, changes), size, (name, search) in searches:
        keys = {"reading": reading_name, "units": size, "search": name}
        yield "search readings", keys, _network(scope, size, {**search, **changes})
    for size in scope.sizes:
        for part, variants in (("ours", methods.ours(size, rewound)), ("searches", methods.SEARCHES)):
            for name, method in variants.items():
                yield part, {"units": size, "variant": name}, _network(scope, size, method)


def _network(
    scope: FacesScope,
    size: int,
    method: Overrides = methods.UNPRUNED,
    *,
    rate: float = LEARNING_RATE,
    reading: FacesReading = DEFAULT,
) -> Overrides:
    """Return the settings of one network, those of the study left out."""
    training = {reading.length: scope.length} | ({} if rate == LEARNING_RATE else {"learning_rate": rate})
    found: Overrides = {"data": {"scaling": reading.scaling}, "model": {"hidden": [size]}, "training": training}
    return found | ({"method": method} if method else {})
