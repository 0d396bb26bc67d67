"""Augmented copies: trained on exactly where their originals are, and in no other part."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given, settings, strategies
from numpy.typing import NDArray

from topiarist.data import Data, Part, Source, SplitRule, find_source, number_labels, split_source
from topiarist.data.labels import of_classes
from topiarist.data.split import Split
from topiarist.errors import DataError, TopiaristWarning

SEEDS = strategies.integers(0, 10**6)


def mixed(seed: int, *, groups: bool = False, parts: bool = False, originals: int = 60) -> Source:
    """Return originals of three classes with 0 to 3 copies each, in random order."""
    random = numpy.random.default_rng(seed)
    repeats = random.integers(1, 5, size=originals)
    of = numpy.repeat(numpy.arange(originals), repeats)
    first = numpy.concatenate([[0], numpy.cumsum(repeats)[:-1]])
    order = random.permutation(len(of))
    place = numpy.argsort(order)
    parent = of[order]
    marks = numpy.array(["train", "test", "train"])[numpy.arange(originals) % 3]
    return Source(
        name="made",
        features=random.normal(size=(len(of), 3)),
        labels=parent % 3 if not parts else parent % 2,
        groups=parent // 4 if groups else None,
        parts=marks[parent] if parts else None,
        originals=place[first[parent]],
    )


def data_of(source: Source, **options: Any) -> Data:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)
        return Data.from_source(source, **options)


def originals_of(source: Source) -> NDArray[Any]:
    assert source.originals is not None
    return source.originals


def check(source: Source, split: Split | None) -> None:
    """See that the rule holds."""
    assert split is not None
    originals, rows = originals_of(source), numpy.arange(len(source))
    for held in (split.validation, split.test):
        assert (originals[held] == held).all(), "originals only"
    trained = set(split.train.tolist())
    assert {row for row in rows.tolist() if int(originals[row]) in trained} == trained, "copies go with their original"
    assert (numpy.diff(split.train) > 0).all()


def without_copies(source: Source) -> tuple[Source, NDArray[Any]]:
    rows = numpy.flatnonzero(originals_of(source) == numpy.arange(len(source)))
    assert isinstance(source.features, numpy.ndarray) and source.labels is not None
    bare = replace(
        source,
        features=source.features[rows],
        labels=source.labels[rows],
        groups=None if source.groups is None else source.groups[rows],
        parts=None if source.parts is None else source.parts[rows],
        originals=None,
    )
    return bare, rows


@pytest.mark.slow
@given(SEEDS, strategies.booleans(), strategies.booleans(), strategies.sampled_from([None, 12]))
def test_the_rule_holds_in_every_split(seed: int, groups: bool, parts: bool, samples: int | None) -> None:
    source = mixed(seed, groups=groups, parts=parts)
    data = data_of(source, seed=seed, samples=samples)
    check(source, data.split)
    bare, rows = without_copies(source)
    alone = data_of(bare, seed=seed, samples=samples)
    assert data.split is not None and alone.split is not None
    assert data.split.test.tolist() == rows[alone.split.test].tolist()
    assert data.split.validation.tolist() == rows[alone.split.validation].tolist()
    assert set(rows[alone.split.train].tolist()) == set(data.split.train.tolist()) & set(rows.tolist())
    assert data.notes == alone.notes


@pytest.mark.slow
@settings(max_examples=30)
@given(SEEDS, strategies.booleans(), strategies.sampled_from(["all", "development"]))
def test_the_rule_holds_in_every_fold(seed: int, groups: bool, of: Any) -> None:
    source = mixed(seed, groups=groups)
    bare, rows = without_copies(source)
    options: dict[str, Any] = {"seed": seed, "validation_fraction": 0.2, "of": of, "samples": 15}
    folds, alone = data_of(source).folds(4, **options), data_of(bare).folds(4, **options)
    for fold, other in zip(folds, alone, strict=True):
        check(source, fold.split)
        assert fold.split is not None and other.split is not None
        assert fold.split.test.tolist() == rows[other.split.test].tolist()
        assert len(set(fold.split.train.tolist()) & set(rows.tolist())) == 15 == len(other.split.train)


@pytest.mark.parametrize("parts", [True, False])
def test_where_all_are_originals_nothing_changes(parts: bool) -> None:
    bare, _ = without_copies(mixed(0, parts=parts))
    marked = replace(bare, originals=numpy.arange(len(bare)))
    one, two = data_of(bare), data_of(marked)
    for first, second in zip([one, *one.folds(3)], [two, *two.folds(3)], strict=True):
        assert first.preprocessing == second.preprocessing
        for name in ("train", "validation", "test"):
            before, after = getattr(first, name), getattr(second, name)
            assert isinstance(before, Part) and before.x.equal(after.x) and before.y.equal(after.y)


def test_a_split_by_rule_is_that_of_the_data() -> None:
    source = mixed(3)
    data = data_of(source, seed=5)
    found = split_source(source, number_labels(source)[0], SplitRule(seed=5))
    assert data.split is not None
    for one, two in zip(vars(found).values(), vars(data.split).values(), strict=True):
        assert one.tolist() == two.tolist()


def test_small_classes_are_counted_without_copies() -> None:
    labels = ["often", "common"] * 30 + ["rare"] * 5
    originals = [*range(60), *[60] * 5]
    with pytest.warns(TopiaristWarning, match="class 'rare' has 1 sample: none in validation and test"):
        data = Data.from_arrays(numpy.arange(130.0).reshape(65, 2), labels, originals=originals, scaling="zscore")
    assert isinstance(data.train, Part) and (data.train.y == 2).sum() == 5
    with pytest.raises(DataError, match="3 stratified folds: the smallest class has 1 samples"):
        data.folds(3)


@pytest.mark.slow
@given(SEEDS)
def test_a_part_of_the_classes_keeps_copies_with_their_originals(seed: int) -> None:
    source = mixed(seed)
    chosen = of_classes(source, ["0", "2"])
    assert isinstance(source.features, numpy.ndarray) and isinstance(chosen.features, numpy.ndarray)
    rows = numpy.flatnonzero(numpy.isin(numpy.asarray(source.labels), [0, 2]))
    numpy.testing.assert_array_equal(chosen.features[originals_of(chosen)], source.features[originals_of(source)[rows]])
    check(chosen, data_of(chosen).split)


@pytest.mark.parametrize(
    ("originals", "said"),
    [
        ([0, 1, 2], r"one row number for each of 6 samples; found \(3,\)"),
        ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "found .* of type float64"),
        ([0, 1, 2, 3, 4, 6], "rows are numbered 0 to 5; row 5 is a copy of 6"),
        ([-1, 1, 2, 3, 4, 5], "row 0 is a copy of -1"),
        ([0, 1, 0, 3, 2, 5], "row 4 is a copy of row 2, which is a copy itself"),
        ([0, 0, 2, 3, 4, 5], "have the label of its original; found b in row 1 and a in row 0"),
        ([0, 1, 2, 3, 0, 5], "have the group of its original; found q in row 4 and p in row 0"),
    ],
)
def test_copies_that_belong_nowhere_are_refused(originals: list[Any], said: str) -> None:
    source = Source(
        name="made",
        features=numpy.arange(12.0).reshape(6, 2),
        labels=numpy.array(list("ababab")),
        groups=numpy.array(list("pppqqq")),
        originals=numpy.array(originals),
    )
    for use in (lambda: Data.from_source(source), lambda: of_classes(source, ["a", "b"])):
        with pytest.raises(DataError, match=said) as caught:
            use()
        assert "\n" not in str(caught.value)


def test_an_archive_names_originals(tmp_path: Path) -> None:
    x, y = numpy.arange(12.0).reshape(6, 2), [0, 1, 0, 1, 0, 1]
    numpy.savez(tmp_path / "a.npz", x=x, y=y, original=numpy.array([[0], [1], [0], [1], [4], [5]], dtype=numpy.uint8))
    assert originals_of(find_source(tmp_path / "a.npz")).tolist() == [0, 1, 0, 1, 4, 5]
    pairs: dict[str, Any] = {
        "x_train": x,
        "y_train": y,
        "x_test": x[:2],
        "y_test": y[:2],
        "x_validation": x,
        "y_validation": y,
    }
    numpy.savez(tmp_path / "b.npz", **pairs, original_validation=[2, 1, 2, 3, 4, 5])
    found = find_source(tmp_path / "b.npz")
    assert originals_of(found).tolist() == [0, 1, 2, 3, 4, 5, 8, 7, 8, 9, 10, 11, 12, 13]
    assert data_of(found).split is not None
    numpy.savez(tmp_path / "c.npz", x=x, y=y)
    assert find_source(tmp_path / "c.npz").originals is None


@pytest.mark.parametrize("wrong", [[0, 1, 0, 1, 4, 6], [0, 1, 0, 1, 4, -1], [0, 1, 0, 1, 4, 0.5], list("abcdef")])
def test_an_archive_with_other_numbers_is_refused(tmp_path: Path, wrong: list[Any]) -> None:
    numpy.savez(tmp_path / "a.npz", x=numpy.ones((6, 2)), y=[0, 1, 0, 1, 0, 1], original=wrong)
    with pytest.raises(DataError, match="original must hold whole numbers from 0 to 5, one per sample"):
        find_source(tmp_path / "a.npz")
    numpy.savez(tmp_path / "a.npz", x=numpy.ones((6, 2)), y=[0, 1, 0, 1, 0, 1], original=[0, 1])
    with pytest.raises(DataError, match=r"original must hold one value for each of 6 samples, found \(2,\)"):
        find_source(tmp_path / "a.npz")
