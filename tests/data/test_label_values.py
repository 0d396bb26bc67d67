from typing import Any

import numpy
import pytest
from numpy.typing import NDArray

from topiarist.data.labels import as_labels
from topiarist.errors import DataError


def test_whole_floats_become_integers() -> None:
    labels = as_labels("t", numpy.array([1.0, 0.0, 1.0]), training=True)
    assert labels.dtype == numpy.int64
    assert labels.tolist() == [1, 0, 1]


def test_few_fractions_are_classes() -> None:
    assert as_labels("t", numpy.array([0.5, 1.5] * 9), training=True).tolist() == [0.5, 1.5] * 9


def test_one_class_is_refused_for_training_only() -> None:
    with pytest.raises(DataError, match="found only the class cat"):
        as_labels("t", numpy.array(["cat", "cat"]), training=True)
    assert as_labels("t", numpy.array(["cat"]), training=False).tolist() == ["cat"]


def test_objects_become_text() -> None:
    labels = as_labels("t", numpy.array(["a", 1, "a"], dtype=object), training=True)
    assert labels.dtype.kind == "U"
    assert labels.tolist() == ["a", "1", "a"]


@pytest.mark.parametrize("values", [numpy.array([1.0, numpy.nan]), numpy.array([1.0, numpy.inf])])
def test_missing_labels(values: NDArray[Any]) -> None:
    with pytest.raises(DataError, match="missing or infinite"):
        as_labels("t", values, training=True)


def test_labels_of_a_strange_type() -> None:
    with pytest.raises(DataError, match="complex128 are not understood"):
        as_labels("t", numpy.array([1j, 2j]), training=True)
