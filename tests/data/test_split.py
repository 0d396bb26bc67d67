from typing import Any

import numpy
import pytest
from hypothesis import given, strategies
from numpy.typing import NDArray

from topiarist.data.split import Split, SplitRule, fold_tests, hold_out, shares, split_rows
from topiarist.errors import DataError

FRACTIONS = {"test": 0.2, "validation": 0.15}
SEEDS = strategies.integers(0, 2**40)
CLASS_SIZES = strategies.lists(strategies.integers(1, 40), min_size=2, max_size=6)


def labels_of(sizes: list[int]) -> NDArray[numpy.int64]:
    """Return labels of classes of these sizes, mixed up."""
    labels = numpy.repeat(numpy.arange(len(sizes)), sizes)
    return labels[numpy.argsort(numpy.sin(1 + numpy.arange(len(labels)) * 7.1), kind="stable")]


def split(labels: NDArray[Any], *, seed: int = 0, fractions: dict[str, float] | None = None, **changes: Any) -> Split:
    shares = {f"{name}_fraction": fraction for name, fraction in (fractions or FRACTIONS).items()}
    return split_rows(labels, rule=SplitRule(seed=seed, **shares), **{"groups": None, "parts": None, **changes})


def rows_of(found: Split) -> list[NDArray[Any]]:
    return [found.train, found.validation, found.test]


@given(CLASS_SIZES, SEEDS)
def test_parts_cover_every_row_once_in_order(sizes: list[int], seed: int) -> None:
    labels = labels_of(sizes)
    parts = rows_of(split(labels, seed=seed))
    assert sorted(numpy.concatenate(parts).tolist()) == list(range(len(labels)))
    assert all((numpy.diff(part) > 0).all() for part in parts)
    assert set(labels[parts[0]].tolist()) == set(labels.tolist())  # training sees every class


@given(CLASS_SIZES, strategies.floats(0.01, 0.99), SEEDS)
def test_what_is_held_out_is_stratified_within_one_sample(sizes: list[int], fraction: float, seed: int) -> None:
    labels = labels_of(sizes)
    held = hold_out(labels, None, fraction=fraction, seed=seed, name="test")
    counts = numpy.bincount(labels[held], minlength=len(sizes))
    quotas = numpy.array(sizes) * fraction
    assert (numpy.abs(counts - quotas) < 1 + 1e-9).all()
    assert (counts < numpy.array(sizes)).all()


@given(strategies.lists(strategies.integers(20, 60), min_size=2, max_size=6), SEEDS)
def test_totals_are_exact(sizes: list[int], seed: int) -> None:
    found, total = split(labels_of(sizes), seed=seed), sum(sizes)
    assert len(found.test) == round(0.2 * total)
    assert len(found.validation) == round(total * 0.15)


def test_a_sample_that_a_single_member_cannot_give_comes_from_another_class() -> None:
    assert shares(numpy.array([1, 1, 1, 1, 96]), 0.2).tolist() == [0, 0, 0, 0, 20]
    assert shares(numpy.array([1] * 10), 0.2).tolist() == [0] * 10


def test_a_class_with_a_single_member_is_trained_on() -> None:
    labels = labels_of([30, 30, 1])
    for seed in range(5):
        assert 2 in labels[split(labels, seed=seed).train]


def test_one_class_only_can_be_split() -> None:
    assert [len(part) for part in rows_of(split(numpy.zeros(100, dtype=int)))] == [65, 15, 20]


def test_the_seed_decides() -> None:
    labels = labels_of([50, 30, 20])
    first, again, other = split(labels, seed=1), split(labels, seed=1), split(labels, seed=2)
    for one, two, three in zip(rows_of(first), rows_of(again), rows_of(other), strict=True):
        assert one.tolist() == two.tolist() != three.tolist()


def test_without_fractions_all_is_training() -> None:
    found = split(labels_of([5, 5]), fractions={"test": 0.0, "validation": 0.0})
    assert [len(part) for part in rows_of(found)] == [10, 0, 0]


@pytest.mark.parametrize("fraction", [-0.1, 1.0, 1.5, float("nan")])
def test_impossible_fractions_are_refused(fraction: float) -> None:
    with pytest.raises(DataError, match=f"the test part must be a fraction .* found {fraction}"):
        split(labels_of([5, 5]), fractions={"test": fraction, "validation": 0.1})
    with pytest.raises(DataError, match="leave nothing to train on"):
        split(labels_of([5, 5]), fractions={"test": 0.5, "validation": 0.5})


def test_a_split_of_the_source_is_respected() -> None:
    labels = labels_of([60, 40])
    parts = numpy.where(numpy.arange(100) % 4 == 0, "test", "train")
    found = split(labels, parts=parts)
    assert found.test.tolist() == list(range(0, 100, 4))
    assert len(found.validation) == round(0.15 * 75)
    complete = numpy.where(numpy.arange(100) % 5 == 1, "validation", parts)
    assert split(labels, parts=complete).validation.tolist() == list(range(1, 100, 5))


GROUPED = strategies.lists(
    strategies.tuples(strategies.integers(0, 2), strategies.integers(0, 7)), min_size=6, max_size=60
).filter(lambda rows: len({group for _, group in rows}) > 3)


@pytest.mark.slow
@given(GROUPED, SEEDS)
def test_groups_are_never_shared(rows: list[tuple[int, int]], seed: int) -> None:
    labels, groups = numpy.array(rows).T
    parts = rows_of(split(labels, seed=seed, groups=groups))
    assert sorted(numpy.concatenate(parts).tolist()) == list(range(len(labels)))
    assert all(len(part) for part in parts)
    shared = [set(groups[part].tolist()) for part in parts]
    assert sum(map(len, shared)) == len(set(groups.tolist()))


def test_one_group_cannot_be_parted() -> None:
    with pytest.raises(DataError, match="whole groups aside: found 1 group"):
        split(labels_of([5, 5]), groups=numpy.array(["a"] * 10))


@given(strategies.lists(strategies.integers(5, 20), min_size=1, max_size=5), strategies.integers(2, 5), SEEDS)
def test_folds_test_each_row_once_and_are_stratified(sizes: list[int], folds: int, seed: int) -> None:
    labels = labels_of(sizes)
    tests = fold_tests(labels, None, folds=folds, seed=seed)
    assert len(tests) == folds
    assert sorted(numpy.concatenate(tests).tolist()) == list(range(len(labels)))
    for test in tests:
        counts = numpy.bincount(labels[test], minlength=len(sizes))
        assert (numpy.abs(counts - numpy.array(sizes) / folds) < 1).all()


@pytest.mark.slow
@given(GROUPED, SEEDS)
def test_folds_keep_groups_together(rows: list[tuple[int, int]], seed: int) -> None:
    labels, groups = numpy.array(rows).T
    for folds in (2, len(set(groups.tolist()))):
        tests = fold_tests(labels, groups, folds=folds, seed=seed)
        assert sorted(numpy.concatenate(tests).tolist()) == list(range(len(labels)))
        assert all(len(test) for test in tests)
        assert sum(len(set(groups[test].tolist())) for test in tests) == len(set(groups.tolist()))


def test_the_seed_decides_the_folds() -> None:
    labels = labels_of([20, 20])
    for groups in (None, numpy.arange(40) // 4):
        first, again, other = (
            [test.tolist() for test in fold_tests(labels, groups, folds=4, seed=seed)] for seed in (1, 1, 2)
        )
        assert first == again != other


@pytest.mark.parametrize(
    ("labels", "groups", "folds", "message"),
    [
        (labels_of([9, 9]), None, 1, "at least 2 folds; asked for 1"),
        (labels_of([2, 2]), None, 5, "5 folds of 4 samples"),
        (labels_of([9, 3]), None, 5, "5 stratified folds: the smallest class has 3 samples"),
        (labels_of([9, 9]), numpy.arange(18) % 3, 4, "4 folds of 3 groups"),
    ],
)
def test_impossible_folds_are_refused(
    labels: NDArray[Any], groups: NDArray[Any] | None, folds: int, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        fold_tests(labels, groups, folds=folds, seed=0)
