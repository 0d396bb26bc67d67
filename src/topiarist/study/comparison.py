"""Tests between configurations, the smallest that is good enough, and the Pareto front; from scores and sizes by name.

Scores are series indexed by fold or seed, so that those of two configurations can be paired.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy
import pandas
from numpy.typing import NDArray

from topiarist.errors import SettingsError
from topiarist.evolution.pareto import hypervolume, knee, non_dominated
from topiarist.statistics import StatisticalResult, corrected_t, holm, rank_sum, signed_rank
from topiarist.statistics.noninferiority import paired_bound, welch_bound

Scores = Mapping[str, "pandas.Series[float]"]
TestName = Literal["auto", "corrected-t", "signed-rank", "rank-sum"]


@dataclass(frozen=True)
class ParetoFront:
    """The configurations by sizes and score: who is on the Pareto front, its knee, and the volume that it covers.

    The volume is that between the front and the worst there is of each, as a share of the whole.
    """

    table: pandas.DataFrame
    hypervolume: float


def compare(scores: Scores, baseline: str, *, test: TestName, test_to_train: float | None) -> pandas.DataFrame:
    """Compare every other configuration with the baseline: difference and its 95 % interval, p, p by Holm, effect.

    `test_to_train` is None where the scores are not of folds. The test is, unless named, the corrected t-test for
    folds and the rank-sum test for seeds.
    """
    rows, findings = [], []
    for label in scores:
        if label != baseline:
            first, second = paired(scores[label], scores[baseline])
            findings.append(run_test(test, first, second, test_to_train))
            low, high = interval(first, second, test_to_train)
            difference = float(first.mean() - second.mean())
            rows.append({"configuration": label, "difference": difference, "low": low, "high": high, "n": len(first)})
    adjusted = holm([finding.p for finding in findings]) if findings else ()
    found = zip(rows, findings, adjusted, strict=True)
    return pandas.DataFrame(
        {
            **row,
            "test": finding.test,
            "statistic": finding.statistic,
            "p": finding.p,
            "holm_p": p,
            "effect": finding.effect,
            "effect_name": finding.effect_name,
            "notes": "; ".join(finding.notes),
        }
        for row, finding, p in found
    )


def paired(
    first: "pandas.Series[float]", second: "pandas.Series[float]"
) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
    """Return the scores of the folds or seeds that both have."""
    common = first.index.intersection(second.index)
    if len(common) < 2:
        raise SettingsError(f"a comparison needs 2 folds or seeds that both configurations have; found {len(common)}")
    return numpy.asarray(first[common], numpy.float64), numpy.asarray(second[common], numpy.float64)


def interval(
    first: NDArray[numpy.float64], second: NDArray[numpy.float64], test_to_train: float | None
) -> tuple[float, float]:
    """Return the 95 % interval of the difference of means: by the corrected t for folds, by Welch's for seeds."""
    if test_to_train is None:
        return welch_bound(first, second, 0.025), -welch_bound(second, first, 0.025)
    return paired_bound(first, second, 0.025, test_to_train), -paired_bound(second, first, 0.025, test_to_train)


def run_test(
    test: TestName, first: NDArray[numpy.float64], second: NDArray[numpy.float64], test_to_train: float | None
) -> StatisticalResult:
    """Run the test named, or the one that suits the design."""
    chosen = test if test != "auto" else "rank-sum" if test_to_train is None else "corrected-t"
    if chosen == "corrected-t":
        return corrected_t(first, second, test_to_train=test_to_train or 0.0)
    return signed_rank(first, second) if chosen == "signed-rank" else rank_sum(first, second)


def pareto_front(
    scores: Scores, sizes: Mapping[str, Mapping[str, float]], *, metric: str, smaller_is_better: bool
) -> ParetoFront:
    """Find the front of the mean scores against one size or several, each by configuration."""
    means = {label: float(series.mean()) for label, series in scores.items()}
    sign = 1.0 if smaller_is_better else -1.0
    costs = numpy.array([[*(size[label] for size in sizes.values()), sign * mean] for label, mean in means.items()])
    columns: dict[str, Sequence[object]] = {"configuration": list(means)}
    columns |= {name: [size[label] for label in means] for name, size in sizes.items()}
    columns |= {metric: list(means.values()), "front": non_dominated(costs).tolist()}
    columns |= {"knee": (numpy.arange(len(costs)) == knee(costs)).tolist()}
    extent = numpy.ptp(costs, axis=0)
    scaled = (costs - costs.min(axis=0)) / numpy.where(extent > 0, extent, 1.0)
    table = pandas.DataFrame(columns).sort_values(list(sizes), kind="stable", ignore_index=True)
    return ParetoFront(table, hypervolume(scaled, numpy.ones(costs.shape[1])))
