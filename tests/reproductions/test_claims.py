"""Claims: what an interval proves and what it leaves open; how they are shown and counted."""

import numpy
import pytest
from scipy.stats import t, ttest_ind

from topiarist.reproductions.claims import (
    Chance,
    Claim,
    claims_frame,
    claims_table,
    decide_direction,
    decide_margin,
    difference,
    mean_interval,
    reach_of_mean,
    verdict_counts,
)
from topiarist.statistics import Interval
from topiarist.statistics.noninferiority import paired_bound

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
    steady = difference([2.0, 2.0, 2.0], other)
    assert steady is not None and steady.low < steady.value < steady.high


def test_the_reach_of_a_mean_is_that_of_its_t_interval() -> None:
    values = numpy.random.default_rng(1).normal(size=8)
    low, high = t.interval(0.95, 7, loc=values.mean(), scale=values.std(ddof=1) / 8**0.5)
    assert reach_of_mean(float(values.std(ddof=1)), 8) == pytest.approx((high - low) / 2)
    assert reach_of_mean(0.1, 1) is None


def test_the_interval_of_a_mean_is_students_or_the_corrected_resampled_one() -> None:
    values = numpy.random.default_rng(1).normal(20, 4, size=50)
    found = mean_interval(values.tolist())
    low, high = t.interval(0.95, 49, loc=values.mean(), scale=values.std(ddof=1) / 50**0.5)
    assert found is not None and (found.value, found.low, found.high) == pytest.approx((values.mean(), low, high))
    folds = mean_interval(values.tolist(), test_to_train=1 / 9)
    assert folds is not None and folds.low == pytest.approx(paired_bound(values, numpy.zeros(50), 0.025, 1 / 9))
    assert mean_interval([3.0]) is None


def test_claims_are_a_table_without_columns_that_none_fills() -> None:
    claims = [Claim("a", "-1", "-2", None, "not reproduced", "why"), Claim("b", "1-2", "V-2", "", "reproduced")]
    table = claims_table(claims, paper="paper (its own)")
    assert table.columns == ("claim", "verdict", "paper (its own)", "ours", "note")
    assert table.rows == (("a", "not reproduced", "−1", "−2", "why"), ("b", "reproduced", "1-2", "V-2", None))
    assert table.highlight == {1}
    (row,) = claims_frame([Claim("a", "1", "2", "-3 to 4", "supported")], paper="paper").to_dict("records")
    assert row == {"claim": "a", "paper": "1", "ours": "2", "95 % interval": "−3 to 4", "verdict": "supported"}


def test_claims_are_counted_and_plain_values() -> None:
    claim = Claim("a", "1", "2", None, "not reproduced")
    counts = verdict_counts([claim, claim])
    assert counts["not reproduced"] == 2 and counts["reproduced"] == 0
    assert claim.to_json() == {
        "claim": "a",
        "published": "1",
        "ours": "2",
        "interval": None,
        "verdict": "not reproduced",
        "note": "",
    }


def test_chance_is_the_upper_end_of_the_binomial_interval() -> None:
    assert Chance(share=0.1, samples=1000).highest == pytest.approx(0.119)
    assert Chance(share=0.5, samples=10).highest == 0.8
