import datetime
from decimal import Decimal

import numpy
import pandas
import pytest

from topiarist.data.columns import check_column, check_header, drop_uninformative, listed, tidy
from topiarist.errors import DataError


def test_many_columns_are_listed_shortly() -> None:
    assert listed([str(place) for place in range(22)]).endswith("18, 19 and 2 more")


def test_repeated_names_are_named() -> None:
    check_header("t", ["a", "", "", "b"])
    with pytest.raises(DataError, match="found more than once: a, b"):
        check_header("t", ["a", "b", "a", "b", "c"])


def test_the_closest_column_is_offered() -> None:
    with pytest.raises(
        DataError, match=r"--target speces is not a column, found size, species; did you mean species\?"
    ):
        check_column("t", ["size", "species"], "speces", option="--target")


def test_columns_become_numbers_truth_values_or_text() -> None:
    frame = pandas.DataFrame(
        {
            "whole": [1, 2, 3],
            "yes": [True, False, True],
            "perhaps": pandas.Series([True, None, False], dtype=object),
            "nullable": pandas.array([1, None, 3], dtype="Int64"),
            "price": [Decimal("1.5"), None, Decimal("2")],
            "text": ["a", None, "b"],
            "category": pandas.Categorical(["x", None, "y"]),
            "day": [datetime.date(2020, 1, 2), None, datetime.date(2020, 1, 3)],
        }
    )
    tidied, notes = tidy("t", frame)
    assert notes == []
    for name in ("whole", "perhaps", "nullable", "price"):
        assert tidied[name].dtype == numpy.float64
    assert tidied["yes"].dtype == bool
    assert tidied["perhaps"].tolist()[::2] == [1.0, 0.0]
    for name, first in (("text", "a"), ("category", "x"), ("day", "2020-01-02")):
        assert tidied[name].iloc[0] == first
        assert tidied[name].isna().tolist() == [False, True, False]


def test_infinite_numbers_are_missing() -> None:
    tidied, notes = tidy("t", pandas.DataFrame({"a": [1.0, numpy.inf, -numpy.inf], "b": [1.0, 2.0, 3.0]}))
    assert tidied["a"].isna().tolist() == [False, True, True]
    assert notes == ["2 infinite number(s) taken as missing in a"]


def test_unnamed_columns_are_left_out() -> None:
    tidied, notes = tidy("t", pandas.DataFrame([[0, 5], [1, 6]], columns=["", "a"]))
    assert list(tidied.columns) == ["a"]
    assert notes == ["1 column(s) without a name left out"]


def test_nested_values_are_refused() -> None:
    with pytest.raises(DataError, match="column a holds"):
        tidy("t", pandas.DataFrame({"a": [[1], [2]]}))


def test_uninformative_columns_are_left_out_by_name() -> None:
    frame = pandas.DataFrame(
        {
            "good": [1.0, 2.0, 2.0],
            "rare": [1.0, numpy.nan, 1.0],
            "empty": [numpy.nan] * 3,
            "same": ["x"] * 3,
            "key": ["a", "b", "c"],
            "number": [1.0, 2.0, 3.0],
        }
    )
    kept, notes = drop_uninformative(frame)
    assert list(kept.columns) == ["good", "rare", "number"]
    assert notes == ["left out, empty: empty", "left out, constant: same", "left out, different in every row: key"]
