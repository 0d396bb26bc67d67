"""The numbers of a column written alike: about four significant digits, the same decimals from top to bottom."""

import math
import numbers
import sys
from collections.abc import Sequence

import numpy as np

from topiarist.report.wording import clean

_MOST_DECIMALS = 4
# Sums and differences of a few numbers of size x are off by some ε·x: 16 of them, as in the rank tests. Figures of a
# report are made from shares and losses, numbers of about 1; and what differs by 1e-9 is never told apart by noise.
_NOISE, _LARGEST_NOISE = 16 * float(np.finfo(np.float64).eps), 1e-9
_GROUPED_FROM, _SCIENTIFIC_FROM = 10_000, 1e12


def is_missing(value: object) -> bool:
    """Return whether a cell is empty: None, NaN, NaT or NA."""
    if value is None or isinstance(value, float | np.floating):
        return value is None or math.isnan(value)
    pandas = sys.modules.get("pandas")  # Only a program that has loaded it has its NA or NaT.
    return pandas is not None and (value is pandas.NA or value is pandas.NaT)


def is_number(value: object) -> bool:
    """Return whether a cell is a number; a truth value is not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_numeric(values: Sequence[object]) -> bool:
    """Return whether all cells that are not missing are numbers, and at least one is."""
    known = [value for value in values if not is_missing(value)]
    return bool(known) and all(map(is_number, known))


def format_column(values: Sequence[object]) -> list[str | None]:
    """Return the cells of a column as people read them; None where a cell is missing."""
    known = [value for value in values if not is_missing(value)]
    if is_numeric(known):
        reals = [int(value) if isinstance(value, numbers.Integral) else float(value) for value in known]  # type: ignore[arg-type]
        cleared = without_noise(reals)
        places, grouped = decimals(cleared), any(abs(value) >= _GROUPED_FROM for value in cleared)
        texts = iter([_format_number(value, places, "," if grouped else "") for value in cleared])
    else:
        truths = {True: "yes", False: "no"}
        texts = iter([truths[bool(value)] if isinstance(value, bool | np.bool_) else clean(value) for value in known])
    return [None if is_missing(value) else next(texts) for value in values]


def without_noise(values: Sequence[float]) -> list[float]:
    """Return the numbers of a column, with 0 for those that are nothing but rounding beside the largest of them.

    [0.9, 1.1e-16] becomes [0.9, 0]; so does 1.1e-16 alone, since figures come from numbers of about 1. 1e-7 stays.
    """
    sizes = [abs(value) for value in values if math.isfinite(value)]
    limit = min(_NOISE * max([1.0, *sizes]), _LARGEST_NOISE)
    return [0.0 if isinstance(value, float) and abs(value) <= limit else value for value in values]


def signed(value: float, places: int) -> str:
    """Return a difference with its sign; what rounds to nothing has none: 0.00, not −0.00."""
    rounded = round(value, places)
    return f"{rounded:+.{places}f}" if rounded else f"{0:.{places}f}"


def decimals(values: Sequence[float]) -> int:
    """Return how many decimals show four digits of the largest number and two of the smallest, without common zeros.

    [98.314, 7.5] needs 2 (98.31, 7.50), [0.5, 3400.0] needs 1, and [3.0, 4.0] none.
    """
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    if not sizes:
        return 0
    largest, smallest = (math.floor(math.log10(size)) for size in (max(sizes), min(sizes)))
    places = _MOST_DECIMALS if max(sizes) <= 1 else min(_MOST_DECIMALS, max(0, 3 - largest, 1 - smallest))
    while places and all(round(size, places) == round(size, places - 1) for size in sizes):
        places -= 1
    return places


def _format_number(value: float, places: int, separator: str) -> str:
    if isinstance(value, int):
        return f"{value:{separator}}"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value and (abs(value) < 0.5 * 10**-places or abs(value) >= _SCIENTIFIC_FROM):
        return f"{value:.1e}"  # The decimals would round it to nothing, or it is huge.
    return f"{value or 0.0:{separator}.{places}f}"
