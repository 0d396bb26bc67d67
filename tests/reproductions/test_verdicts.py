"""Verdicts: what an interval proves and what it leaves open."""

import numpy
import pytest
from scipy.stats import t, ttest_ind

from topiarist.reproductions.verdicts import (
    Verdict,
    decide_direction,
    decide_margin,
    difference,
    reach_of_mean,
    verdict_table,
)
from topiarist.statistics import Interval

OPEN = "not testable on this data"


@pytest.mark.parametrize(
    ("low", "high", "published", "decided"),
    [
        (0.1, 2.0, 1.0, "reproduced"),
        (-2.0, -0.1, 1.0, "not reproduced"),
        (-0.5, 0.3, 1.0, "not reproduced"),
        (-0.5, 2.0, 1.0, OPEN),
        (-2.0, -0.1, -1.0, "reproduced"),
        (0.1, 2.0, -1.0, "not reproduced"),
        (-0.3, 0.5, -1.0, "not reproduced"),
        (-2.0, 0.5, -1.0, OPEN),
    ],
)
def test_a_direction_is_decided_by_where_the_interval_lies(
    low: float, high: float, published: float, decided: str
) -> None:
    assert decide_direction(Interval((low + high) / 2, low, high), published)[0] == decided


@pytest.mark.parametrize(
    ("low", "high", "decided"), [(-0.5, 3.0, "reproduced"), (-3.0, -1.5, "not reproduced"), (-2.0, 0.5, OPEN)]
)
def test_a_margin_is_kept_where_the_whole_interval_lies_above_it(low: float, high: float, decided: str) -> None:
    assert decide_margin(Interval(0.0, low, high), 1.0)[0] == decided


def test_a_difference_has_the_interval_of_welch() -> None:
    random = numpy.random.default_rng(0)
    one, other = random.normal(1, 1, size=9).tolist(), random.normal(0, 3, size=5).tolist()
    found, oracle = difference(one, other), ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((oracle.low, oracle.high))
    assert difference([1.0], other) is None
    assert difference([2.0, 2.0], [1.0, 1.0]) == Interval(1.0, 1.0, 1.0)


def test_the_reach_of_a_mean_is_that_of_its_t_interval() -> None:
    values = numpy.random.default_rng(1).normal(size=8)
    low, high = t.interval(0.95, 7, loc=values.mean(), scale=values.std(ddof=1) / 8**0.5)
    assert reach_of_mean(float(values.std(ddof=1)), 8) == pytest.approx((high - low) / 2)
    assert reach_of_mean(0.1, 1) is None


def test_claims_are_a_table() -> None:
    table = verdict_table([Verdict("a", "1", "2", None, "not reproduced", "why")], paper="paper (its own)")
    assert table.columns[:3] == ("claim", "paper (its own)", "ours")
    assert table.rows == (("a", "1", "2", None, "not reproduced", "why"),)
