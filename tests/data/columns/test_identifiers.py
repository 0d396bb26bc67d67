"""Ids and row numbers beside measurements that are all different."""

import numpy
import pandas
import pytest

from topiarist.data.columns.deciding import read_columns
from topiarist.data.columns.identifiers import number_identifies

RANDOM = numpy.random.default_rng(0)


def identifies(name: str, numbers: object) -> str | None:
    return number_identifies(name, numpy.asarray(numbers, dtype=float))


@pytest.mark.parametrize("name", ["id", "ID", "PassengerId", "customer_id", "row", "index", "Unnamed: 0", "SK_ID_CURR",
                                  "account number", "patient no", "uuid", "rownumber"])  # fmt: skip
def test_a_name_and_different_whole_numbers_make_an_id(name: str) -> None:
    assert "name" in (identifies(name, [712, 5, 99]) or "")
    assert identifies(name, [712, 5, 5]) is None
    assert identifies(name, [7.5, 5.0, 9.0]) is None


@pytest.mark.parametrize("name", ["idle", "width", "rowing speed", "keyboard", "number of rooms", "paid", "grid"])
def test_other_names_make_none(name: str) -> None:
    assert identifies(name, [712, 5, 99]) is None


def test_numbers_in_order_are_row_numbers() -> None:
    for numbers in (range(40), range(100, 60, -1), [number for number in range(80) if number % 3]):
        assert (identifies("a", list(numbers)) or "").startswith("row numbers")
    assert identifies("a", list(range(19))) is None  # too few to tell
    assert identifies("year", list(range(1990, 2020))) is None
    assert identifies("a", numpy.arange(40) * 1.5) is None
    assert identifies("a", numpy.cumsum(RANDOM.integers(1, 50, 40))) is None  # sorted by a measurement


def test_numbers_too_dense_for_chance_are_ids() -> None:
    dense = RANDOM.permutation(5000)[:1000] + 1
    assert identifies("a", dense) == (
        f"all different, though 1,000 measurements from {dense.min():,} to {dense.max():,} would repeat"
    )
    sparse = RANDOM.permutation(10**5)[:300]
    assert identifies("a", sparse) is None
    assert identifies("a", 10**17 + 10**6 * numpy.arange(30.0)[::-1]) == "all different, of more than 15 digits"


def test_what_is_left_out_and_what_might_be_is_said() -> None:
    order = RANDOM.permutation(40)
    frame = pandas.DataFrame({"a": order, "big": order * 10**6 + 7, "b": order % 7})
    found = read_columns("t", frame.astype(str))
    assert list(found.frame.columns) == ["big", "b"]
    assert found.notes == (
        "left out, all different, though 40 measurements from 0 to 39 would repeat: a",
        "big: different in every row, kept as a measurement: --drop it if it is an id",
    )
    kept = read_columns("t", frame, keep_typed=True)
    assert list(kept.frame.columns) == ["a", "big", "b"] and kept.notes == ()


def test_the_only_column_stays_unless_it_is_called_an_id() -> None:
    assert list(read_columns("t", pandas.DataFrame({"a": range(40)})).frame.columns) == ["a"]
    assert read_columns("t", pandas.DataFrame({"id": range(40)})).frame.columns.empty


def test_texts_that_name_rows() -> None:
    numbers = range(100)
    frame = pandas.DataFrame(
        {
            "key": [f"k{number}" for number in numbers],
            "ticket": [f"t{max(number, 4)}" for number in numbers],
            "review": [f"it was about as good as number {number // 2} or so" for number in numbers],
            "long name": ["a very long name of one kind", "another very long name of one kind"] * 50,
            "pair": [f"p{number // 2}" for number in numbers],
        }
    )
    found = read_columns("t", frame)
    assert list(found.frame.columns) == ["long name", "pair"]
    assert found.notes == (
        "left out, different in every row: key",
        "left out, different in nearly every row: ticket",
        "left out, text of many words: review",
    )
