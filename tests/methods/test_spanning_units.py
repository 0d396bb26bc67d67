"""Units near the span of others, against explicit least squares; units that are one another's multiples."""

import numpy
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from topiarist.methods.distinctiveness import different_units, same_as_one, spanning_units
from topiarist.randomness import array_generator
from topiarist.surgery.choice.activity import Activity

Floats = NDArray[numpy.float64]


def activity(samples: Floats, *, shiftable: bool = True) -> Activity:
    """What is known of units with activations (n_samples, n_units)."""
    products = samples.T @ samples / len(samples)
    return Activity(products=products, means=samples.mean(axis=0), shiftable=shiftable, sigmoid=False)


def degrees_to_span(samples: Floats, kept: list[int], unit: int) -> float:
    """The angle between a unit and the span of others, by least squares on explicit activations."""
    weights = numpy.linalg.lstsq(samples[:, kept], samples[:, unit], rcond=None)[0]
    rest = samples[:, unit] - samples[:, kept] @ weights
    sine = float(numpy.linalg.norm(rest) / numpy.linalg.norm(samples[:, unit]))
    return float(numpy.degrees(numpy.arcsin(min(sine, 1.0))))


def mixed(seed: int, units: int, rank: int) -> Floats:
    """Activations of units that are mixtures of fewer, and a little of their own."""
    random = array_generator(seed, "activations")
    found: Floats = random.normal(size=(40, rank)) @ random.normal(size=(rank, units))
    return found + 0.05 * random.normal(size=(40, units))


@given(st.integers(0, 10**6), st.integers(2, 9), st.integers(1, 4), st.floats(1, 89))
def test_units_that_go_are_within_the_angle_of_the_span_and_those_kept_are_not(
    seed: int, units: int, rank: int, angle: float
) -> None:
    samples = mixed(seed, units, rank)
    kept = spanning_units(activity(samples, shiftable=False), angle)
    assert kept == sorted(set(kept)) and kept
    for unit in set(range(units)) - set(kept):
        assert degrees_to_span(samples, kept, unit) <= angle + 1e-6
    if len(kept) == 1:
        return
    apart = [degrees_to_span(samples, [other for other in kept if other != unit], unit) for unit in kept]
    assert max(apart) > angle - 1e-6


@given(st.integers(0, 10**6), st.integers(2, 9), st.floats(0, 90), st.floats(0, 90))
def test_a_wider_angle_keeps_a_part_of_what_a_narrower_keeps(seed: int, units: int, one: float, other: float) -> None:
    samples = mixed(seed, units, 3)
    seen = activity(samples, shiftable=False)
    narrow, wide = min(one, other), max(one, other)
    assert set(spanning_units(seen, wide)) <= set(spanning_units(seen, narrow))


@given(st.integers(0, 10**6), st.floats(0.1, 100))
def test_the_scale_of_a_unit_makes_no_difference_but_for_the_first(seed: int, factor: float) -> None:
    samples = mixed(seed, 6, 3)
    samples[:, 0] *= 1e4 / numpy.linalg.norm(samples[:, 0])  # the one that varies most, before and after
    scaled = samples * numpy.array([1, 1, factor, 1, 1, 1])
    assert spanning_units(activity(samples, shiftable=False), 20) == spanning_units(
        activity(scaled, shiftable=False), 20
    )


def test_exact_mixtures_go_at_no_angle_at_all() -> None:
    random = array_generator(0, "mixtures")
    own = random.normal(size=(50, 3))
    samples = numpy.column_stack([own, own @ random.normal(size=(3, 4))])
    assert len(spanning_units(activity(samples, shiftable=False), 0.0)) == 3


def test_a_right_angle_keeps_one_and_units_that_never_vary_keep_one() -> None:
    samples = mixed(0, 6, 4)
    assert len(spanning_units(activity(samples, shiftable=False), 90)) == 1
    assert spanning_units(activity(numpy.zeros((9, 4))), 10) == [0]


def test_constants_copies_multiples_and_complements_are_not_different() -> None:
    own = array_generator(0, "own").random((30, 2))
    first, second = own.T
    columns = [first, second, first, 3 * second, 1 - first, 2 * first - 0.5, numpy.full(30, 0.7)]
    assert different_units(activity(numpy.column_stack(columns))) == [0, 1]


def test_a_constant_unit_is_not_kept_where_it_comes_first() -> None:
    own = array_generator(0, "own").random((30, 2))
    assert different_units(activity(numpy.column_stack([numpy.full(30, 0.7), own]))) == [1, 2]


def test_a_constant_is_known_beside_units_that_vary_little() -> None:
    own = array_generator(0, "own").normal(size=(200, 2))
    samples = numpy.column_stack([0.6 + 0.01 * own, *(numpy.full(200, value) for value in (0.1, 0.37, 0.574, 0.83))])
    seen = activity(samples)
    assert different_units(seen) == [0, 1]
    assert spanning_units(seen, 15) == [0, 1]


def test_where_no_constant_can_move_only_multiples_are_the_same() -> None:
    own = array_generator(0, "own").random((30, 2))
    first, second = own.T
    columns = [first, second, 2 * first, 1 - first, numpy.full(30, 0.7), 0 * first]
    assert different_units(activity(numpy.column_stack(columns), shiftable=False)) == [0, 1, 3, 4]


@given(st.integers(0, 10**6), st.floats(0.001, 5), st.sampled_from([-1, 0, 1]), st.floats(-2, 2))
def test_a_merge_has_the_scale_and_the_shift_of_the_regression(seed: int, size: float, sign: int, shift: float) -> None:
    scale = sign * size  # far below 0.001, rounding of the moments hides what the unit does
    own = array_generator(seed, "own").normal(size=(30, 3))
    samples = numpy.column_stack([own, scale * own[:, 1] + shift])
    merge = same_as_one(activity(samples), [0, 1, 2], 3)
    assert merge is not None
    expressed = merge.scale * samples[:, merge.into] + merge.shift
    assert numpy.allclose(expressed, samples[:, 3], atol=1e-6)


def test_a_unit_that_no_other_resembles_merges_into_none() -> None:
    samples = array_generator(0, "own").normal(size=(30, 4))
    assert same_as_one(activity(samples), [0, 1, 2], 3) is None
    assert same_as_one(activity(samples), [], 3) is None
