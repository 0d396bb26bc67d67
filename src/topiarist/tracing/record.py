"""An anatomy as a typed record, for programs."""

from collections.abc import Iterable

from topiarist.settings import Record
from topiarist.tracing.anatomy import Anatomy
from topiarist.tracing.removable import find_removable
from topiarist.tracing.spaces import Place, Space


class SpaceRecord(Record):
    """One unit space: its size, the layers that meet it, why it is fixed, if it is, and whether a cut is proven."""

    units: int
    written_by: tuple[str, ...]
    passes_through: tuple[str, ...]
    read_by: tuple[str, ...]
    fixed: str | None
    proven: bool = False


class AnatomyRecord(Record):
    """The spaces of a network by name, how many of its parameters can go, and how many each fixed space holds.

    `removable` counts what goes with one unit left per free space; `not_understood` lists operations that fix the units
    which they touch.
    """

    spaces: dict[str, SpaceRecord]
    parameters: int
    removable: int
    held: dict[str, int]
    not_understood: tuple[str, ...]


def record_anatomy(found: Anatomy) -> AnatomyRecord:
    """Return an anatomy as a record.

    Examples
    --------
    >>> from torch import nn, zeros
    >>> from topiarist import anatomy
    >>> record = record_anatomy(anatomy(nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)), zeros(1, 4)))
    >>> record.spaces["0"].read_by, record.removable, record.parameters
    (('1',), 14, 23)
    """
    removable = find_removable(found.spaces, found.shapes)
    proven = frozenset().union(*found.proofs)
    return AnatomyRecord(
        spaces={name: _record_space(space, name in proven) for name, space in found.spaces.items()},
        parameters=removable.parameters,
        removable=removable.count,
        held=dict(removable.held),
        not_understood=found.opaque,
    )


def _record_space(space: Space, proven: bool) -> SpaceRecord:
    return SpaceRecord(
        units=space.size,
        written_by=_names(space.producers),
        passes_through=_names(space.passes),
        read_by=_names(space.consumers),
        fixed=space.reason,
        proven=proven,
    )


def _names(places: Iterable[Place]) -> tuple[str, ...]:
    return tuple(place.name for place in places)
