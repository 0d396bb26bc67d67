import tracemalloc
from itertools import combinations, permutations

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray
from pymoo.indicators.hv import HV
from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting

from topiarist.errors import SettingsError
from topiarist.evolution import hypervolume, knee, non_dominated
from topiarist.randomness import array_generator

Floats = NDArray[numpy.float64]


@st.composite
def grids(draw: st.DrawFn, *, most: int = 12) -> Floats:
    """Points with many ties and duplicates."""
    n_costs = draw(st.integers(1, 4))
    row = st.lists(st.integers(0, 4), min_size=n_costs, max_size=n_costs)
    return numpy.array(draw(st.lists(row, min_size=1, max_size=most)), dtype=numpy.float64)


def random_points(n: int, n_costs: int) -> Floats:
    points: Floats = array_generator(n, "points", n_costs).random((n, n_costs))
    points /= numpy.linalg.norm(points, axis=1, keepdims=True) ** 0.7
    return points


@given(grids())
def test_the_front_is_that_of_all_comparisons(costs: Floats) -> None:
    dominated = [any((other <= one).all() and (other < one).any() for other in costs) for one in costs]
    assert non_dominated(costs).tolist() == [not beaten for beaten in dominated]


@pytest.mark.parametrize("n_costs", [2, 3, 4])
def test_the_front_is_pymoos(n_costs: int) -> None:
    costs = random_points(300, n_costs)
    front = NonDominatedSorting().do(costs, only_non_dominated_front=True)
    assert 1 < len(front) < 300
    assert numpy.flatnonzero(non_dominated(costs)).tolist() == sorted(front.tolist())


def test_duplicates_of_a_front_point_stay() -> None:
    costs = [[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [2.0, 2.0], [0.0, 3.0], [-0.0, 3.0]]
    assert non_dominated(costs).tolist() == [True, True, True, False, True, True]
    assert non_dominated(numpy.empty((0, 3))).tolist() == []


@pytest.mark.slow
def test_thousands_of_points_take_little_memory() -> None:
    generator = array_generator(0, "sphere")
    points = numpy.abs(generator.normal(size=(2500, 3)))
    points /= numpy.linalg.norm(points, axis=1, keepdims=True)
    tracemalloc.start()
    mask = non_dominated(-points)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert mask.all()
    assert peak < 30 * points.nbytes < points.shape[0] ** 2  # a table of all pairs would take n² bytes


def distance_below_ends(front: Floats, point: Floats) -> float:
    """Return the distance of a point of two costs below the line through the ends of the front, scaled."""
    lowest, highest = front.min(axis=0), front.max(axis=0)
    scaled = (point - lowest) / (highest - lowest)
    start, end = numpy.array([0.0, 1.0]), numpy.array([1.0, 0.0])
    across = end - start
    gap = scaled - start
    return float((across[1] * gap[0] - across[0] * gap[1]) / numpy.linalg.norm(across))


@given(st.integers(0, 300))
def test_the_knee_of_two_costs_is_farthest_below_the_line_through_the_ends(seed: int) -> None:
    costs = array_generator(seed, "knee").random((30, 2)) * [1, 1000]
    front = costs[non_dominated(costs)]
    if len(front) < 3:
        return
    found = knee(costs)
    distances = [distance_below_ends(front, point) for point in front]
    assert non_dominated(costs)[found]
    assert distance_below_ends(front, costs[found]) == pytest.approx(max(distances))


def test_knees_by_hand() -> None:
    assert knee([[3.0, 4.0]]) == 0
    assert knee([[0, 10], [10, 0], [2, 3], [9, 9], [1, 8]]) == 2
    assert knee([[0, 10, 10], [10, 0, 10], [10, 10, 0], [2, 2, 3], [50, 50, 50]]) == 3
    assert knee([[0, 10, 7], [10, 0, 7], [2, 3, 7]]) == 2  # a cost that does not vary counts for nothing


def test_of_points_equally_far_the_lower_first_cost_is_taken() -> None:
    assert knee([[3, 1], [2, 2], [1, 3]]) == 2
    assert knee([[0, 4], [4, 0], [2, 1], [1, 2], [1, 2]]) == 3
    ends = [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    assert (0.1 + 0.2) + 0.3 > (0.3 + 0.2) + 0.1
    assert knee([*ends, [0.3, 0.2, 0.1], [0.1, 0.2, 0.3]]) == 4  # equally far but for rounding


@pytest.mark.slow
@given(grids(), st.floats(0.5, 5), st.integers(-5, 5))
def test_units_do_not_move_the_knee(costs: Floats, scale: float, shift: int) -> None:
    assert knee(costs * scale + shift) == knee(costs)


def covered_by_all(points: Floats, reference: Floats) -> float:
    """Return the volume by inclusion and exclusion over all sets of points."""
    total = 0.0
    for size in range(1, len(points) + 1):
        for some in combinations(points, size):
            total -= (-1) ** size * float(numpy.prod(numpy.maximum(reference - numpy.max(some, axis=0), 0)))
    return total


@pytest.mark.slow
@given(grids(most=6), st.integers(2, 5))
def test_hypervolume_is_that_of_inclusion_and_exclusion(costs: Floats, corner: int) -> None:
    reference = numpy.full(costs.shape[1], float(corner))
    assert hypervolume(costs, reference) == pytest.approx(covered_by_all(costs, reference))


def test_five_costs() -> None:
    costs, reference = random_points(7, 5), numpy.full(5, 1.3)
    assert hypervolume(costs, reference) == pytest.approx(covered_by_all(costs, reference))


@pytest.mark.parametrize(("n_costs", "n"), [(2, 200), (3, 80), (4, 30)])
def test_hypervolume_is_pymoos(n_costs: int, n: int) -> None:
    costs = random_points(n, n_costs)
    reference = numpy.full(n_costs, 0.9)
    inside = (costs < reference).all(axis=1)
    assert 1 < inside.sum() < n
    assert hypervolume(costs, reference) == pytest.approx(float(HV(ref_point=reference)(costs)))


def test_costs_may_be_in_any_order() -> None:
    costs, reference = random_points(12, 4), numpy.array([0.8, 0.9, 1.0, 1.1])
    expected = hypervolume(costs, reference)
    for order in permutations(range(4)):
        assert hypervolume(costs[:, order], reference[list(order)]) == pytest.approx(expected)


def test_volumes_by_hand() -> None:
    assert hypervolume([[1, 3], [2, 2], [3, 1], [3, 3]], [4, 4]) == 6
    assert hypervolume([[1.0], [0.5], [7.0]], [2]) == 1.5
    assert hypervolume([[5, 0], [0, 4]], [4, 4]) == 0  # beyond the reference, and just on it
    assert hypervolume([[0, 0, 0], [0, 0, 0]], [1, 2, 3]) == 6
    assert hypervolume(numpy.empty((0, 3)), [1, 1, 1]) == 0


@pytest.mark.parametrize("bad", [[[1, numpy.nan]], [[numpy.inf, 1]], [1, 2], [[1, 2], [3]], numpy.empty((2, 0))])
def test_bad_costs_are_refused(bad: ArrayLike) -> None:
    with pytest.raises(SettingsError, match="costs must be"):
        non_dominated(bad)
    with pytest.raises(SettingsError, match="costs must be"):
        knee(bad)
    with pytest.raises(SettingsError, match="costs must be"):
        hypervolume(bad, [1, 1])


def test_bad_references_and_no_points_are_refused() -> None:
    with pytest.raises(SettingsError, match="reference must hold 2 costs"):
        hypervolume([[1, 2]], [1, 2, 3])
    with pytest.raises(SettingsError, match="reference must be finite"):
        hypervolume([[1, 2]], [1, numpy.inf])
    with pytest.raises(SettingsError, match="found none"):
        knee(numpy.empty((0, 2)))
