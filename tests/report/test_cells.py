import math

import numpy as np
import pandas as pd
import pytest

from topiarist.report import Section, Table, TableForm, format_table, render_page
from topiarist.report.cells import format_column, is_numeric, signed


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.93124, 0.5], ["0.9312", "0.5000"]),
        ([98.314, 7.5], ["98.31", "7.50"]),
        ([0.5, 3400.0], ["0.5", "3400.0"]),
        ([0.5, 0.25], ["0.50", "0.25"]),
        ([3.0, 4.0, math.nan], ["3", "4", None]),
        ([12_345.678, 1.0], ["12,345.7", "1.0"]),
        ([0.21, 1.3e-7, 0.0], ["0.21", "1.3e-07", "0.00"]),
        ([-0.25, -0.0], ["-0.25", "0.00"]),
        ([math.inf, -math.inf, 1e15], ["∞", "-∞", "1.0e+15"]),
        ([9_999, 3], ["9999", "3"]),
        ([0.93, 1.1e-16, -2.2e-16], ["0.93", "0.00", "0.00"]),
        ([1.1e-16, -3e-17], ["0", "0"]),
        ([250.5, 1.2e-14], ["250.5", "0.0"]),
        ([1e20, 0.3, 2e-5], ["1.0e+20", "0.3", "2.0e-05"]),
        ([4.3e-5, 0.3333], ["4.3e-05", "0.3333"]),
        ([None, -1e-17, 3], [None, "0", "3"]),
        ([10_000, 3], ["10,000", "3"]),
        ([2**70, 1], [f"{2**70:,}", "1"]),
        ([True, False, None], ["yes", "no", None]),
        (["a\n b", 3, pd.NA], ["a b", "3", None]),
        ([np.float32(0.5), np.int64(2)], ["0.5", "2"]),
        ([np.True_, np.False_], ["yes", "no"]),
        ([], []),
    ],
)
def test_columns_are_written_alike(values: list[object], expected: list[str | None]) -> None:
    assert format_column(values) == expected


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_rounding_is_printed_as_nothing_in_every_table(form: TableForm) -> None:
    text = format_table(pd.DataFrame({"gain": [0.3 - 0.1 - 0.2, 0.25]}), form).decode()
    assert "e-" not in text and "0.00" in text and "0.25" in text
    page = render_page(
        title="t",
        summary="",
        sections=[Section(title="s", tables=(Table(columns=("gain",), rows=((0.3 - 0.1 - 0.2,), (0.25,))),))],
        footer={},
    )
    assert ">0.00</th>" in page and ">0.25</th>" in page


@pytest.mark.parametrize(
    ("value", "expected"), [(-1.1e-16, "0.00"), (-0.004, "0.00"), (0.005001, "+0.01"), (-0.25, "-0.25"), (0.0, "0.00")]
)
def test_a_sign_is_written_where_there_is_something_to_sign(value: float, expected: str) -> None:
    assert signed(value, 2) == expected


def test_truth_values_and_nothing_are_no_numbers() -> None:
    assert is_numeric([1, None, 2.5])
    for values in ([True], [None], [], [1, "a"]):
        assert not is_numeric(values)
