"""The order of tests: from large to small in each stage, and never more than α false claims in all."""

import numpy
import pytest

from benchmarks.finer import false_claims
from topiarist.rightsizing.ladder import Ladder

LADDER = Ladder((3, 9, 27), 3, 0.05)


def test_the_levels_sum_to_alpha_and_all_of_it_is_there_where_nothing_finer_follows() -> None:
    assert LADDER.coarse_level + LADDER.fine_level == pytest.approx(0.05)
    assert Ladder((3, 9), 0, 0.05).coarse_level == 0.05


def test_coarse_sizes_go_on_in_steps_like_the_last() -> None:
    assert list(LADDER.coarse()) == [3, 9, 27, 81, 243, 729]
    assert list(Ladder((8,), 3, 0.05).coarse()) == [8] and list(Ladder((), 3, 0.05).coarse()) == []


def test_finer_sizes_lie_between_in_equal_steps_and_end_at_the_size_that_failed() -> None:
    for proven, failed in ((3, 9), (9, 27), (27, 81)):
        found = LADDER.between(proven, failed)
        steps = numpy.diff(numpy.log([proven, *found]))
        assert found[-1] == failed and len(found) == 4 and steps == pytest.approx(steps.mean(), rel=0.02)
    assert len(LADDER.between(9, 27, most=1)) == 2
    assert Ladder((5, 9), 3, 0.05, from_whole=False).between(None, 5) == [5]


@pytest.mark.parametrize("correlation", [0.0, 0.9])
@pytest.mark.parametrize("bad_from", [3.0, 11.0, 27.0])
def test_false_claims_are_at_most_alpha_at_the_margin(correlation: float, bad_from: float) -> None:
    runs = 3000
    assert false_claims(bad_from, correlation, runs=runs) <= 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5
