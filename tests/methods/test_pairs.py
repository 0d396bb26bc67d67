"""The published sweep over pairs, against a literal double loop; angles, against numpy on explicit vectors."""

from typing import get_args

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from topiarist.methods.pairs import Order, angles_between, sweep
from topiarist.randomness import array_generator

Floats = NDArray[numpy.float64]
Visit = list[tuple[int, int]]


def literal(angles: Floats, threshold: float, visits: Visit) -> tuple[set[int], set[int], dict[int, set[int]]]:
    """Visit pairs one by one; give the units that stay, those of complementary pairs, and whose weights each holds."""
    alive, holds = set(range(len(angles))), {unit: {unit} for unit in range(len(angles))}
    opposed: set[int] = set()
    for one, other in visits:
        if one not in alive or other not in alive:
            continue
        if angles[one, other] < threshold:
            holds[one] |= holds.pop(other)
            alive -= {other}
        elif angles[one, other] > 180 - threshold:
            alive -= {one, other}
            opposed |= {one, other}
    return alive, opposed, holds


def visits_in(order: Order, angles: Floats) -> Visit:
    size = len(angles)
    pairs = [(one, other) for one in range(size) for other in range(one + 1, size)]
    if order == "in order":
        return pairs
    return sorted(pairs, key=lambda pair: min(angles[pair], 180 - angles[pair]))


def check_all_at_once(angles: Floats, threshold: float) -> None:
    """Every pair counts: the second of similar ones goes, and both of complements, whatever became of the other."""
    found, units = sweep(angles, threshold, "all at once"), range(len(angles))
    pairs = [(one, other) for one in units for other in units if one < other]
    opposed = {unit for pair in pairs if angles[pair] > 180 - threshold for unit in pair}
    similar = {other for one, other in pairs if angles[one, other] < threshold}
    alive = set(units) - opposed - similar or {min(opposed)}
    assert set(units) - set(found.merged) - found.removed == alive
    assert set(found.merged.values()) <= alive and not found.removed & set(found.merged)
    assert set(found.merged) <= similar


def check(angles: Floats, threshold: float, order: Order) -> None:
    if order == "all at once":
        check_all_at_once(angles, threshold)
        return
    found = sweep(angles, threshold, order)
    alive, opposed, holds = literal(angles, threshold, visits_in(order, angles))
    if not alive:
        alive = {min(opposed)}
    groups = {unit: {unit} | {other for other, into in found.merged.items() if into == unit} for unit in alive}
    assert set(range(len(angles))) - set(found.merged) - found.removed == alive
    assert groups == {unit: holds[unit] for unit in alive}
    assert not found.removed & set(found.merged)


def random_angles(seed: int, size: int, dimensions: int) -> Floats:
    vectors = array_generator(seed, "vectors").normal(size=(size, dimensions))
    return angles_between(vectors @ vectors.T)


@given(
    st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 4), st.floats(0.01, 90), st.sampled_from(get_args(Order))
)
def test_a_sweep_is_the_double_loop(seed: int, size: int, dimensions: int, threshold: float, order: Order) -> None:
    check(random_angles(seed, size, dimensions), threshold, order)


@given(st.integers(0, 10**6), st.integers(1, 10), st.sampled_from(get_args(Order)))
def test_angles_that_no_vectors_have_and_ties_make_no_difference(seed: int, size: int, order: Order) -> None:
    drawn = array_generator(seed, "angles").integers(0, 13, size=(size, size)) * 15.0
    angles = numpy.triu(drawn, 1)
    check(angles + angles.T, 45.0, order)


@given(st.integers(0, 10**6), st.integers(1, 12), st.floats(0.01, 90), st.sampled_from(get_args(Order)))
def test_at_least_one_unit_stays(seed: int, size: int, threshold: float, order: Order) -> None:
    found = sweep(random_angles(seed, size, 1), threshold, order)
    assert size - len(found.merged) - len(found.removed) >= 1


@pytest.mark.parametrize("order", get_args(Order))
def test_of_two_opposite_units_the_first_stays_where_there_are_no_others(order: Order) -> None:
    found = sweep(numpy.array([[0.0, 180.0], [180.0, 0.0]]), 15, order)
    assert (found.merged, found.removed) == ({}, frozenset({1}))


@pytest.mark.parametrize("order", get_args(Order))
def test_a_unit_merged_into_one_that_goes_with_its_complement_goes_too(order: Order) -> None:
    angles = numpy.array([[0, 5, 170, 90], [5, 0, 90, 90], [170, 90, 0, 90], [90, 90, 90, 0.0]])
    found = sweep(angles, 15, order)
    assert (found.merged, found.removed) == ({}, frozenset({0, 1, 2}))


def test_a_chain_of_merges_ends_where_the_last_went() -> None:
    angles = numpy.array([[0, 10, 90], [10, 0, 5], [90, 5, 0.0]])
    assert sweep(angles, 15, "most similar first").merged == {1: 0, 2: 0}
    assert sweep(angles, 15, "in order").merged == {1: 0}


def test_the_threshold_itself_is_not_similar() -> None:
    angles = numpy.array([[0, 15, 165], [15, 0, 90], [165, 90, 0.0]])
    assert sweep(angles, 15) == sweep(angles, 0)
    assert sweep(angles, 15).removed == frozenset()


@given(st.integers(0, 10**6), st.integers(2, 8), st.integers(2, 20))
def test_angles_are_those_of_explicit_vectors(seed: int, size: int, samples: int) -> None:
    vectors = array_generator(seed, "vectors").normal(size=(size, samples))
    found = angles_between(vectors @ vectors.T / samples)
    for one in range(size):
        for other in range(size):
            lengths = numpy.linalg.norm(vectors[one]) * numpy.linalg.norm(vectors[other])
            cosine = numpy.clip(vectors[one] @ vectors[other] / lengths, -1, 1)
            assert found[one, other] == pytest.approx(numpy.degrees(numpy.arccos(cosine)), abs=1e-5)


def test_a_unit_that_is_zero_is_at_right_angles_to_all_and_stays() -> None:
    vectors = numpy.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.1]])
    angles = angles_between(vectors @ vectors.T)
    assert angles[1].tolist() == [90.0, 90.0, 90.0]
    found = sweep(angles, 90)
    assert (found.merged, found.removed) == ({2: 0}, frozenset())
