"""Applies the methods of a study to the trained networks of a stack: folds of one configuration together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import nn

from topiarist.data import Data
from topiarist.evolution.lineage import Lineage
from topiarist.methods import Rewinding
from topiarist.methods.job import make_job
from topiarist.methods.method import NO_BUDGET, Resizing
from topiarist.methods.outcome import Outcome
from topiarist.methods.resizing import resize_all
from topiarist.study.declaration import Cell
from topiarist.training import History

TrainedNetwork = tuple[nn.Module, Data, History]
EarlyNetworks = dict[tuple[str, int], nn.Module]  # by training key and epoch


@dataclass(frozen=True)
class TreatedNetwork:
    """What a method made of a network: for how many epochs it was trained again, and the lineage of an evolution."""

    model: nn.Module
    epochs: int = 0
    lineage: Lineage | None = None


Treated = dict[str, TreatedNetwork | Exception]


def treat_all(cells: Sequence[Cell], trained: Mapping[str, TrainedNetwork], early: EarlyNetworks) -> Treated:
    """Return, by the hash of each cell, what its method makes of its network, or why it makes nothing."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.settings.method.model_dump_json(), []).append(cell)
    found: Treated = {}
    for group in groups.values():
        found |= _treat_group(group, trained, early)
    return found


def _treat_group(cells: Sequence[Cell], trained: Mapping[str, TrainedNetwork], early: EarlyNetworks) -> Treated:
    """Treat cells of one method as one; where that fails, each alone, so that only the guilty fail."""
    try:
        return dict(zip([cell.hash for cell in cells], _treat(cells, trained, early), strict=True))
    except Exception as error:  # whatever a method raises is the cell's result
        if len(cells) == 1:
            return {cells[0].hash: error}
        return {name: result for cell in cells for name, result in _treat_group([cell], trained, early).items()}


def _treat(cells: Sequence[Cell], trained: Mapping[str, TrainedNetwork], early: EarlyNetworks) -> list[TreatedNetwork]:
    """Apply the method that all these cells have."""
    declared = cells[0].settings.method
    networks = [trained[cell.training_key] for cell in cells]
    if declared.method is None:
        return [TreatedNetwork(model) for model, _, _ in networks]
    resizing = Resizing(
        method=declared.method,
        budget=declared.budget or NO_BUDGET,
        retraining=declared.retraining,
        settling=declared.settling,
    )
    epoch = rewound_epoch(cells[0])
    jobs = [
        make_job(
            model,
            data,
            early=None if epoch is None else early.get((cell.training_key, epoch)),
            seed=cell.training_seed,
            all_samples=declared.method.traits.all_samples,
        )
        for cell, (model, data, _) in zip(cells, networks, strict=True)
    ]
    for job in jobs:
        resizing.check(job)
    outcomes = resize_all(jobs, resizing)
    return [TreatedNetwork(outcome.model, _epochs_of(outcome), outcome.lineage) for outcome in outcomes]


def _epochs_of(outcome: Outcome) -> int:
    """Return for how many epochs a network was trained again, those of an evolution included."""
    evolution = 0 if outcome.lineage is None else outcome.lineage.epochs
    return sum(map(len, outcome.histories), evolution)


def rewound_epoch(cell: Cell) -> int | None:
    """Return the epoch to whose weights a cell's method rewinds, where it does."""
    retraining = cell.settings.method.retraining
    return retraining.epoch if isinstance(retraining, Rewinding) and retraining.weights else None
