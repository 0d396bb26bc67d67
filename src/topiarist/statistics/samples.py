"""Checked input of the statistics: flat samples of finite numbers, pairs of equal length, names that exist."""

import math
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy
from numpy.typing import ArrayLike, NDArray

from topiarist.errors import SettingsError

LARGEST = 1e100  # sums of squares of such numbers stay far below the overflow of a float, 1.8e308
Alternative = Literal["two-sided", "greater", "less"]
Values = Sequence[float] | NDArray[Any]
Floats = NDArray[numpy.float64]


def finite_array(values: ArrayLike, what: str) -> Floats:
    """Return the values as floats of any shape; refuse what is not a finite number."""
    try:
        array = numpy.asarray(values)
    except ValueError as error:
        raise SettingsError(f"{what} must be numbers in rows of equal length; found rows of several lengths") from error
    if array.dtype.kind not in "biuf" and array.size:
        raise SettingsError(f"{what} must be numbers; found {array.dtype}")
    array = array.astype(numpy.float64)
    broken = ~(numpy.abs(array) <= LARGEST)
    if broken.any():
        raise SettingsError(f"{what} must be finite numbers; found {array[broken][0]:g}")
    return array


def sample(values: Values, what: str = "values", *, fewest: int = 1) -> Floats:
    """Return a sample (n,) of at least `fewest` finite numbers."""
    array = finite_array(values, what)
    if array.ndim != 1 or len(array) < fewest:
        raise SettingsError(f"{what} must be a flat list of {fewest} or more numbers; found shape {array.shape}")
    return array


def pairs(first: Values, second: Values, *, fewest: int = 1) -> tuple[Floats, Floats]:
    """Return two samples (n,) of equal length, whose values at the same place belong together."""
    one, two = sample(first, "first", fewest=fewest), sample(second, "second", fewest=fewest)
    if len(one) != len(two):
        raise SettingsError(f"paired samples must be of equal length; found {len(one)} and {len(two)}")
    return one, two


def rounding_error(*samples: Floats) -> float:
    """Return the distance below which sums and differences of the numbers differ only by rounding: 16 ε max |x|."""
    return 16 * float(numpy.finfo(numpy.float64).eps) * max(float(numpy.abs(values).max()) for values in samples)


def check_alternative(alternative: str) -> None:
    """Refuse an unknown alternative."""
    if alternative not in get_args(Alternative):
        raise SettingsError(f"alternative must be one of {', '.join(get_args(Alternative))}; found {alternative!r}")


def check_between_0_and_1(**settings: float) -> None:
    """Refuse a setting that does not lie strictly between 0 and 1."""
    for name, value in settings.items():
        if not 0 < value < 1:
            raise SettingsError(f"{name} must lie between 0 and 1; found {value}")


def check_not_negative(**settings: float) -> None:
    """Refuse a setting that is negative or not finite."""
    for name, value in settings.items():
        if not 0 <= value < math.inf:
            raise SettingsError(f"{name} must be 0 or more; found {value}")
