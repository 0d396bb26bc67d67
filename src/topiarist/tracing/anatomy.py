"""A network seen as unit spaces: who writes them, passes them on and reads them, and which cannot change."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import numpy

from topiarist.errors import ModelError
from topiarist.tracing.integers import Attribute
from topiarist.tracing.parameter_sizes import Shapes
from topiarist.tracing.solving import Solver
from topiarist.tracing.spaces import Indices, Space
from topiarist.tracing.steps import LayerCall
from topiarist.tracing.table import html_of, render
from topiarist.tracing.trace import Trace

Value = TypeVar("Value")
_MOST_NAMED = 6


@dataclass(frozen=True)
class Anatomy:
    """The unit spaces of a network by name, in the order in which they are written; `anatomy` finds them.

    Parameters
    ----------
    spaces : Mapping[str, Space]
        The spaces by name. A space is named after the first layer that writes it; `anatomy["name"]` also finds it by
        the name of any other layer that does.
    calls : Mapping[str, LayerCall]
        The layers in the order in which they run.
    opaque : tuple[str, ...]
        Operations that were not understood; the units that they touch are fixed.
    unreached, hooked : tuple[str, ...]
        Parameters that no run used, and layers with hooks of the user's.
    samples : int
        The number of samples in the example input.
    shapes : Mapping[str, tuple[int, ...]]
        The shapes of the network's parameters.
    ignored : tuple[str, ...]
        The layers that must not be cut.
    valid_for : {"all", "widths", "nothing"}
        After a change of widths, `calls` no longer knows the shapes of what activations return; after one of depth, or
        from and to one unit, the network has to be traced again.

    Examples
    --------
    >>> from torch import nn, zeros
    >>> print(anatomy(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)), zeros(1, 4)))
    space  units  written by  passes through  read by
    input  4      -           -               0        fixed: they come from 'input'
    0      3      0           -               2
    2      2      2           -               -        fixed: the network's output
    14 of 23 parameters can go, with one unit left per space.
    Held by what is fixed:
      3 by 'input': they come from 'input'
      2 by '2': the network's output
    """

    spaces: Mapping[str, Space]
    calls: Mapping[str, LayerCall]
    opaque: tuple[str, ...] = ()
    samples: int = 1
    shapes: Shapes = field(default_factory=dict, repr=False)
    ignored: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    hooked: tuple[str, ...] = ()
    solver: Solver | None = field(default=None, repr=False, compare=False)
    trace: Trace | None = field(default=None, repr=False, compare=False)
    gone: Indices = field(default_factory=lambda: numpy.zeros(0, numpy.int64), repr=False, compare=False)
    proofs: dict[frozenset[str], float] = field(default_factory=dict, repr=False, compare=False)
    integers: Mapping[Attribute, int] = field(default_factory=dict, repr=False, compare=False)
    valid_for: Literal["all", "widths", "nothing"] = "all"

    @property
    def free(self) -> dict[str, Space]:
        """Return the spaces whose units can go and come."""
        return {name: space for name, space in self.spaces.items() if not space.fixed}

    @property
    def notes(self) -> list[str]:
        """Return what else there is to know: what was proven, not understood, not reached, and hooks."""
        found = [f"Not understood: {text}." for text in self.opaque]
        if self.unreached:
            owners = list(dict.fromkeys(name.rpartition(".")[0] or name for name in self.unreached))
            named = ", ".join(f"'{name}'" for name in owners[:_MOST_NAMED])
            more = f" and {len(owners) - _MOST_NAMED} more" if len(owners) > _MOST_NAMED else ""
            found.append(f"Not reached by the example, and left as they are: {named}{more}.")
        if self.hooked:
            found.append(
                f"{', '.join(map(repr, self.hooked))} have hooks: what those compute must not depend on units."
            )
        proven = frozenset().union(*self.proofs).intersection(self.spaces)
        if proven:
            left = [name for name in self.free if name not in proven and self.free[name].size > 1]
            count = "1 space" if len(proven) == 1 else f"{len(proven)} spaces"
            found.append(f"Proven: {count}." + (f" Not yet: {', '.join(left)}." if left else ""))
        return found

    @property
    def has_renumberings(self) -> bool:
        """Return whether buffers of whole numbers pick units: their values say where, and follow a cut once."""
        return self.trace is not None and bool(self.trace.tracer.renumberings)

    def copies(self, units: Mapping[str, Indices] | None = None) -> Indices:
        """Return how many times each unit of the labels is there, where some spaces may have other units."""
        assert self.solver is not None
        found = numpy.ones(len(self.solver.labels), numpy.int64)
        found[self.gone] = 0
        for name, space in self.spaces.items():
            found[space.units] = 0
            numpy.add.at(found, (units or {}).get(name, space.units), 1)
        return found

    def integers_for(self, units: Mapping[str, Indices]) -> dict[Attribute, int]:
        """Return the integers that modules must hold when some spaces have other units, by their numbers.

        Raises
        ------
        ModelError
            The network's code asks for something that no integers give.
        """
        if self.solver is None or self.trace is None:
            return {}
        labels, copies = self.solver.labels, self.copies(units)
        solution = self.solver.solve(copies)
        if solution.violated:
            raise ModelError(f"the network's own code does not allow this: {solution.violated[0]}")
        groups = {
            Attribute(path, (own,)): labels.count(vector, copies)
            for path, (own, vector) in self.trace.tracer.layer_groups.items()
        }
        unchanged = {
            attribute: self.solver.old[attribute] for attribute in self.integers if attribute in self.solver.old
        }
        return {**unchanged, **solution.values, **groups}

    def __iter__(self) -> Iterator[str]:
        return iter(self.spaces)

    def __getitem__(self, name: str) -> Space:
        if name in self.spaces:
            return self.spaces[name]
        written = [space for space in self.spaces.values() if any(place.name == name for place in space.producers)]
        if len(written) == 1:
            return written[0]
        if written:
            several = ", ".join(f"'{space.name}'" for space in written)
            raise ModelError(f"the layer '{name}' writes several spaces: name one of {several}")
        layers = dict.fromkeys(place.name for space in self.spaces.values() for place in space.producers)
        known = ", ".join(dict.fromkeys((*self.spaces, *layers)))
        raise ModelError(f"there is no space '{name}': known are {known}")

    def free_space(self, name: str) -> Space:
        """Return a space whose units can go and come, or raise an error that says why they cannot."""
        space = self[name]
        if space.fixed:
            raise ModelError(f"the units of '{name}' are fixed: {space.reason}")
        return space

    def by_space(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """Return values that are named by spaces, or by layers that write them, by the names of the spaces alone."""
        names: dict[str, str] = {}
        for name in values:
            space = self[name].name
            if space in names:
                raise ModelError(f"'{names[space]}' and '{name}' name the same units: name them once")
            names[space] = name
        return {space: values[name] for space, name in names.items()}

    def __str__(self) -> str:
        return render(self.spaces, self.shapes, self.notes)

    def _repr_html_(self) -> str:
        return html_of(self.spaces, self.shapes, self.notes)
