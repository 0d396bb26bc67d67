"""Judges the networks of the scenes, alone and as ensembles: what they answer, and what they take on disk."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import pandas
from numpy.typing import NDArray
from torch import Tensor, nn

from topiarist.data import Part, Source
from topiarist.measurement.size import BYTES_PER_KB
from topiarist.models import Ensemble
from topiarist.recipes.scenes import VGG_MEMBERS, Plan
from topiarist.recipes.scenes_paper import BUDGET_KB
from topiarist.storage import Packing, load, serialise
from topiarist.storage.quantising import rounded
from topiarist.study.declaration import Cell
from topiarist.study.results import Results
from topiarist.study.samples import Samples, source_key
from topiarist.study.statistics import Interval, bootstrap_macro_gain
from topiarist.training.inference import part_logits
from topiarist.training.metrics import accuracy, log_loss, macro_accuracy

FEW_BITS = 8
PRICE_POINTS = 1.0  # of macro accuracy, for a file of twice the size
Answers = tuple[NDArray[Any], NDArray[Any]]  # the gain of an ensemble over its mean member on each clip, and its class


@dataclass(frozen=True)
class Judged:
    """A row for each network and ensemble, and for each kind how much an ensemble gains over its mean member."""

    rows: pandas.DataFrame
    gains: Mapping[str, Interval]


def judge_scenes(plan: Plan, results: Mapping[str, Results], sources: Mapping[str, Source]) -> Judged:
    """Judge every network on the test part of its fold, and the ensembles made of them."""
    rows: list[dict[str, Any]] = []
    gains: dict[str, Interval] = {}
    samples = samples_of(plan.vgg.cells, sources)
    for kind in plan.scope.kinds:
        answers: list[Answers] = []
        for fold in [None] if plan.scope.folds is None else range(plan.scope.folds):
            cell = next(cell for cell in plan.vgg.cells if cell.label == kind and cell.fold == fold)
            test = samples.of(cell).test
            assert isinstance(test, Part)
            judged = [judge_team(members, test) for members in teams(plan, results, kind, fold)]
            for run, team in enumerate(judged):
                rows += [{"kind": kind, "fold": fold, "run": run, **figures} for figures, _ in team]
            if judged:  # of each clip, the mean over runs: runs are no other clips
                better = [gain([logits for _, logits in team], test.y) for team in judged]
                answers.append((numpy.mean(better, axis=0), test.y.numpy()))
        if answers:
            gains[kind] = bootstrap_macro_gain(*map(numpy.concatenate, zip(*answers, strict=True)))
    return Judged(pandas.DataFrame(rows, columns=None if rows else ["kind", "network"]), gains)


def judge_team(members: Sequence[nn.Module], test: Part) -> list[tuple[dict[str, Any], Tensor]]:
    """Judge five V, one I and the ensemble of them; give figures and logits of each."""
    networks = [*[("V", member) for member in members[:-1]], ("I", members[-1]), ("E", Ensemble(members))]
    judged = [(name, *judge(network, test)) for name, network in networks]
    return [({"network": name, **figures}, logits) for name, figures, logits in judged]


def samples_of(cells: Sequence[Cell], sources: Mapping[str, Source]) -> Samples:
    """Give what finds the data of a cell."""
    return Samples({source_key(cell.settings.data): sources[cell.settings.data.location] for cell in cells})


def found_networks(results: Results, kind: str, fold: int | None) -> dict[int, nn.Module]:
    """Load the networks of a kind and a fold, by seed."""
    rows = [row for row in results.rows if row["label"] == kind and row["fold"] == fold and row["state"] == "done"]
    return {row["seed"]: load(results.model_path(row)) for row in rows}


def teams(plan: Plan, results: Mapping[str, Results], kind: str, fold: int | None) -> Iterator[list[nn.Module]]:
    """Put the five V and the one I of each run together; a run that lacks one is left out."""
    vgg, inception = (found_networks(results[name], kind, fold) for name in ("vgg", "inception"))
    for run in range(plan.scope.runs):
        seeds = range(plan.seed + run * VGG_MEMBERS, plan.seed + (run + 1) * VGG_MEMBERS)
        members = [vgg.get(seed) for seed in seeds] + [inception.get(plan.seed + run)]
        found = [member for member in members if member is not None]
        if len(found) == len(members):
            yield found


def judge(network: nn.Module, test: Part) -> tuple[dict[str, Any], Tensor]:
    """Give the figures of a network, and its logits; KB of what is not zero at 4 bytes each, as the paper counts."""
    logits, y = part_logits(network, test)
    of_few_bits, _ = part_logits(rounded(network, FEW_BITS), test)
    nonzero = count_numbers(network)
    figures = {
        "micro": accuracy(logits, y),
        "macro": macro_accuracy(logits, y),
        "log loss": log_loss(logits, y),
        "non-zero": nonzero,
        "paper's KB": nonzero * 4 / BYTES_PER_KB,
        **{
            f"KB, {bits} bits": len(serialise(network, packing=Packing(bits=bits))) / BYTES_PER_KB
            for bits in (32, 16, FEW_BITS)
        },
        f"macro, {FEW_BITS} bits": macro_accuracy(of_few_bits, y),
    }
    return figures, logits


def count_numbers(network: nn.Module) -> int:
    """Count what is not zero, with the moving averages of batch norm, as the paper does."""
    tensors = network.state_dict().items()
    return sum(int(value.count_nonzero()) for name, value in tensors if value.is_floating_point() and name != WEIGHTS)


WEIGHTS = "log_weights"  # of an ensemble's members: not what the paper counts


def gain(logits: Sequence[Tensor], y: Tensor) -> NDArray[Any]:
    """Give by how much the last, the ensemble, answers each clip better than the others do on average."""
    right = numpy.stack([(found.argmax(dim=1) == y).numpy() for found in logits]).astype(float)
    better: NDArray[Any] = right[-1] - right[:-1].mean(axis=0)
    return better


def joint_score(macro: float, kilobytes: float) -> float:
    """Give one measure of accuracy and size: points of macro accuracy, less one for each doubling beyond the budget.

    Below the budget a point is added for each halving: of two networks with the same measure, the larger one is better
    by a point for each time that it is twice as large.
    """
    return 100 * macro - PRICE_POINTS * math.log2(kilobytes / BUDGET_KB)
