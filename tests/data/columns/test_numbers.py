"""Numbers as people write them, one column at a time."""

import numpy
import pandas
import pytest
from hypothesis import given, settings, strategies

from topiarist.data.columns.choices import ColumnChoices
from topiarist.data.columns.deciding import read_columns
from topiarist.data.columns.forms import read_cells
from topiarist.data.columns.numbers import plain_numbers, read_numbers, shows_point
from topiarist.errors import DataError

MARKS = {
    "plain": ("", "."),
    "english": (",", "."),
    "european": (".", ","),
    "swiss": ("'", "."),
    "french": ("\u202f", ","),
}
NUMBERS = strategies.lists(strategies.integers(-(10**9), 10**9), min_size=2, max_size=30, unique=True)


def read(*cells: str | None, semicolons: bool = False) -> tuple[list[float], list[str]]:
    """Return a column of text as numbers, and what is said of it."""
    table = pandas.DataFrame({"c": pandas.Series(cells, dtype=object)})
    found = read_columns("t", table, semicolons=semicolons)
    (decision,) = found.decisions
    assert decision.read_as == "number", decision
    return found.frame["c"].tolist(), decision.said


@pytest.mark.parametrize(
    ("cells", "expected", "said"),
    [
        (["1,234.56", "99.5"], [1234.56, 99.5], []),
        (["1.234,56", "99,5"], [1234.56, 99.5], ["decimal comma"]),
        (["1.234.567", "12,5"], [1234567, 12.5], ["decimal comma"]),
        (["1,234,567", "12"], [1234567, 12], []),
        (["12,34,567", "1.5"], [1234567, 1.5], []),
        (["5 %", "12.5%"], [0.05, 0.125], ["2 cells with %"]),
        (["%12,5", "% 7"], [0.125, 0.07], ["2 cells with %", "decimal comma"]),
        (["12,5\u202f%", "7\u00a0%"], [0.125, 0.07], ["2 cells with %", "decimal comma"]),
        (["12,5 %", "7 %"], [0.125, 0.07], ["2 cells with %", "decimal comma"]),
        (["3 ‰", "8 ‰"], [0.003, 0.008], ["2 cells with ‰"]),
        (["€ 1,200", "€ 300.50"], [1200, 300.5], ["2 cells with €"]),
        (["1.200,00 €", "300,50 €"], [1200, 300.5], ["2 cells with €", "decimal comma"]),
        (["$1,200.00", "-$5", "($30)"], [1200, -5, -30], ["3 cells with $"]),
        (["CHF 1'234.50", "CHF 20"], [1234.5, 20], ["2 cells with CHF"]),
        (["1 234,5", "1\u00a0000,25", "2\u202f000"], [1234.5, 1000.25, 2000], ["decimal comma"]),
        (["−4", "+3", "12.5-"], [-4, 3, -12.5], []),
        (["1e-3", "2E5", ".5", "7."], [0.001, 200000, 0.5, 7], []),
        (["1.5", "2.5", "3,5"], [1.5, 2.5, 3.5], ["both decimal marks occur: 1 cells read by the rarer"]),
        (["1,234.5", "1.234,5", "2,345.5"], [1234.5, 1234.5, 2345.5],
         ["both decimal marks occur: 1 cells read by the rarer"]),
        (["1,234", "5,678"], [1234, 5678], ["'1,234' could be 1234 or 1.234, read as 1234"]),
        (["1.234", "5.678"], [1.234, 5.678], ["'1.234' could be 1.234 or 1234, read as 1.234"]),
        (["0.123", "5.678"], [0.123, 5.678], []),
        ([" 1 ", "2", "2"], [1, 2, 2], []),
        (["$(1,200.00)", "$30", "$ -"], [-1200, 30, 0], ["2 cells with $"]),  # a spreadsheet's accounts
        (["(1.234,56)", "99,5", "0,25 €"], [-1234.56, 99.5, 0.25], ["1 cells with €", "decimal comma"]),
        (["25.806,- €", "8,-", "3,50"], [25806, 8, 3.5], ["1 cells with €", "decimal comma"]),
        (["CHF 39'162.–", "CHF 20.-", "7.5"], [39162, 20, 7.5], ["2 cells with CHF"]),
        (["Rs. 1,200.5", "12.50 Euro", "7 eur"], [1200.5, 12.5, 7],
         ["1 cells with Rs.", "1 cells with Euro", "1 cells with eur"]),
        (["1,367E+04", "5,3E-2"], [13670, 0.053], ["decimal comma"]),
        (["6.848e+04", "5.076e+04"], [68480, 50760], []),  # no thousands before an exponent
        (["$44.4K", "1.5M", "2 bn", "300"], [44400, 1.5e6, 2e9, 300],
         ["1 cells with K", "1 cells with $", "1 cells with M", "1 cells with bn"]),
        (["<0.5", "1.25", "≥ 90", "~7"], [0.5, 1.25, 90, 7], ["1 cells with <", "1 cells with ≥", "1 cells with ~"]),
        (["7.81*", "2.5", "3.25**"], [7.81, 2.5, 3.25], ["1 cells with *", "1 cells with **"]),
        (["１２", "３.５"], [12, 3.5], []),
    ],
)  # fmt: skip
def test_forms_of_numbers(cells: list[str], expected: list[float], said: list[str]) -> None:
    values, remarks = read(*cells)
    assert values == pytest.approx(expected)
    assert remarks == said


def test_one_unit_behind_numbers_is_left_aside() -> None:
    cells = [f"{number},5 km" for number in range(30)]
    assert read(*cells, "?", "7") == (
        [*(number + 0.5 for number in range(30)), pytest.approx(numpy.nan, nan_ok=True), 7.0],
        ["decimal comma", "the unit 'km' is left aside"],
    )
    assert read("1 year", *(f"{number} years" for number in range(2, 30)))[1][0] == "the unit 'year' is left aside"


@pytest.mark.parametrize(
    "cells",
    [
        [*(f"{number} km" for number in range(30)), "5 miles"],  # two units
        ["2 doors", "4 doors", "2 doors"],  # a few categories
        [f"00{number}A" for number in range(10, 40)],  # codes
    ],
)
def test_units_that_are_part_of_a_category(cells: list[str]) -> None:
    (decision,) = read_columns("t", pandas.DataFrame({"c": [*cells, *cells]})).decisions
    assert decision.read_as == "category"


def test_a_network_refuses_another_unit() -> None:
    cells = pandas.Series([f"{number} kg" for number in range(30)], name="c")
    form = read_columns("t", cells.to_frame(), choices=ColumnChoices(number=("c",))).decisions[0].form
    assert form is not None and read_cells(pandas.Series(["4 kg", "4", "4kg"]), form).tolist() == [4, 4, 4]
    with pytest.raises(DataError, match="column 'c' must hold numbers with the unit 'kg'; found '4 lb'"):
        read_cells(pandas.Series(["4 lb"], name="c"), form)


def test_semicolons_between_columns_speak_for_a_decimal_comma() -> None:
    assert read("1,234", "5,678", semicolons=True)[0] == [1.234, 5.678]
    assert read("1.234", "5.678", semicolons=True)[0] == [1.234, 5.678]


def test_a_column_that_can_be_read_both_ways_follows_the_clear_ones() -> None:
    european = pandas.DataFrame({"a": ["1.234", "5.678"], "b": ["0,5", "1,25"], "c": ["1,234", "7,111"]})
    found = read_columns("t", european)
    assert found.frame.to_dict("list") == {"a": [1234, 5678], "b": [0.5, 1.25], "c": [1.234, 7.111]}
    assert found.notes == (
        "a: '1.234' could be 1.234 or 1234, read as 1234",
        "b: decimal comma",
        "c: '1,234' could be 1234 or 1.234, read as 1.234",
    )
    english = pandas.DataFrame({"a": ["1.234", "5.678"], "b": ["0.5", "1.25"], "c": ["1,234", "7,111"]})
    expected = {"a": [1.234, 5.678], "b": [0.5, 1.25], "c": [1234, 7111]}
    assert read_columns("t", english).frame.to_dict("list") == expected


def test_plain_numbers_are_read_at_once_and_all_else_word_by_word() -> None:
    def plain(*cells: str) -> tuple[list[float] | None, bool | None]:
        column = pandas.Series(cells, dtype=str)
        found = plain_numbers(column)
        return (None, None) if found is None else (numpy.nan_to_num(found, nan=-1).tolist(), shows_point(column))

    assert plain("1.5", "", "2") == ([1.5, -1, 2], True)
    assert plain("1", "20", "3") == ([1, 20, 3], False)
    assert plain("1.234", "2") == ([1.234, 2], None)  # perhaps 1234
    assert plain("01", "20") == ([1, 20], None)  # perhaps codes
    assert plain("20240131235959", "20240201000000")[1] is None
    assert plain("20240131", "20240201") == ([20240131, 20240201], None)  # perhaps dates
    for words in (("1.5", "NA"), ("1", "-"), ("", ""), ("1,5", "2")):
        assert plain(*words) == (None, None)


@pytest.mark.parametrize("word", ["abc", "1.2.3", "1,23,4", "12 kg", "1-2", "(5", "5)", "%", "€", "1,234,56"])
def test_what_is_no_number(word: str) -> None:
    assert numpy.isnan(read_numbers(numpy.array([word], dtype=object), ".")).all()


@settings(max_examples=60, deadline=None)
@given(NUMBERS, strategies.sampled_from(sorted(MARKS)), strategies.sampled_from(["", "€ ", " %"]))
def test_numbers_survive_being_written(hundredths: list[int], style: str, sign: str) -> None:
    """What is written with two decimals, in any style, is read as the number that was written."""
    thousands, decimal = MARKS[style]
    numbers = [whole / 100 for whole in hundredths]
    written = [f"{number:,.2f}".replace(",", "T").replace(".", decimal).replace("T", thousands) for number in numbers]
    cells = [word + sign if sign == " %" else sign + word for word in written]
    values, _ = read(*cells, *cells[:1])
    expected = [number / 100 if sign == " %" else number for number in numbers]
    assert values[:-1] == pytest.approx(expected, rel=1e-12)
