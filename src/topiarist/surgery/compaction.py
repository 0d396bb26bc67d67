"""Compaction: units that do nothing go, exactly.

A unit that no one reads, its outgoing weights being zero, just goes. A unit whose incoming weights are zero is a
constant, which moves to the biases of the layers that read it. What goes may leave others with nothing to do, so all is
looked at again until nothing changes.
"""

import numpy
from torch import nn

from topiarist.surgery.applying import copied_with_plan, perform
from topiarist.surgery.constant_units import constant_output, find_constant, find_unread
from topiarist.surgery.edits import RemoveUnits
from topiarist.tracing import Inputs, anatomy


def compact(model: nn.Module, example_input: Inputs) -> nn.Module:
    """Remove the units that do nothing; the network computes the same. What cannot be followed is an error."""
    current = copied_with_plan(model)
    while (edit := find_idle(current, example_input)).units:
        current = perform(current, edit, example_input)
    return current


def find_idle(model: nn.Module, example_input: Inputs) -> RemoveUnits:
    """Give the removal of all units that do nothing now; one unit of each space must stay."""
    found = anatomy(model, example_input)
    units: dict[str, tuple[int, ...]] = {}
    biased: set[str] = set()
    for name, space in found.free.items():
        unread = find_unread(model, space)
        constant, values = find_constant(model, space, found, example_input)
        idle = unread | constant
        idle[0] &= not idle.all()
        if idle.any():
            units[name] = tuple(numpy.flatnonzero(idle).tolist())
            moved = idle & ~unread
            places = space.consumers if moved.any() else ()
            biased |= {p.module for p in places if bool(constant_output(model, p, moved, values[p.module]).any())}
    return RemoveUnits(units=units, biased=tuple(sorted(biased)))
