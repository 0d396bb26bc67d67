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
from topiarist.measurement.footprint import BYTES_PER_KB
from topiarist.models import Ensemble
from topiarist.reproductions.scenes.paper import BUDGET_KB
from topiarist.reproductions.scenes.study import Plan
from topiarist.statistics import Interval, bootstrap_macro_gain
from topiarist.storage import Packing, load, serialise
from topiarist.storage.quantising import rounded
from topiarist.study.declaration import Cell
from topiarist.study.results import Results
from topiarist.reproductions.surgeon.runs import Samples
from topiarist.study.samples import source_key
from topiarist.training.inference import part_logits
from topiarist.training.metrics import accuracy, log_loss, macro_accuracy

FEW_BITS = 8
PRICE_POINTS = 1.0  # of macro accuracy, for a file of twice the size
Answers = tuple[NDArray[Any], NDArray[Any]]  # the gain of an ensemble over its mean member on each clip, and its class


@dataclass(frozen=True)
class Judged:
    """One row per network and ensemble, and for each kind how much an ensemble gains over its mean member."""

    rows: pandas.DataFrame
    gains: Mapping[str, Interval]


@dataclass(frozen=True)
class Team:
    """What one run trained: some V and some I, and which of them make its ensemble."""

    vgg: list[nn.Module]
    inception: list[nn.Module]
    members: list[nn.Module]


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
            judged = [judge_team(team, test) for team in teams(plan, results, kind, fold)]
            for run, (found, _) in enumerate(judged):
                rows += [{"kind": kind, "fold": fold, "run": run, **figures} for figures in found]
            if judged:  # of each clip, the mean over runs: runs are no other clips
                better = [gain(logits, test.y) for _, logits in judged]
                answers.append((numpy.mean(better, axis=0), test.y.numpy()))
        if answers:
            gains[kind] = bootstrap_macro_gain(*map(numpy.concatenate, zip(*answers, strict=True)))
    return Judged(pandas.DataFrame(rows, columns=None if rows else ["kind", "network", "macro", "non-zero"]), gains)


def judge_team(team: Team, test: Part) -> tuple[list[dict[str, Any]], list[Tensor]]:
    """Judge the V, the I and the ensemble of a run; return figures of each, and the logits of members and ensemble."""
    networks = [("V", network) for network in team.vgg] + [("I", network) for network in team.inception]
    judged = [(name, network, *judge(network, test)) for name, network in networks]
    figures, logits = judge(Ensemble(team.members), test)
    of_members = [found for _, network, _, found in judged if any(network is member for member in team.members)]
    rows = [{"network": name, **found} for name, _, found, _ in judged]
    return [*rows, {"network": "E", **figures}], [*of_members, logits]


def judge_depths(plan: Plan, results: Results, sources: Mapping[str, Source]) -> pandas.DataFrame:
    """Judge the networks of Table 4 as those of Table 3; one row per network."""
    assert plan.depths is not None
    samples = samples_of(plan.depths.cells, sources)
    rows = []
    for label in results.labels:
        for fold in [None] if plan.scope.folds is None else range(plan.scope.folds):
            cell = next(cell for cell in plan.depths.cells if cell.label == label and cell.fold == fold)
            test = samples.of(cell).test
            assert isinstance(test, Part)
            for run, network in enumerate(found_networks(results, label, fold).values()):
                rows.append({"network": label, "fold": fold, "run": run, **judge(network, test)[0]})
    return pandas.DataFrame(rows, columns=None if rows else ["network", "macro"])


def samples_of(cells: Sequence[Cell], sources: Mapping[str, Source]) -> Samples:
    """Give what finds the data of a cell."""
    return Samples({source_key(cell.settings.data): sources[cell.settings.data.location] for cell in cells})


def found_networks(results: Results, kind: str, fold: int | None) -> dict[int, nn.Module]:
    """Load the networks of a kind and a fold, by seed."""
    rows = [row for row in results.rows if row["label"] == kind and row["fold"] == fold and row["state"] == "done"]
    return {row["seed"]: load(results.model_path(row)) for row in rows}


def teams(plan: Plan, results: Mapping[str, Results], kind: str, fold: int | None) -> Iterator[Team]:
    """Put the V and the I of each run together; a run that lacks one is left out."""
    scope = plan.scope
    vgg, inception = (found_networks(results[name], kind, fold) for name in ("vgg", "inception"))
    for run in range(scope.runs):
        some_vgg = of_run(vgg, plan.seed, run, scope.vgg_trained)
        some_inception = of_run(inception, plan.seed, run, scope.inception_trained)
        if some_vgg is not None and some_inception is not None:
            members = [*some_vgg[: scope.vgg_members], *some_inception[: scope.inception_members]]
            yield Team(some_vgg, some_inception, members)


def of_run(found: Mapping[int, nn.Module], seed: int, run: int, count: int) -> list[nn.Module] | None:
    """Return the networks of a run, which has `count` seeds; None where one is missing."""
    networks = [found.get(number) for number in range(seed + run * count, seed + (run + 1) * count)]
    there = [network for network in networks if network is not None]
    return there if len(there) == count else None


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
