import io
import json
import re
import sys
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topiarist.errors import DataError, MissingExtraError, SettingsError
from topiarist.report import TableForm, format_table

CHARACTERS = st.one_of(st.sampled_from("\r\n\",;'"), st.characters(codec="utf-8", exclude_categories=["Cc"]))
NAMES = st.text(CHARACTERS).map(lambda text: f"n{text}")
NUMBERS = st.floats(allow_nan=True, allow_infinity=False)
FORMS: list[TableForm] = ["csv", "json", "parquet", "latex", "markdown"]


def example() -> pd.DataFrame:
    return pd.DataFrame(
        {"name": ["a, b", 'quote "x"', "läng\nlich"], "score": [0.1 + 0.2, np.nan, -1e-7], "units": [3, 12_345, 0]},
        index=[7, 8, 9],
    )


@pytest.mark.slow
@given(st.lists(st.tuples(NAMES, NUMBERS, st.integers(-(2**60), 2**60)), min_size=1, max_size=5))
def test_csv_and_json_read_back_as_they_were(rows: list[tuple[str, float, int]]) -> None:
    frame = pd.DataFrame(rows, columns=["name", "score", "units"])
    stream = io.BytesIO(format_table(frame, "csv"))
    from_csv = pd.read_csv(stream, keep_default_na=False, na_values={"score": ""})
    pd.testing.assert_frame_equal(from_csv, frame, check_dtype=False, rtol=1e-15)
    records = json.loads(format_table(frame, "json").decode("utf-8"))
    expected = [{"name": n, "score": None if np.isnan(x) else x, "units": u} for n, x, u in rows]
    assert records == expected


def test_parquet_reads_back_without_its_index() -> None:
    read = pd.read_parquet(io.BytesIO(format_table(example(), "parquet")))
    pd.testing.assert_frame_equal(read, example().reset_index(drop=True))


def test_json_has_null_for_whatever_it_cannot_say() -> None:
    values = [np.nan, np.inf, None, pd.NaT, pd.NA, {"deep": [np.float32("nan"), np.int64(4)]}]
    rows = json.loads(format_table(pd.DataFrame({"x": pd.Series(values, dtype=object)}), "json"))
    assert [row["x"] for row in rows] == [None, None, None, None, None, {"deep": [None, 4]}]


def test_json_writes_dates_and_truth_values() -> None:
    frame = pd.DataFrame({"day": [pd.Timestamp("2026-03-01")], "good": [True], 3: [np.float64(0.5)]})
    assert json.loads(format_table(frame, "json")) == [{"day": "2026-03-01T00:00:00", "good": True, "3": 0.5}]


def test_a_table_without_rows_is_well_formed() -> None:
    frame = example().iloc[:0]
    assert json.loads(format_table(frame, "json")) == []
    assert format_table(frame, "csv") == b"name,score,units\n"
    assert rb"\midrule" + b"\n" + rb"\bottomrule" in format_table(frame, "latex")


@pytest.mark.parametrize("form", FORMS)
def test_the_same_frame_gives_the_same_bytes_and_is_left_alone(form: TableForm) -> None:
    frame = example()
    assert format_table(frame, form, caption="c") == format_table(example(), form, caption="c")
    pd.testing.assert_frame_equal(frame, example())


def test_markdown_is_a_table_with_pipes() -> None:
    frame = pd.DataFrame({"name": ["a|b", "<i>*x*</i>"], "score": [0.25, np.nan]})
    assert format_table(frame, "markdown", caption="what_is").decode() == (
        "*what\\_is*\n\n"
        "| name             |   score |\n"
        "|:-----------------|--------:|\n"
        "| a\\|b             |    0.25 |\n"
        "| \\<i\\>\\*x\\*\\</i\\> |       – |\n"
    )


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"a Parquet table needs the extra 'tables'"):
        format_table(example(), "parquet")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("columns", "complaint"), [([], "without columns"), ([1, "1"], "two columns called '1'")])
def test_what_could_not_be_read_back_is_refused(form: TableForm, columns: list[Any], complaint: str) -> None:
    frame = pd.DataFrame(np.zeros((2, len(columns))), columns=columns)
    with pytest.raises(DataError, match=complaint):
        format_table(frame, form)


def test_nonsense_is_one_line() -> None:
    with pytest.raises(DataError, match="cannot write the table as Parquet"):
        format_table(pd.DataFrame({"x": [1, "a"]}), "parquet")
    with pytest.raises(SettingsError, match="no such form of a table: 'xml'"):
        format_table(example(), cast(TableForm, "xml"))


def test_half_a_character_does_not_break_the_document() -> None:
    frame = pd.DataFrame({"x": pd.Series(["\ud800"], dtype=object)})
    readable: list[TableForm] = ["csv", "json", "latex", "markdown"]
    for form in readable:
        assert re.search("[?\ufffd]", format_table(frame, form).decode("utf-8"))


def test_a_spreadsheet_finds_no_formula_in_a_table() -> None:
    frame = pd.DataFrame({"=name": ["=1+2", "+3", "-x", "@y", "\tz", "a=b", None], "n": [-1.5, 2, 3, 4, 5, 6, 7]})
    made = pd.read_csv(io.BytesIO(format_table(frame, "csv")), dtype={"'=name": str}, keep_default_na=False)
    assert list(made) == ["'=name", "n"] and made["n"].tolist() == frame["n"].tolist()
    assert made["'=name"].tolist() == ["'=1+2", "+3", "'-x", "'@y", "'\tz", "a=b", ""]
