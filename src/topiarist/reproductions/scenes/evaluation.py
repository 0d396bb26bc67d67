"""Evaluates the networks of the scenes, alone and as ensembles: what they answer, and what they take on disk."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy
import pandas
from numpy.typing import NDArray
from torch import Tensor, nn

from topiarist.data import Part, Source
from topiarist.files import BYTES_PER_KB
from topiarist.models import Ensemble
from topiarist.reproductions.scenes.study import ScenesScope, ScenesStudies
from topiarist.statistics import Interval, StatisticalResult, bootstrap_macro_gain
from topiarist.storage import Packing, load, serialise
from topiarist.storage.quantising import rounded
from topiarist.study.results import Results
from topiarist.study.samples import StudySamples, source_key
from topiarist.study.study import Study
from topiarist.training.inference import part_logits
from topiarist.training.metrics import accuracy, log_loss, macro_accuracy

FEW_BITS = 8  # per weight: the fewest that a packed file has
MEMBER_WEIGHTS = "log_weights"  # of an ensemble: not what the paper counts
Networks = list[nn.Module]


@dataclass(frozen=True, kw_only=True)
class ScenesFindings:
    """The results of all networks, from which claims and page follow.

    `networks` has one row per network and ensemble, `depths` one per network of Table 4; `gains` has for each kind how
    much an ensemble gains over its mean member, `mixing` Friedman's tests of pieces and class. `like_the_paper` says
    whether the clips have the form of the paper's.
    """

    scope: ScenesScope
    networks: pandas.DataFrame
    depths: pandas.DataFrame | None
    gains: Mapping[str, Interval]
    mixing: tuple[StatisticalResult, StatisticalResult] | None
    stand_in: bool
    like_the_paper: bool


def evaluate_models(
    plan: ScenesStudies, results: Mapping[str, Results], sources: Mapping[str, Source]
) -> tuple[pandas.DataFrame, dict[str, Interval]]:
    """Evaluate every V and I and the ensembles made of them on the test part of their fold; also the ensembles' gains.

    Of each clip, the gain is the mean over runs: runs are no other clips.
    """
    rows: list[dict[str, object]] = []
    gains: dict[str, Interval] = {}
    tests = _TestParts(plan.studies["vgg"], sources)
    for kind in plan.scope.kinds:
        better, classes = [], []
        for fold in plan.scope.fold_numbers:
            test, of_runs = tests.of(kind, fold), []
            for run, vgg, inception in _teams(plan, results, kind, fold):
                found, gain = _evaluate_team(vgg, inception, plan.scope, test)
                rows += [{"kind": kind, "fold": fold, "run": run, **figures} for figures in found]
                of_runs.append(gain)
            if of_runs:
                better.append(numpy.mean(of_runs, axis=0))
                classes.append(test.y.numpy())
        if better:
            gains[kind] = bootstrap_macro_gain(numpy.concatenate(better), numpy.concatenate(classes))
    return pandas.DataFrame(rows, columns=None if rows else ["kind", "network", "macro", "non-zero"]), gains


def evaluate_depths(plan: ScenesStudies, results: Results, sources: Mapping[str, Source]) -> pandas.DataFrame:
    """Evaluate the networks of Table 4; one row per network."""
    tests = _TestParts(plan.studies["depths"], sources)
    rows = [
        {"network": label, "fold": fold, "run": run, **_evaluate(network, tests.of(label, fold))[0]}
        for label in results.labels
        for fold in plan.scope.fold_numbers
        for run, network in enumerate(_networks(results, label, fold).values())
    ]
    return pandas.DataFrame(rows, columns=None if rows else ["network", "macro"])


class _TestParts:
    """The test parts of a study's cells."""

    def __init__(self, study: Study, sources: Mapping[str, Source]) -> None:
        self.cells = study.cells
        used = [cell.settings.data for cell in self.cells]
        self.samples = StudySamples({source_key(data): sources[data.location] for data in used})

    def of(self, label: str, fold: int | None) -> Part:
        test = self.samples.of(next(cell for cell in self.cells if cell.label == label and cell.fold == fold)).test
        assert isinstance(test, Part)
        return test


def _networks(results: Results, label: str, fold: int | None) -> dict[int, nn.Module]:
    """Load the networks of a configuration and a fold, by seed."""
    rows = [row for row in results.rows if row["label"] == label and row["fold"] == fold and row["state"] == "done"]
    return {row["seed"]: load(results.model_path(row)) for row in rows}


def _teams(
    plan: ScenesStudies, results: Mapping[str, Results], kind: str, fold: int | None
) -> Iterator[tuple[int, Networks, Networks]]:
    """Yield the number, the V and the I of each run; one that lacks a network is left out."""
    found = {family: _networks(results[family], kind, fold) for family in plan.scope.trained}
    for run in range(plan.scope.runs):
        team = []
        for family, count in plan.scope.trained.items():
            seeds = range(plan.seed + run * count, plan.seed + (run + 1) * count)
            team.append([found[family][seed] for seed in seeds if seed in found[family]])
        if [len(networks) for networks in team] == list(plan.scope.trained.values()):
            yield run, team[0], team[1]


def _evaluate_team(
    vgg: Networks, inception: Networks, scope: ScenesScope, test: Part
) -> tuple[list[dict[str, object]], NDArray[Any]]:
    """Return the figures of the V, the I and the ensemble of a run, and its gain on each clip over its mean member."""
    members = [*vgg[: scope.vgg_members], *inception[: scope.inception_members]]
    rows: list[dict[str, object]] = []
    right = []
    for name, network in [*(("V", each) for each in vgg), *(("I", each) for each in inception)]:
        figures, logits = _evaluate(network, test)
        rows.append({"network": name, **figures})
        if any(network is member for member in members):
            right.append((logits.argmax(dim=1) == test.y).numpy())
    figures, logits = _evaluate(Ensemble(members), test)
    gain: NDArray[Any] = (logits.argmax(dim=1) == test.y).numpy() - numpy.mean(right, axis=0)
    return [*rows, {"network": "E", **figures}], gain


def _evaluate(network: nn.Module, test: Part) -> tuple[dict[str, float], Tensor]:
    """Return the figures of a network, and its logits.

    Counted is what is not zero, with the moving averages of batch norm, at 4 bytes each, as in the paper.
    """
    logits, y = part_logits(network, test)
    of_few_bits, _ = part_logits(rounded(network, FEW_BITS), test)
    tensors = [value for name, value in network.state_dict().items() if name != MEMBER_WEIGHTS]
    nonzero = sum(int(value.count_nonzero()) for value in tensors if value.is_floating_point())
    figures = {
        "micro": accuracy(logits, y),
        "macro": macro_accuracy(logits, y),
        "log loss": log_loss(logits, y),
        "non-zero": nonzero,
        "paper's KB": nonzero * 4 / BYTES_PER_KB,
    }
    for bits in (32, 16, FEW_BITS):
        figures[f"KB, {bits} bits"] = len(serialise(network, packing=Packing(bits=bits))) / BYTES_PER_KB
    return {**figures, f"macro, {FEW_BITS} bits": macro_accuracy(of_few_bits, y)}, logits
