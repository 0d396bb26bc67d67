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
    answers: dict[str, list[Answers]] = {kind: [] for kind in plan.scope.kinds}
    samples = {name: samples_of(study.cells, sources) for name, study in plan.studies.items()}
    for kind in plan.scope.kinds:
        for fold in [None] if plan.scope.folds is None else range(plan.scope.folds):
            vgg, inception = (found_networks(results[name], kind, fold) for name in ("vgg", "inception"))
            cell = next(cell for cell in plan.vgg.cells if cell.label == kind and cell.fold == fold)
            test = samples["vgg"].of(cell).test
            assert isinstance(test, Part)
            for run, members in enumerate(teams(vgg, inception)):
                named = [*[("V", member) for member in members[:-1]], ("I", members[-1]), ("E", Ensemble(members))]
                judged = [judge(network, test) for _, network in named]
                place = {"kind": kind, "fold": fold, "run": run}
                rows += [
                    {**place, "network": name, **figures} for (name, _), (figures, _) in zip(named, judged, strict=True)
                ]
                answers[kind].append(gain([logits for _, logits in judged], test.y))
    return Judged(pandas.DataFrame(rows), {kind: pooled(found) for kind, found in answers.items() if found})


def samples_of(cells: Sequence[Cell], sources: Mapping[str, Source]) -> Samples:
    """Give what finds the data of a cell."""
    return Samples({source_key(cell.settings.data): sources[cell.settings.data.location] for cell in cells})


def found_networks(results: Results, kind: str, fold: int | None) -> list[nn.Module]:
    """Load the networks of a kind and a fold, in the order of their seeds."""
    rows = [row for row in results.rows if row["label"] == kind and row["fold"] == fold and row["state"] == "done"]
    return [load(results.model_path(row)) for row in sorted(rows, key=lambda row: row["seed"])]


def teams(vgg: Sequence[nn.Module], inception: Sequence[nn.Module]) -> Iterator[list[nn.Module]]:
    """Put five V and one I together, as far as there are any."""
    for run, last in enumerate(inception):
        members = vgg[run * VGG_MEMBERS : (run + 1) * VGG_MEMBERS]
        if len(members) == VGG_MEMBERS:
            yield [*members, last]


def judge(network: nn.Module, test: Part) -> tuple[dict[str, Any], Tensor]:
    """Give the figures of a network, and its logits; KB of what is not zero at 4 bytes each, as the paper counts."""
    logits, y = part_logits(network, test)
    coarse, _ = part_logits(rounded(network, FEW_BITS), test)
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
        f"macro, {FEW_BITS} bits": macro_accuracy(coarse, y),
    }
    return figures, logits


def count_numbers(network: nn.Module) -> int:
    """Count what is not zero, with the moving averages of batch norm, as the paper does."""
    tensors = network.state_dict().items()
    return sum(int(value.count_nonzero()) for name, value in tensors if value.is_floating_point() and name != WEIGHTS)


WEIGHTS = "log_weights"  # of an ensemble's members: not what the paper counts


def gain(logits: Sequence[Tensor], y: Tensor) -> Answers:
    """Give by how much the last, the ensemble, answers each clip better than the others do on average."""
    right = numpy.stack([(found.argmax(dim=1) == y).numpy() for found in logits]).astype(float)
    return right[-1] - right[:-1].mean(axis=0), y.numpy()


def pooled(answers: Sequence[Answers]) -> Interval:
    """Give the gain in macro accuracy over all clips of all folds and runs, with its bootstrap interval."""
    return bootstrap_macro_gain(
        numpy.concatenate([gains for gains, _ in answers]), numpy.concatenate([classes for _, classes in answers])
    )


def joint_score(macro: float, kilobytes: float) -> float:
    """Give one measure of accuracy and size: points of macro accuracy, less one for each doubling beyond the budget.

    Below the budget a point is added for each halving: of two networks with the same measure, the larger one is better
    by a point for each time that it is twice as large.
    """
    return 100 * macro - PRICE_POINTS * math.log2(kilobytes / BUDGET_KB)
