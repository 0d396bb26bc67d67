"""The summary of the benchmark of tables: means and intervals, checked against numbers made up."""

import math

import numpy
import pytest
from scipy import stats

from benchmarks.tabulating.records import TableScore
from benchmarks.tabulating.summary import write_markdown


def make_score(table: str, split: int, contender: str, score: float) -> TableScore:
    return TableScore(
        table=table,
        split=split,
        contender=contender,
        task="classes",
        rows=80,
        tested=20,
        score=score,
        kilobytes=12.4 if contender == "network" else None,
        seconds=3.0,
    )


def test_a_row_has_means_and_the_interval_of_splits_that_share_rows() -> None:
    gained = {"one": [0.01, 0.03, 0.05], "other": [-0.02, 0.0, 0.02]}
    scores = [
        make_score(table, split, contender, 0.8 + (difference if contender == "network" else 0.0))
        for table, differences in gained.items()
        for split, difference in enumerate(differences)
        for contender in ("network", "boosting")
    ]
    lines = write_markdown(scores).splitlines()
    half = stats.t.ppf(0.975, 2) * numpy.std([1, 3, 5], ddof=1) * math.sqrt(1 / 3 + 20 / 80)
    assert lines[2] == f"| one (3 splits) | 100 | 83.0 | 80.0 | +3.0 ± {half:.1f} | 12 | 3.0 |"
    over_tables = stats.t.ppf(0.975, 1) * numpy.std([3, 0], ddof=1) / math.sqrt(2)
    assert lines[-1] == f"| mean | | **81.50** | **80.00** | **+1.50** ± {over_tables:.2f} | | |"
    assert half == pytest.approx(6.573, abs=1e-3)  # 4.30265 · 2 · √(1/3 + 1/4)
