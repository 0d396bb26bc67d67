"""Columns as networks read them: one-hot, indices, gaps, dates; and the same after JSON."""

import json

import numpy
import pandas
import pytest
from hypothesis import given, strategies

from topiarist.data.columns.column import Column, encode
from topiarist.data.columns.deciding import read_columns
from topiarist.data.columns.decisions import forms_of
from topiarist.data.columns.fitting import category_notes, fit_columns
from topiarist.data.columns.vocabulary import HASHED, MOST_OWN, choose_vocabulary, room, shared_place
from topiarist.errors import DataError, TopiaristWarning

CELLS = strategies.lists(strategies.sampled_from(["red", "green", "blue", "1", None]), min_size=3, max_size=30)
NUMBER = Column(name="c", kind="number", fill=(7.0,))


def fitted(values: list[object], training: int | None = None, **settings: object) -> Column:
    rows = numpy.arange(len(values) if training is None else training)
    (column,) = fit_columns(pandas.DataFrame({"c": values}), rows, **settings)  # type: ignore[arg-type]
    return column


def encoded(column: Column, *cells: object) -> list[list[float]]:
    found: list[list[float]] = encode(pandas.DataFrame({"c": pandas.Series(cells, dtype=object)}), (column,)).tolist()
    return found


@pytest.mark.slow
@given(CELLS)
def test_text_becomes_what_get_dummies_gives(cells: list[str | None]) -> None:
    table = pandas.DataFrame({"c": pandas.Series(cells, dtype=object)})
    (column,) = fit_columns(table, numpy.arange(len(cells)))
    expected = pandas.get_dummies(table["c"], dtype=float)
    assert column.categories == column.known == tuple(expected.columns)
    missing = table[["c"]].isna().to_numpy(dtype=float)
    parts = [expected.to_numpy(), missing] if missing.any() else [expected.to_numpy()]
    numpy.testing.assert_array_equal(encode(table, (column,)), numpy.concatenate(parts, axis=1))


@pytest.mark.slow
@given(strategies.lists(strategies.one_of(strategies.floats(-1e6, 1e6), strategies.just(float("nan"))), min_size=2))
def test_missing_numbers_become_the_median_of_training_and_are_marked(values: list[float]) -> None:
    half = numpy.array(values[: len(values) // 2])
    column = fitted(list(values), len(half))
    known = half[~numpy.isnan(half)]
    fill = float(numpy.median(known)) if len(known) else 0.0
    found = encode(pandas.DataFrame({"c": values}), (column,))
    gaps = numpy.isnan(values)
    numpy.testing.assert_allclose(found[:, 0], numpy.where(gaps, fill, values))
    assert column.width == 1 + gaps.any()
    if gaps.any():
        numpy.testing.assert_array_equal(found[:, 1], gaps)


@pytest.mark.parametrize(
    "change",
    [
        *({"name": 5}, {"name": {}}, {"kind": "colour"}, {"encoding": "x"}, {"categories": [1]}, {"counts": [-1]}),
        *({"form": {"kind": "x"}}, {"form": {"kind": "number", "decimal": 5}}, {"form": {"kind": "date", "gaps": [1]}}),
        *({"parts": ["x"]}, {"parts": ["month"]}, {"form": {"kind": {}}}),
        *({"counts": [10**400]}, {"counts": ["1"]}, {"parts": [None]}, {"indicator": "yes"}, {"frequency": 2}),
    ],
)
def test_a_column_that_someone_made_up_is_refused(change: dict[str, object]) -> None:
    known = Column(name="c", kind="text", categories=("a",), counts=(3,)).to_json()
    assert Column.from_json(known).to_json() == known
    with pytest.raises((ValueError, TypeError)):
        Column.from_json({**known, **change})


def test_infinite_numbers_count_as_missing() -> None:
    table = pandas.DataFrame({"c": [numpy.inf, -numpy.inf, 1.0]})
    assert encode(table, (NUMBER,))[:, 0].tolist() == [7.0, 7.0, 1.0]


def test_gaps_in_the_same_rows_are_marked_once() -> None:
    cells = {"a": [1.0, None, 3.0], "b": [2.0, None, 5.0], "c": [None, 1.0, 2.0], "d": [1.0, 2.0, 3.0]}
    table = pandas.DataFrame(cells)
    columns = fit_columns(table, numpy.arange(3))
    assert [column.indicator for column in columns] == [True, False, True, False]
    assert encode(table, columns)[1].tolist() == [2.0, 1.0, 3.5, 1.0, 0.0, 2.0]


def test_a_category_that_training_did_not_show_keeps_its_place_and_is_zero() -> None:
    column = fitted(["a", "b", "a", "c"], training=3)
    assert (column.categories, column.known, column.width) == (("a", "b", "c"), ("a", "b"), 3)
    assert encoded(column, "c", "b", "new", None) == [[0, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_an_index_has_places_for_gaps_and_for_what_was_never_seen() -> None:
    column = fitted(["a", "b", None, "a", "c"], training=4, encoding="index")
    assert (column.width, column.places, column.scaled) == (1, 5, (False,))
    assert encoded(column, None, "new", "a", "b", "c") == [[0], [1], [2], [3], [1]]


def test_of_many_texts_those_in_one_row_share_a_place_with_unseen_ones() -> None:
    texts = [f"t{number:03}" for number in range(200)]
    column = fitted([*texts[:150], *texts[50:]])  # 100 texts in two rows, 100 in one
    assert column.categories == tuple(texts[50:150]) and column.shared == (100,)
    assert column.width == 100 + 1 + 1
    rare, unseen, own = encoded(column, "t000", "new", "t050")
    assert rare == unseen == [*[0.0] * 100, 1.0, pytest.approx(numpy.log(2))]
    assert own == [1.0, *[0.0] * 100, pytest.approx(numpy.log(3))]
    assert category_notes((column,)) == ("column 'c': 100 texts have an input each, all rarer ones share 1",)


def test_500_categories_keep_500_places() -> None:
    column = fitted([f"city {number % 500}" for number in range(2000)])
    assert len(column.categories) == 500 and column.shared == () and column.width == 500


def test_beyond_the_limit_rarer_texts_share_places_by_their_hash() -> None:
    numbers = [number for number in range(1500) for _ in range(2 + (number < 1000))]
    column = fitted([f"t{number}" for number in numbers])
    assert len(column.categories) == MOST_OWN and len(column.shared) == HASHED
    assert set(column.categories) == {f"t{number}" for number in range(1000)}
    assert sum(column.shared) == 1000
    place = shared_place("t1234", HASHED)
    row = encoded(column, "t1234")[0]
    assert row[:-1].index(1.0) == MOST_OWN + place and sum(row[:-1]) == 1.0
    assert shared_place("t1234", HASHED) == 34  # on every machine


def test_places_are_shared_out_among_columns() -> None:
    assert room({"a": 3000, "b": 3000, "c": 100}, 10_000) == 1000
    assert room({str(number): 500 for number in range(20)}, 10_000) == 200
    assert room({"a": 900}, 10_000) == MOST_OWN
    assert room({"a": 5000}, 2**27 // 300) == 300
    counts = {f"{number}": 2 for number in range(100)}
    assert choose_vocabulary(counts, 30).own == tuple(sorted(counts)[:30])


def test_columns_are_found_by_name_in_any_order() -> None:
    text = Column(name="a", kind="text", categories=("x", "y"), counts=(1, 1))
    columns = (Column(name="b", kind="number", fill=(0.0,)), text)
    table = pandas.DataFrame({"a": ["y", "x"], "more": [0, 0], "b": [5, 6]})
    assert encode(table, columns).tolist() == [[5.0, 0.0, 1.0], [6.0, 1.0, 0.0]]
    assert encode(table, ()).shape == (2, 0)


def test_missing_columns_are_named_with_what_is_there_instead() -> None:
    columns = tuple(Column(name=name, kind="number", fill=(0.0,)) for name in "abc")
    with pytest.raises(DataError, match=r"trained on are missing: a, c$"):
        encode(pandas.DataFrame({"b": [1]}), columns)
    with pytest.raises(DataError, match=r"trained on are missing: c \(found instead: C\)$"):
        encode(pandas.DataFrame({"a": [1], "b": [1], "C": [1]}), columns)


TABLE = pandas.DataFrame(
    {
        "price": ["1.234,5", "-", "99,25", "7,5"],
        "when": ["31.01.2024 10:00", "01.12.2023 23:30", "", "02.02.2022 00:15"],
        "member": ["ja", "nein", "?", "ja"],
        "kind": ["a", "b", "b", None],
        "sign": ["+", "-", "+", "-"],
    }
)


def test_new_cells_are_read_in_the_form_of_training() -> None:
    read = read_columns("t", TABLE)
    columns = fit_columns(read.frame, numpy.arange(4), forms_of(read.decisions))
    typed = encode(read.frame, columns)
    numpy.testing.assert_array_equal(encode(TABLE, columns), typed)
    numpy.testing.assert_array_equal(encode(TABLE[TABLE.columns[::-1]], columns), typed)
    for row in range(4):
        numpy.testing.assert_array_equal(encode(TABLE.iloc[[row]], columns), typed[[row]])
    again = tuple(Column.from_json(json.loads(json.dumps(column.to_json()))) for column in columns)
    assert again == columns
    other = TABLE.assign(when=pandas.to_datetime(TABLE["when"], format="%d.%m.%Y %H:%M"), price=read.frame["price"])
    numpy.testing.assert_array_equal(encode(other, columns), typed)


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("price", "cheap", "column 'price' must hold numbers; found 'cheap'"),
        ("member", "perhaps", "column 'member' must hold yes or no; found 'perhaps'"),
        ("when", "soon", "column 'when' must hold dates like day.month.year hour:minute; found 'soon'"),
    ],
)
def test_cells_of_another_kind_are_named(column: str, cell: str, message: str) -> None:
    read = read_columns("t", TABLE)
    columns = fit_columns(read.frame, numpy.arange(4), forms_of(read.decisions))
    with pytest.raises(
        DataError, match=f"{message} in row 1 below the header: correct such cells, or leave them empty"
    ):
        encode(TABLE.assign(**{column: pandas.Series([cell, cell, None, None])}), columns)


@pytest.mark.parametrize(("column", "kind"), [("price", "numbers"), ("member", "yes or no"), ("when", "dates like")])
def test_a_word_among_new_cells_is_a_gap_that_is_named(column: str, kind: str) -> None:
    read = read_columns("t", TABLE)
    columns = fit_columns(read.frame, numpy.arange(4), forms_of(read.decisions))
    new, gap = TABLE.copy(), TABLE.copy()
    new.loc[2, column], gap.loc[2, column] = "perhaps", None
    taken = rf"1 cell\(s\) taken as missing in column '{column}', which holds {kind}"
    with pytest.warns(TopiaristWarning, match=f"^{taken}.*: the first is 'perhaps' in row 3 below the header$"):
        found = encode(new, columns)
    numpy.testing.assert_array_equal(found, encode(gap, columns))


def test_digits_in_another_form_are_refused_unless_rare() -> None:
    table = pandas.DataFrame({"c": [f"{number} kg" for number in range(40)]})
    read = read_columns("t", table)
    columns = fit_columns(read.frame, numpy.arange(40), forms_of(read.decisions))
    with pytest.raises(DataError, match="must hold numbers with the unit 'kg'; found '4 lb' in row 1 below the header"):
        encode(pandas.DataFrame({"c": ["4 lb", "5 kg"]}), columns)
    table.loc[7, "c"] = "4 lb"
    with pytest.warns(TopiaristWarning, match="the first is '4 lb' in row 8 below the header"):
        encode(table, columns)


def test_columns_of_files_of_before_mean_the_same() -> None:
    number = Column.from_json({"name": "n", "kind": "number", "fill": 2.5, "categories": [], "known": []})
    kinds = {"categories": ["12", "A", "b "], "known": ["12", "b "]}
    text = Column.from_json({"name": "c", "kind": "text", "fill": 0.0, **kinds})
    assert number == Column(name="n", kind="number", fill=(2.5,))
    assert (text.known, text.form) == (("12", "b "), None)
    table = pandas.DataFrame({"n": [1.0, numpy.nan], "c": pandas.Series([12.0, "A"], dtype=object)})
    assert encode(table, (number, text)).tolist() == [[1.0, 1.0, 0.0, 0.0], [2.5, 0.0, 0.0, 0.0]]
    with pytest.raises(ValueError, match="does not fit together"):
        Column.from_json({"name": "c", "kind": "text", "categories": ["a"], "counts": []})
