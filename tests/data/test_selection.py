"""A part of the classes, and fewer samples: what is left out, what is kept, and in which shape."""

import numpy
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topiarist import load_data
from topiarist.data import Data, Part, Source
from topiarist.data.labels import number_labels, of_classes
from topiarist.errors import DataError


def source_of(labels: list[object], *, classes: tuple[str, ...] | None = None, table: bool = False) -> Source:
    rows = numpy.arange(len(labels) * 2.0).reshape(-1, 2)
    return Source(
        name="made up",
        features=pandas.DataFrame(rows, columns=["a", "b"]) if table else rows,
        labels=numpy.array(labels),
        classes=classes,
        groups=numpy.arange(len(labels)) // 2,
        parts=numpy.array(["train", "test"])[numpy.arange(len(labels)) % 2],
    )


@pytest.mark.parametrize("table", [True, False])
@pytest.mark.parametrize(
    ("labels", "classes", "asked"),
    [
        (["x", "y", "z", "x", "y", "z"], None, ["z", "x"]),
        (["x", "y", "z", "x", "y", "z"], ("z", "y", "x"), ["x", "z"]),
        ([3, 10, 9, 3, 10, 9], None, ["10", "3"]),
        ([3.0, 10.0, 9.0, 3.0, 10.0, 9.0], None, ["3", "10"]),
        (["x", "y", "z", "x", "y", "z"], None, ["x", "z", "x"]),
    ],
)
def test_samples_of_other_classes_are_left_out(
    labels: list[object], classes: tuple[str, ...] | None, asked: list[str], table: bool
) -> None:
    source = source_of(labels, classes=classes, table=table)
    numbers, names = number_labels(source)
    chosen = of_classes(source, asked)
    kept = [row for row, number in enumerate(numbers) if names[number] in asked]
    assert len(kept) == 4 and isinstance(chosen.features, type(source.features))
    assert numpy.asarray(chosen.features)[:, 0].tolist() == [2.0 * row for row in kept]
    assert chosen.groups is not None and chosen.groups.tolist() == [row // 2 for row in kept]
    assert chosen.parts is not None and chosen.parts.tolist() == [("train", "test")[row % 2] for row in kept]
    assert chosen.classes == tuple(name for name in names if name in asked), "in the order of the source"
    again, left = number_labels(chosen)
    assert [left[number] for number in again] == [names[numbers[row]] for row in kept]


def test_of_bundled_data() -> None:
    source = load_data("iris").source
    assert source is not None
    data = Data.from_source(of_classes(source, ["virginica", "setosa"]))
    assert data.classes == ("setosa", "virginica")
    assert sum(len(part) for part in (data.train, data.validation, data.test)) == 100
    assert isinstance(data.train, Part) and set(data.train.y.tolist()) == {0, 1}


@pytest.mark.parametrize(
    ("asked", "said"), [(["x"], "at least 2 classes"), (["x", "x"], "at least 2"), ([], "at least 2")]
)
def test_one_class_is_no_task(asked: list[str], said: str) -> None:
    with pytest.raises(DataError, match=said):
        of_classes(source_of(["x", "y", "z"]), asked)


def test_a_class_that_is_not_there_is_named() -> None:
    with pytest.raises(DataError, match="'w'"):
        of_classes(source_of(["x", "y", "z"]), ["x", "w"])


def made(counts: list[int], *, samples: int | None = None, seed: int = 0) -> Data:
    labels = numpy.repeat(numpy.arange(len(counts)), counts)
    x = numpy.arange(len(labels) * 2.0).reshape(-1, 2)
    return Data.from_arrays(
        x, labels, test_fraction=0.2, validation_fraction=0.1, samples=samples, seed=seed, scaling="zscore"
    )


def rows_of(data: Data) -> tuple[list[int], list[int], list[int]]:
    assert data.split is not None
    return data.split.train.tolist(), data.split.validation.tolist(), data.split.test.tolist()


@pytest.mark.slow
@given(st.integers(3, 62), st.integers(0, 5))
def test_as_many_samples_as_asked_for_from_all_classes(count: int, seed: int) -> None:
    whole, fewer = made([30, 30, 30], seed=seed), made([30, 30, 30], samples=count, seed=seed)
    (train, validation, test), (fewer_train, fewer_validation, same_test) = rows_of(whole), rows_of(fewer)
    assert len(fewer_train) == count == len(fewer.train) and set(fewer_train) < set(train) and same_test == test
    assert set(fewer_validation) <= set(validation)
    assert abs(len(fewer_validation) / len(validation) - count / len(train)) <= 0.5 / len(validation) + 1e-9
    assert isinstance(fewer.train, Part)
    members = numpy.bincount(fewer.train.y.numpy(), minlength=3)
    assert members.min() >= 1 and members.max() - members.min() <= 1
    assert rows_of(made([30, 30, 30], samples=count, seed=seed))[0] == fewer_train


def test_the_scaling_is_that_of_the_samples_chosen() -> None:
    fewer = made([30, 30, 30], samples=12)
    assert isinstance(fewer.train, Part) and fewer.train.x.mean(dim=0).abs().max() < 1e-5


def test_no_fewer_than_there_are_changes_nothing() -> None:
    whole = made([10, 10])
    assert rows_of(made([10, 10], samples=10**9)) == rows_of(whole) == rows_of(made([10, 10], samples=len(whole.train)))


def test_few_samples_show_every_class() -> None:
    fewer = made([90, 10, 10], samples=4)
    assert isinstance(fewer.train, Part) and set(fewer.train.y.tolist()) == {0, 1, 2} and len(fewer.train) == 4


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(DataError, match="2 training samples cannot show 3 classes"):
        made([30, 30, 30], samples=2)


def test_folds_with_fewer_samples() -> None:
    data = made([30, 30, 30])
    for whole, fewer in zip(data.folds(5), data.folds(5, samples=9, validation_fraction=0.2), strict=True):
        assert len(fewer.train) == 9 and rows_of(fewer)[2] == rows_of(whole)[2]
        assert set(rows_of(fewer)[0]) < set(rows_of(whole)[0])
