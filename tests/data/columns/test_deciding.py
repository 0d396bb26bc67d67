"""Gaps, truth values, categories and what the user decides instead."""

from decimal import Decimal

import numpy
import pandas
import pytest

from topiarist.data.columns.choices import ColumnChoices
from topiarist.data.columns.deciding import read_columns
from topiarist.data.columns.decisions import ColumnDecision
from topiarist.data.columns.evidence import by_type
from topiarist.data.columns.forms import read_cells
from topiarist.errors import DataError


def decide(*cells: object, **choices: tuple[str, ...]) -> tuple[list[object], ColumnDecision]:
    """Return one column as it is read, and what was decided for it."""
    table = pandas.DataFrame({"c": pandas.Series(cells, dtype=object)})
    found = read_columns("t", table, choices=ColumnChoices(**choices))
    values = found.frame["c"].tolist() if "c" in found.frame else []
    return [None if pandas.isna(value) else value for value in values], found.decisions[0]


@pytest.mark.parametrize(
    "gap", ["?", "-", "--", "—", "NA", "N/A", "n/a", "null", "NULL", "None", "nan", "#N/A", "#DIV/0!", ".", "missing"]
)
def test_gaps_among_numbers(gap: str) -> None:
    values, decision = decide("1.5", gap, "2", "", None, gap)
    assert values == [1.5, None, 2.0, None, None, None]
    assert decision.read_as == "number"
    assert dict(decision.gaps) == {gap: 2, "": 2}
    assert decision.shown_gaps in (f"2 '{gap}', 2 blank", f"2 blank, 2 '{gap}'")


def test_gaps_among_texts() -> None:
    values, decision = decide("red", "?", "NA", "blue", "none", "red", " ")
    assert values == ["red", None, None, "blue", "none", "red", None]  # none may be a kind of its own
    assert (decision.read_as, dict(decision.gaps)) == ("category", {"?": 1, "NA": 1, "": 1})
    assert decide("+", "-", "+", "?")[0] == ["+", "-", "+", None]
    assert decide("a", "-", "a", "b")[0] == ["a", None, "a", "b"]


def test_gaps_are_told_by_column_in_one_note() -> None:
    table = pandas.DataFrame({"a": ["1", "?", "2", "?"], "b": ["x", "-", "x", "y"], "c": ["", "1", "2", "2"]})
    assert read_columns("t", table).notes == ("taken as missing: a (2 '?'); b (1 '-')",)


PAIRS = [
    ("yes", "no"),
    ("Y", "n"),
    ("TRUE", "FALSE"),
    ("t", "f"),
    ("ja", "nein"),
    ("oui", "non"),
    ("J", "N"),
    ("да", "нет"),
    ("vero", "falso"),
    ("是", "否"),
    ("✓", "✗"),
]


@pytest.mark.parametrize("words", PAIRS)
def test_truth_values_in_words(words: tuple[str, str]) -> None:
    values, decision = decide(words[0], words[1], words[0], "?")
    assert values == [1.0, 0.0, 1.0, None]
    assert decision.read_as == "yes or no"


def test_words_of_two_pairs_are_categories() -> None:
    assert decide("yes", "false", "yes")[1].read_as == "category"
    assert decide("m", "f", "m")[1].read_as == "category"


def test_typed_cells_are_taken_as_they_are() -> None:
    frame = pandas.DataFrame(
        {
            "whole": [1, 2, 2],
            "yes": [True, False, True],
            "perhaps": pandas.Series([True, None, False], dtype=object),
            "nullable": pandas.array([1, None, 3], dtype="Int64"),
            "price": [Decimal("1.5"), None, Decimal("2")],
            "kind": pandas.Categorical(["x", None, "x"]),
            "mixed": ["a", 12.0, 12],
        }
    )
    found = read_columns("t", frame)
    assert [decision.read_as for decision in found.decisions] == [
        *("number", "yes or no", "yes or no", "number", "number", "category", "category"),
    ]
    read = found.frame.astype(object).where(found.frame.notna(), None).to_dict("list")
    assert read["perhaps"] == [1.0, None, 0.0] and read["nullable"] == [1.0, None, 3.0]
    assert read["price"] == [1.5, None, 2.0] and read["mixed"] == ["a", "12", "12"]


@pytest.mark.parametrize("kind", ["timedelta64[ns]", "timedelta64[s]", "duration[us][pyarrow]", "object"])
def test_time_spans_are_days(kind: str) -> None:
    if "pyarrow" in kind:
        pytest.importorskip("pyarrow")
    spans = pandas.Series(pandas.to_timedelta(["36h", None, "1D"])).astype(kind)  # type: ignore[call-overload]  # any
    found = read_columns("t", pandas.DataFrame({"c": spans}), keep_typed=True)
    (decision,) = found.decisions
    assert decision.read_as == "number" and decision.missing == 1 and decision.form is not None
    for values in (found.frame["c"], read_cells(by_type(spans), decision.form)):
        assert numpy.array_equal(numpy.asarray(values), [1.5, numpy.nan, 1.0], equal_nan=True)


def test_complex_numbers_are_refused() -> None:
    with pytest.raises(DataError, match="column 'c' holds complex numbers: give their parts as two columns"):
        read_columns("t", pandas.DataFrame({"c": [1j, 2.0]}))


def test_letter_case_and_blanks_of_categories() -> None:
    values, decision = decide("red ", "Red", " red", "RED", "blue")
    assert values == ["red", "Red", "red", "RED", "blue"] and decision.distinct == 4
    said = "letter case alone tells 3 texts apart, such as 'red' and 'Red'; write them alike if they are the same"
    assert decision.said == [said]
    assert decide("YES ", "no", "yes", "No")[0] == [1.0, 0.0, 1.0, 0.0]


def test_codes_with_leading_zeros_stay_text() -> None:
    values, decision = decide("01234", "20001", "01234")
    assert values == ["01234", "20001", "01234"]
    assert decision.said == ["digits with leading zeros are codes"]


def test_a_few_words_among_many_numbers_are_gaps_and_many_make_categories() -> None:
    numbers = [f"{number}.5" for number in range(60)]
    values, decision = decide(*numbers, "see below", "broken", "broken")
    assert values[-3:] == [None, None, None]
    assert dict(decision.gaps) == {"broken": 2, "see below": 1}
    assert decision.form is not None and decision.form.gaps == ("see below", "broken")
    values, decision = decide(*numbers, *["not measured"] * 30)
    assert values == [*(float(number) for number in numbers), *[None] * 30]
    assert dict(decision.gaps) == {"not measured": 30}
    assert decide(*numbers, *[f"A/{number}" for number in (5, 5, 6, 6)])[1].said == [
        "different in nearly every row",
        "numbers and 4 cells of words, such as 'A/5', 'A/6': --number c takes these as missing",
    ]
    mixed = decide(*["1", "2", "3"] * 10, *["low", "high"] * 5)[1]
    assert mixed.read_as == "category"
    assert mixed.said == ["numbers and 10 cells of words, such as 'low', 'high': --number c takes these as missing"]


@pytest.mark.parametrize(
    ("cells", "why"), [(["", None, "?"], "empty"), (["5", "5.0"], "constant"), (["x", "x"], "constant")]
)
def test_columns_that_say_nothing(cells: list[str | None], why: str) -> None:
    assert decide(*cells)[1].why == why


def test_one_value_and_gaps_say_something() -> None:
    assert decide("5", "", "5")[1].read_as == "number"
    assert decide("yes", "", "yes")[1].read_as == "yes or no"


def test_infinite_numbers_are_missing() -> None:
    found = read_columns("t", pandas.DataFrame({"a": [1.0, numpy.inf, -numpy.inf], "b": ["inf", "1", "2"]}))
    assert found.frame.isna().sum().tolist() == [2, 1]
    assert found.notes[:2] == (
        "2 infinite number(s) taken as missing in a",
        "1 infinite number(s) taken as missing in b",
    )


def test_unnamed_columns_are_left_out_and_nested_cells_refused() -> None:
    found = read_columns("t", pandas.DataFrame([[0, 5], [1, 6]], columns=["", "a"]))
    assert list(found.frame.columns) == ["a"] and found.notes == ("1 column(s) without a name left out",)
    with pytest.raises(DataError, match="column a holds list values"):
        read_columns("t", pandas.DataFrame({"a": [[1], [2]]}))


def test_every_decision_can_be_overridden() -> None:
    assert decide("1", "2", "2", category=("c",))[0] == ["1", "2", "2"]
    assert decide("1", "2", "2", drop=("c",))[1].why == "as asked"
    assert decide("1", "low", "2", number=("c",))[0] == [1.0, None, 2.0]
    assert decide("5", "5", "5", number=("c",))[0] == [5.0, 5.0, 5.0]
    assert decide("01234", "20001", "01234", number=("c",))[0] == [1234.0, 20001.0, 1234.0]
    assert decide(*map(str, range(40)), number=("c",))[1].read_as == "number"
    assert decide(*(f"k{number}" for number in range(40)), category=("c",))[1].read_as == "category"
    assert str(decide("20240131", "20231201", date=("c=%Y%m%d",))[0][0])[:10] == "2024-01-31"
    assert str(decide("01/02/2024", "03/04/2023", date=("c=%d/%m/%Y",))[0][0])[:10] == "2024-02-01"
    assert decide("2024-01-31", "x", date=("c",))[1].said == ["year-month-day", "as asked"]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"drop": ("d",)}, "t: --drop d is not a column, found c"),
        ({"number": ("c",)}, r"--number c: none of its cells is a number; found 'x', 'y'"),
        ({"date": ("c",)}, r"--date c: none of its cells is a date in a form that is known; found 'x', 'y': name"),
        ({"date": ("c=%d.%m.%Y",)}, r"--date c: none of its cells is a date as %d.%m.%Y; found 'x', 'y'$"),
        ({"drop": ("c",), "number": ("c",)}, "--drop and --number both name c: choose one"),
    ],
)
def test_choices_that_cannot_be_followed(choices: dict[str, tuple[str, ...]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        decide("x", "y", "x", **choices)


def test_names_with_commas_and_lists_of_names() -> None:
    resolve = ColumnChoices(drop=("a, b",), category=("x,y",), date=("d=e", "f=%Y")).resolve
    columns = ["a", "b", "x,y", "d=e", "f"]
    assert resolve("t", columns) == {
        "a": ("drop", None),
        "b": ("drop", None),
        "x,y": ("category", None),
        "d=e": ("date", None),
        "f": ("date", "%Y"),
    }
