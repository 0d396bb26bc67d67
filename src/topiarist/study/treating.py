"""Applies the methods of a study to the trained networks of a stack: folds of one configuration together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from topiarist.data import Data
from topiarist.measurement import Budget
from topiarist.methods import Distinctiveness, Rewinding
from topiarist.methods.jobs import make_job
from topiarist.methods.shaping import Shaped, Shaping, cut_together
from topiarist.study.declaration import Cell
from topiarist.study.treatments import Cut, NoTreatment, Treatment
from topiarist.training import History

Trained = tuple[nn.Module, Data, History]
Early = dict[tuple[str, int], nn.Module]


@dataclass(frozen=True)
class TreatedNetwork:
    """What a method made of a network: for how many epochs it was trained again, and the lineage of an evolution."""

    model: nn.Module
    epochs: int = 0
    lineage: Mapping[str, Any] | None = None


Treated = dict[str, TreatedNetwork | Exception]


def treat_all(cells: Sequence[Cell], trained: Mapping[str, Trained], early: Early) -> Treated:
    """Give, by the hash of each cell, what its method makes of its network, or why it makes nothing."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.settings.method.model_dump_json(), []).append(cell)
    found: Treated = {}
    for group in groups.values():
        found |= treat_group(group, trained, early)
    return found


def treat_group(cells: Sequence[Cell], trained: Mapping[str, Trained], early: Early) -> Treated:
    """Treat cells of one method as one; where that fails, each alone, so that only the guilty fail."""
    try:
        return dict(zip([cell.hash for cell in cells], treat(cells, trained, early), strict=True))
    except Exception as error:  # whatever a method raises is the cell's result
        if len(cells) == 1:
            return {cells[0].hash: error}
        return {name: result for cell in cells for name, result in treat_group([cell], trained, early).items()}


def treat(cells: Sequence[Cell], trained: Mapping[str, Trained], early: Early) -> list[TreatedNetwork]:
    """Apply the method that all these cells have."""
    networks = [trained[cell.training_key] for cell in cells]
    if isinstance(cells[0].settings.method, NoTreatment):
        return [TreatedNetwork(model) for model, _, _ in networks]
    shaping = shaping_of(cells[0])
    jobs = [
        make_job(
            model,
            data,
            shaping.method,
            early=None if (epoch := rewound_epoch(cell)) is None else early.get((cell.training_key, epoch)),
            seed=cell.training_seed,
        )
        for cell, (model, data, _) in zip(cells, networks, strict=True)
    ]
    shaping.check(jobs)
    return [TreatedNetwork(each.model, epochs_of(each), each.lineage) for each in cut_together(jobs, shaping)]


def epochs_of(shaped: Shaped) -> int:
    """Count the epochs for which a network was trained again, those of an evolution included."""
    evolution = 0 if shaped.lineage is None else shaped.lineage["epochs"]
    return sum(map(len, shaped.histories), evolution)


def shaping_of(cell: Cell) -> Shaping:
    """Give a cell's method as `shape` takes it."""
    match cell.settings.method:
        case Cut(keep=keep):
            return Shaping(method=Distinctiveness(keep_fraction=keep))
        case Treatment(budget=budget, retraining=retraining) as method:
            return Shaping(method=method, budget=budget or Budget(), retraining=retraining)
        case other:
            raise AssertionError(f"{other} is no method")


def rewound_epoch(cell: Cell) -> int | None:
    """Give the epoch to whose weights a cell's method rewinds, where it does."""
    match cell.settings.method:
        case Treatment(retraining=Rewinding(weights=True, epoch=epoch)):
            return epoch
        case _:
            return None
