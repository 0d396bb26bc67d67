import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pymoo.operators.survival.rank_and_crowding.metrics import calc_crowding_distance, get_crowding_function
from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting

from topiarist.evolution.pareto import crowding, dominates, non_dominated, ranks
from topiarist.randomness import array_generator

Floats = NDArray[numpy.float64]


@st.composite
def grids(draw: st.DrawFn) -> Floats:
    """Points with many ties and duplicates."""
    n_costs = draw(st.integers(1, 4))
    row = st.lists(st.integers(0, 5), min_size=n_costs, max_size=n_costs)
    return numpy.array(draw(st.lists(row, min_size=1, max_size=25)), dtype=numpy.float64)


def pymoo_ranks(costs: Floats) -> list[int]:
    return [int(rank) for rank in NonDominatedSorting().do(costs, return_rank=True)[1]]


@given(grids())
def test_ranks_are_pymoos(costs: Floats) -> None:
    assert ranks(costs).tolist() == pymoo_ranks(costs)


@pytest.mark.parametrize("n_costs", [2, 3, 5])
def test_ranks_and_crowding_of_many_points_are_pymoos(n_costs: int) -> None:
    costs = array_generator(n_costs, "points").random((400, n_costs)) * numpy.logspace(0, 4, n_costs)
    found = ranks(costs)
    assert found.tolist() == pymoo_ranks(costs)
    assert ((found == 0) == non_dominated(costs)).all()
    distances = crowding(costs, found)
    for rank in range(found.max() + 1):
        front = found == rank
        expected = get_crowding_function("cd").do(costs[front])
        assert distances[front].tolist() == pytest.approx(expected.tolist())
        assert numpy.isinf(distances[front]).any()


@pytest.mark.slow
@given(grids())
def test_crowding_is_pymoos_ties_included(costs: Floats) -> None:
    distances = crowding(costs, numpy.zeros(len(costs)))
    if len(costs) > 2:
        assert distances.tolist() == pytest.approx(calc_crowding_distance(costs).tolist())
    else:
        assert numpy.isinf(distances).all()


def test_crowding_by_hand() -> None:
    costs = [[0.0, 4.0], [1.0, 2.0], [4.0, 0.0], [9.0, 9.0]]
    assert crowding(costs, [0, 0, 0, 1]).tolist() == [numpy.inf, 1.0, numpy.inf, numpy.inf]
    assert crowding([[0.0, 7.0], [1.0, 7.0], [4.0, 7.0]], [0, 0, 0]).tolist() == [numpy.inf, 0.5, numpy.inf]
    assert crowding(numpy.empty((0, 2)), []).tolist() == []
    assert ranks(numpy.empty((0, 2))).tolist() == []


@given(grids())
def test_dominating_is_having_no_higher_and_one_lower_cost(costs: Floats) -> None:
    expected = [[bool((one <= other).all() and (one < other).any()) for other in costs] for one in costs]
    assert dominates(costs).tolist() == expected
