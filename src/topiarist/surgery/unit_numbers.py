"""Units as users name them: a list, a range, a set, an array or a tensor of numbers."""

from collections.abc import Iterable

from torch import Tensor

Units = Iterable[int] | Tensor


def unit_numbers(units: Units) -> tuple[int, ...]:
    """Give units as plain numbers, in the order in which they are named."""
    return tuple(int(unit) for unit in (units.tolist() if isinstance(units, Tensor) else units))
