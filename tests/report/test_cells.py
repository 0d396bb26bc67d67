import math

import numpy as np
import pandas as pd
import pytest

from topiarist.report.cells import format_column, is_numeric


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


def test_truth_values_and_nothing_are_no_numbers() -> None:
    assert is_numeric([1, None, 2.5])
    for values in ([True], [None], [], [1, "a"]):
        assert not is_numeric(values)
