from typing import Any

import numpy
import pytest
from hypothesis import given, strategies
from numpy.typing import NDArray

from topiarist.data.labels import look_up, number_labels, small_class_notes
from topiarist.data.source import Source
from topiarist.data.split import Split
from topiarist.errors import DataError


def source(labels: Any, classes: tuple[str, ...] | None = None) -> Source:
    found = None if labels is None else numpy.asarray(labels)
    count = 0 if found is None else len(found)
    return Source(name="made", features=numpy.zeros((count, 2)), labels=found, classes=classes)


@given(strategies.lists(strategies.text("abcz", max_size=3), min_size=2).filter(lambda labels: len(set(labels)) > 1))
def test_numbers_and_classes_give_the_labels_back(labels: list[str]) -> None:
    numbers, classes = number_labels(source(labels))
    assert [classes[number] for number in numbers] == labels
    assert list(classes) == sorted(set(labels))


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([10, 9, 2, 10], ("2", "9", "10")),
        ([10.0, 9.0, -1.0], ("-1", "9", "10")),
        (["10", "9", "2"], ("10", "2", "9")),
        ([True, False, True], ("False", "True")),
        (numpy.array(["b", 1, "a"], dtype=object), ("1", "a", "b")),
    ],
)
def test_numbers_are_in_the_order_of_numbers_and_text_in_that_of_text(labels: Any, classes: tuple[str, ...]) -> None:
    assert number_labels(source(labels))[1] == classes


def test_known_classes_keep_their_order() -> None:
    numbers, classes = number_labels(source(["b", "b", "c"], classes=("c", "b", "a")))
    assert (numbers.tolist(), classes) == ([1, 1, 0], ("c", "b", "a"))
    assert number_labels(source(["b"], classes=("a", "b")))[0].tolist() == [1]  # one class is enough to measure on


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "made has no labels to learn from: name the label column with --target"),
        ([], "made has no samples"),
        (["a", "a"], r"made has one class only \('a'\)"),
        ([3.0, 3.0], r"made has one class only \('3'\)"),
        ([0.0, 0.5], "not whole numbers: they are numbers to predict, not classes"),
        ([0.0, numpy.inf], "1 of 2 labels are missing or infinite"),
        ([0.0, numpy.nan, numpy.nan], "2 of 3 labels are missing"),
        (numpy.array(["a", None], dtype=object), "1 of 2 labels are missing"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(labels: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        number_labels(source(labels))


def test_labels_that_are_not_among_the_classes_are_shown() -> None:
    with pytest.raises(DataError, match=r"made has labels that are not among the classes \['a', 'b'\]: \['c', 'd'\]"):
        number_labels(source(["a", "d", "c"], classes=("a", "b")))
    with pytest.raises(DataError, match="other"):
        look_up(["x"], ("a",), name="other")


def parts(train: list[int], validation: list[int], test: list[int]) -> Split:
    rows: list[NDArray[numpy.intp]] = [numpy.array(part, dtype=numpy.intp) for part in (train, validation, test)]
    return Split(train=rows[0], validation=rows[1], test=rows[2])


def test_classes_too_small_for_every_part_are_noted() -> None:
    labels = numpy.array([0, 0, 0, 1, 1, 2])
    notes = small_class_notes(labels, ("a", "b", "c"), parts([0, 3, 5], [1], [2, 4]))
    assert notes == (
        "class 'b' has 2 samples: none in validation",
        "class 'c' has 1 sample: none in validation and test",
    )
    assert small_class_notes(labels[:5], ("a", "b"), parts([0, 2, 3], [], [1, 4])) == ()


def test_a_class_that_training_never_sees_is_an_error() -> None:
    with pytest.raises(DataError, match=r"without a training sample: \['b'\]"):
        small_class_notes(numpy.array([0, 1, 0]), ("a", "b"), parts([0], [], [1, 2]))
