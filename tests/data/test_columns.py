import numpy
import pandas
import pytest
from hypothesis import given, strategies

from topiarist.data.columns import MOST_CATEGORIES, Column, describe_column, encode, wide_text_notes
from topiarist.errors import DataError

CELLS = strategies.lists(strategies.sampled_from(["red", "green", "blue", "", "1", None]), min_size=3, max_size=30)


def described(values: list[object], training: int | None = None) -> Column:
    rows = numpy.arange(len(values) if training is None else training)
    return describe_column(pandas.Series(values, name="c"), rows)


@pytest.mark.slow
@given(CELLS)
def test_text_becomes_what_get_dummies_gives(cells: list[str | None]) -> None:
    table = pandas.DataFrame({"c": pandas.Series(cells, dtype=object)})
    column = describe_column(table["c"], numpy.arange(len(cells)))
    expected = pandas.get_dummies(table["c"], dtype=float)
    assert column.categories == column.known == tuple(expected.columns)
    numpy.testing.assert_array_equal(encode(table, (column,)), expected.to_numpy())


@pytest.mark.slow
@given(strategies.lists(strategies.one_of(strategies.floats(-1e6, 1e6), strategies.just(float("nan"))), min_size=2))
def test_missing_numbers_become_the_median_of_training(values: list[float]) -> None:
    half = numpy.array(values[: len(values) // 2])
    column = described(list(values), len(half))
    assert column.kind == "number" and column.width == 1
    known = half[~numpy.isnan(half)]
    fill = float(numpy.median(known)) if len(known) else 0.0
    found = encode(pandas.DataFrame({"c": values}), (column,))[:, 0]
    numpy.testing.assert_allclose(found, numpy.where(numpy.isnan(values), fill, values))


def test_infinite_numbers_count_as_missing() -> None:
    column = Column(name="c", kind="number", fill=7.0)
    table = pandas.DataFrame({"c": [numpy.inf, -numpy.inf, 1.0]})
    assert encode(table, (column,))[:, 0].tolist() == [7.0, 7.0, 1.0]


def test_truth_values_are_numbers() -> None:
    column = described([True, False, True])
    assert (column.kind, column.fill) == ("number", 1.0)
    assert encode(pandas.DataFrame({"c": [True, False]}), (column,))[:, 0].tolist() == [1.0, 0.0]


def test_a_category_that_training_did_not_show_keeps_its_place_and_is_zero() -> None:
    column = described(["a", "b", "a", "c"], training=3)
    assert (column.categories, column.known, column.width) == (("a", "b", "c"), ("a", "b"), 3)
    assert encode(pandas.DataFrame({"c": ["c", "b", "new", None]}), (column,)).tolist() == [
        [0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0],
        [0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0],
    ]


def test_only_the_most_frequent_texts_are_used() -> None:
    texts = [f"t{number:03}" for number in range(60)]
    column = described([*texts, *texts[20:]])
    assert column.width == MOST_CATEGORIES
    assert set(texts[20:]) <= set(column.categories)
    assert column.categories[:10] == tuple(texts[:10])  # of equally rare ones, the first


def test_wide_text_is_noted() -> None:
    table = pandas.DataFrame({"wide": [f"t{number}" for number in range(60)], "n": range(60), "few": ["a", "b"] * 30})
    assert wide_text_notes(table) == ("column 'wide' has 60 different texts: the 50 most frequent are used",)
    assert wide_text_notes(numpy.zeros((60, 2))) == ()


def test_columns_keep_their_order_and_others_are_ignored() -> None:
    columns = (Column(name="b", kind="number"), Column(name="a", kind="text", categories=("x", "y"), known=("x", "y")))
    table = pandas.DataFrame({"a": ["y", "x"], "more": [0, 0], "b": [5, 6]})
    assert encode(table, columns).tolist() == [[5.0, 0.0, 1.0], [6.0, 1.0, 0.0]]
    assert encode(table, ()).shape == (2, 0)


def test_missing_columns_are_named() -> None:
    columns = tuple(Column(name=name, kind="number") for name in "abc")
    with pytest.raises(DataError, match=r"trained on are missing: a, c$"):
        encode(pandas.DataFrame({"b": [1]}), columns)


def test_text_among_numbers_is_shown() -> None:
    column = Column(name="age", kind="number")
    with pytest.raises(DataError, match="column 'age' must hold numbers; found 'old'"):
        encode(pandas.DataFrame({"age": [1, "2", None, "old"]}), (column,))
    assert encode(pandas.DataFrame({"age": ["1", " 2.5"]}), (column,))[:, 0].tolist() == [1.0, 2.5]


def test_a_text_column_in_which_only_numbers_are_left_means_the_same() -> None:
    """A file without the words is read as numbers: 12 comes as 12.0 and must still be the category '12'."""
    column = described(["12", "A1", "12", "7.5"])
    expected = encode(pandas.DataFrame({"c": ["12", "7.5", None]}), (column,))
    numpy.testing.assert_array_equal(encode(pandas.DataFrame({"c": [12.0, 7.5, numpy.nan]}), (column,)), expected)
    assert expected.sum() == 2
