"""Labels against a slow oracle of sets: what is tied goes together, products split and merge, reasons spread."""

from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topiarist.tracing.labels import Labels
from topiarist.tracing.units import Mark
from topiarist.tracing.vectors import Vector

WHY = "they do not correspond"


class Sets:
    """The oracle: plain units as sets that are united one pair at a time."""

    def __init__(self, count: int) -> None:
        self.of = {unit: {unit} for unit in range(1, count + 1)}
        self.fixed: set[int] = set()

    def tie(self, left: int, right: int) -> None:
        both = self.of[left] | self.of[right]
        for unit in both:
            self.of[unit] = both

    def is_fixed(self, unit: int) -> bool:
        return bool(self.of[unit] & self.fixed)


def roots_of(labels: Labels, vector: Vector) -> list[int]:
    return [int(unit) for unit in labels.units_at(vector)[:, 0]]


@pytest.mark.slow
@settings(max_examples=200)
@given(st.data())
def test_plain_ties_unite_what_sets_unite(data: st.DataObject) -> None:
    labels = Labels()
    vectors = [labels.create(data.draw(st.integers(1, 6))) for _ in range(data.draw(st.integers(1, 5)))]
    oracle = Sets(len(labels) - 1)
    units = st.integers(1, len(labels) - 1)
    for _ in range(data.draw(st.integers(0, 8))):
        pairs = data.draw(st.lists(st.tuples(units, units), min_size=1, max_size=5))
        if data.draw(st.booleans()):
            labels.tie(numpy.array([[left] for left, _ in pairs]), numpy.array([[right] for _, right in pairs]), WHY)
            for left, right in pairs:
                oracle.tie(left, right)
        else:
            labels.fix(numpy.array([[left] for left, _ in pairs]), "fixed")
            oracle.fixed |= {left for left, _ in pairs}
    everything = numpy.concatenate(vectors)
    found = dict(zip(everything[:, 0].tolist(), roots_of(labels, everything), strict=True))
    for one in oracle.of:
        assert (labels.reason(found[one]) is not None) == oracle.is_fixed(one)
        for other in oracle.of:
            assert (found[one] == found[other]) == (other in oracle.of[one])


def positions(labels: Labels, vector: Vector, gone: set[int]) -> list[bool]:
    """Return which positions are alive, by looking at each by itself."""
    return [not any(int(unit) in gone for unit in row) for row in labels.units_at(vector)]


@pytest.mark.slow
@settings(max_examples=200)
@given(st.integers(2, 4), st.integers(2, 4), st.integers(2, 3), st.data())
def test_an_axis_that_is_split_and_merged_again_is_the_same(
    rows: int, columns: int, depth: int, data: st.DataObject
) -> None:
    labels = Labels()
    vector = labels.create(rows * columns * depth)
    sizes = data.draw(st.sampled_from([[rows, columns * depth], [rows * columns, depth], [rows, columns, depth]]))
    parts = labels.split(vector, sizes, WHY)
    assert [None if part is None else len(part) for part in parts] == sizes
    merged = labels.merge(parts, sizes)
    assert merged is not None
    assert (labels.units_at(merged) == labels.units_at(vector)).all()
    part = data.draw(st.sampled_from([each for each in parts if each is not None]))
    gone = int(labels.units_at(part)[data.draw(st.integers(0, len(part) - 1)), 0])
    dead = numpy.zeros(len(labels), bool)
    dead[gone] = True
    alive = labels.alive(vector, dead)
    assert alive.tolist() == positions(labels, vector, {gone})
    assert (~alive).sum() == len(vector) // len(part)
    copies = numpy.ones(len(labels), numpy.int64)
    copies[gone] = 0
    assert labels.count(vector, copies) == alive.sum()


@settings(max_examples=200)
@given(st.integers(2, 4), st.integers(2, 4), st.booleans())
def test_products_that_meet_tie_factor_by_factor(heads: int, dims: int, split_first: bool) -> None:
    """A vector of plain units tied to a product becomes that product, whichever was split first."""
    labels = Labels()
    queries, keys = labels.create(heads * dims), labels.create(heads * dims)
    if split_first:
        across, along = labels.split(queries, [heads, dims], WHY)
        labels.tie(queries, keys, WHY)
        others = labels.split(keys, [heads, dims], WHY)
    else:
        others = labels.split(keys, [heads, dims], WHY)
        across, along = labels.split(queries, [heads, dims], WHY)
        labels.tie(queries, keys, WHY)
    assert across is not None and along is not None
    for own, other in zip((across, along), others, strict=True):
        assert other is not None
        assert roots_of(labels, own) == roots_of(labels, other)
    assert len({*roots_of(labels, across), *roots_of(labels, along)}) == heads + dims


def test_products_of_different_shape_are_fixed_where_they_meet() -> None:
    """Six positions as 2 × 3 and as 3 × 2: no factor of one changes as a factor of the other does."""
    labels = Labels()
    one, other = labels.create(6), labels.create(6)
    labels.split(one, [2, 3], WHY)
    labels.split(other, [3, 2], WHY)
    labels.tie(one, other, WHY)
    units = numpy.unique(labels.units_at(numpy.concatenate([one, other])))
    assert {labels.reason(int(unit)) for unit in units if unit} == {WHY}


def test_a_unit_beside_nothing_has_to_stay() -> None:
    labels = Labels()
    vector = labels.create(3)
    labels.tie(vector, numpy.array([[int(vector[0, 0])], [0], [0]]), WHY)
    assert [labels.reason(unit) for unit in roots_of(labels, vector)] == [None, WHY, WHY]


def test_the_first_reason_counts_and_follows_a_unit_into_its_factors() -> None:
    labels = Labels()
    vector = labels.create(6)
    labels.fix(vector[:1], "first")
    labels.fix(vector[:1], "second")
    across, along = labels.split(vector, [2, 3], WHY)
    assert across is not None and along is not None
    assert [labels.reason(unit) for unit in roots_of(labels, across)] == ["first", None]
    assert [labels.reason(unit) for unit in roots_of(labels, along)] == ["first", None, None]


def test_marks_follow_ties_and_products() -> None:
    labels = Labels()
    one, other = labels.create(4), labels.create(4)
    labels.mark(one, Mark.AVERAGED)
    labels.tie(one, other, WHY)
    labels.mark(other[:1], Mark.ESCAPED)
    across, along = labels.split(other, [2, 2], WHY)
    assert across is not None and along is not None
    assert all(labels.marks(row) & Mark.AVERAGED for row in labels.units_at(across))
    assert [bool(labels.marks(row) & Mark.ESCAPED) for row in labels.units_at(along)] == [True, False]


def test_a_copy_changes_nothing_in_the_original() -> None:
    labels = Labels()
    one, other = labels.create(3), labels.create(3)
    copy = labels.copy()
    copy.tie(one, other, WHY)
    copy.fix(one, "fixed")
    assert roots_of(labels, one) != roots_of(labels, other)
    assert labels.reason(int(one[0, 0])) is None
    assert roots_of(copy, one) == roots_of(copy, other)


@pytest.mark.parametrize("sizes", [[1, 6], [6, 1], [6]])
def test_axes_of_one_position_take_no_units(sizes: Any) -> None:
    labels = Labels()
    vector = labels.create(6)
    parts = labels.split(vector, sizes, WHY)
    assert [part is not None for part in parts] == [size == 6 for size in sizes]
    assert len(labels) == 7


def test_a_unit_that_is_tied_to_its_own_factor_ends() -> None:
    """In one round, the unit is tied to the factor, and is to stand for the product of the factor and another."""
    labels = Labels()
    unit, factor, other = labels.create(1), labels.create(1), labels.create(1)
    left = numpy.concatenate([unit, unit])
    right = numpy.array([[factor[0, 0], 0], [factor[0, 0], other[0, 0]]])
    labels.tie(left, right, WHY)
    assert roots_of(labels, unit) == roots_of(labels, factor)
    assert labels.reason(roots_of(labels, other)[0]) == WHY
