"""The numbers of a column written alike: about four significant digits, the same decimals from top to bottom."""

import math
import numbers
from collections.abc import Sequence

import numpy as np
import pandas as pd

from topiarist.report.wording import clean

MOST_DECIMALS = 4
# Sums and differences of a few numbers of size x are off by some ε·x: 16 of them, as in the rank tests. Figures of a
# report are made from shares and losses, numbers of about 1; and what differs by 1e-9 is never told apart by noise.
NOISE, LARGEST_NOISE = 16 * float(np.finfo(np.float64).eps), 1e-9
GROUPED_FROM = 10_000
SCIENTIFIC_FROM = 1e12


def is_missing(value: object) -> bool:
    """Say whether a cell is empty: None, NaN, NaT or NA."""
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value))


def is_number(value: object) -> bool:
    """Say whether a cell is a number; a truth value is none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_numeric(values: Sequence[object]) -> bool:
    """Say whether all that is there are numbers, and at least one is."""
    known = [value for value in values if not is_missing(value)]
    return bool(known) and all(map(is_number, known))


def format_column(values: Sequence[object]) -> list[str | None]:
    """Write the cells of a column for people; None where a cell is missing."""
    if not is_numeric(values):
        return [None if is_missing(value) else format_other(value) for value in values]
    cleared = without_noise([None if is_missing(value) else as_real(value) for value in values])
    known = [value for value in cleared if value is not None]
    places = decimals([float(value) for value in known])
    separator = "," if any(abs(value) >= GROUPED_FROM for value in known) else ""
    return [None if value is None else format_number(value, places, separator) for value in cleared]


def as_real(value: object) -> int | float:
    """Give a plain integer or a plain float."""
    return int(value) if isinstance(value, numbers.Integral) else float(value)  # type: ignore[arg-type]


def without_noise(values: Sequence[int | float | None]) -> list[int | float | None]:
    """Return the numbers of a column, with 0 for those that are nothing but rounding beside the largest of them.

    [0.9, 1.1e-16] becomes [0.9, 0]; so does 1.1e-16 alone, since figures come from numbers of about 1. 1e-7 stays.
    """
    sizes = [abs(value) for value in values if value is not None and math.isfinite(value)]
    limit = min(NOISE * max([1.0, *sizes]), LARGEST_NOISE)
    return [0.0 if isinstance(value, float) and abs(value) <= limit else value for value in values]


def signed(value: float, places: int) -> str:
    """Return a difference with its sign; what rounds to nothing has none: 0.00, not −0.00."""
    rounded = round(value, places)
    return f"{rounded:+.{places}f}" if rounded else f"{0:.{places}f}"


def decimals(values: Sequence[float]) -> int:
    """Choose the decimals: four digits of the largest, two of the smallest, no zero that all have in common."""
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    if not sizes:
        return 0
    largest, smallest = (math.floor(math.log10(size)) for size in (max(sizes), min(sizes)))
    places = MOST_DECIMALS if max(sizes) <= 1 else min(MOST_DECIMALS, max(0, 3 - largest, 1 - smallest))
    while places and all(round(size, places) == round(size, places - 1) for size in sizes):
        places -= 1
    return places


def format_number(value: int | float, places: int, separator: str) -> str:
    """Write one number; what the decimals would round to nothing, or is huge, in scientific notation."""
    if isinstance(value, int):
        return f"{value:{separator}}"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value and (abs(value) < 0.5 * 10**-places or abs(value) >= SCIENTIFIC_FROM):
        return f"{value:.1e}"
    return f"{value or 0.0:{separator}.{places}f}"


def format_other(value: object) -> str:
    """Write a cell that is not in a column of numbers."""
    return ("yes" if value else "no") if isinstance(value, bool | np.bool_) else clean(value)
