"""Units as users name them: a list, a range, a set, an array or a tensor of numbers, or a mask of booleans."""

from collections.abc import Iterable
from operator import index
from typing import Any

import numpy
from torch import Tensor

from topiarist.errors import ModelError

Units = Iterable[int] | Tensor


def unit_numbers(units: Units) -> tuple[int, ...]:
    """Give units as plain numbers, in the order in which they are named."""
    given: Any = units.detach().cpu().numpy() if isinstance(units, Tensor) else units
    if isinstance(given, numpy.ndarray) and given.dtype == bool:
        given = numpy.flatnonzero(given)
    try:
        named = list(given)
        if any(isinstance(unit, bool) for unit in named):
            raise TypeError("booleans are understood in arrays and tensors only")
        return tuple(index(unit) for unit in named)
    except TypeError as error:
        raise ModelError(f"units are named by whole numbers; found {units!r} ({error})") from error
