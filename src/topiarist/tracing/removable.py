"""How many of a network's parameters can go, and which fixed spaces hold the rest."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from topiarist.tracing.parameter_sizes import Shapes, parameter_sizes
from topiarist.tracing.spaces import Space


@dataclass(frozen=True)
class Removable:
    """What a network could lose.

    Parameters
    ----------
    parameters : int
        How many parameters the network has; what is tied is counted once.
    count : int
        How many of them go where one unit is left per free space.
    held : Mapping[str, int]
        How many more each fixed space holds, by its name, largest first; those that hold none are left out.
    """

    parameters: int
    count: int
    held: Mapping[str, int]


def find_removable(spaces: Mapping[str, Space], shapes: Shapes) -> Removable:
    """Return how many parameters go with one unit left per free space, and how many each fixed space holds besides."""
    sizes = parameter_sizes(spaces.values(), shapes).values()
    widths = {name: space.size if space.fixed else 1 for name, space in spaces.items()}
    total = sum(math.prod(shape) for shape in shapes.values())
    least = sum(size.count(widths) for size in sizes)
    fixed = [name for name, space in spaces.items() if space.fixed]
    held = {name: least - sum(size.count({**widths, name: 1}) for size in sizes) for name in fixed}
    holders = sorted((name for name in held if held[name]), key=held.__getitem__, reverse=True)
    return Removable(total, total - least, {name: held[name] for name in holders})
