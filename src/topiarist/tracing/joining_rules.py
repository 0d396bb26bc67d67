"""What joins and parts tensors does with their units."""

import numpy
from torch import fx

from topiarist.tracing.joining import NotUnderstoodError, broadcast, concatenate
from topiarist.tracing.step import Step
from topiarist.tracing.units import Fixed, Layout, Whereabouts, everywhere


def concatenation_rule(step: Step) -> Whereabouts:
    """Lists the operands' units one after the other."""
    nodes = step.call.node.args[0] if step.call.node.args else step.call.node.kwargs["tensors"]
    if not isinstance(nodes, (tuple, list)):
        return concatenate(step.operands, step.argument("dim", 1, step.call.kwargs.get("axis", 0)), step.units)
    operands = [(step.values[node], step.places[node]) for node in nodes if isinstance(node, fx.Node)]
    return concatenate(operands, step.argument("dim", 1, step.call.kwargs.get("axis", 0)), step.units)  # type: ignore[arg-type]


def stack_rule(step: Step) -> Whereabouts:
    """Tensors on a new axis; what stands at the same place in each is one unit."""
    layout = broadcast(step.operands, step.units)
    assert isinstance(layout, Layout)
    new = step.argument("dim", 1, 0) % step.given.ndim
    return layout if new <= step.taken.ndim + layout.axis else layout.moved(layout.axis - 1)


def chunk_rule(step: Step) -> Whereabouts:
    """Equal pieces along the units stay equal: what stands at the same place in each is one unit."""
    layout = step.tracked
    pieces = step.argument("chunks", 1)
    dimension = step.argument("dim", 2, 0) % step.taken.ndim
    if dimension != step.taken.ndim + layout.axis:
        return everywhere(step.call.output, layout)
    if len(layout.units) % pieces or len(step.call.output) != pieces:
        raise NotUnderstoodError(f"{len(layout.units)} units do not fall into {pieces} equal pieces")
    slots = layout.slots.reshape(pieces, -1)
    if slots[:, 0].any():
        raise NotUnderstoodError("it parts what belongs to one unit")
    units = layout.units.reshape(pieces, -1)
    for piece in units[1:]:
        step.units.tie(units[0], piece)
    return tuple(Layout(layout.axis, *piece) for piece in zip(units, slots, strict=True))


def gate_rule(step: Step, dimension: int) -> Whereabouts:
    """A gated linear unit multiplies one half of the units by a gate made of the other half."""
    layout = step.layout
    if isinstance(layout, Fixed) or step.taken.ndim + layout.axis != dimension % step.taken.ndim:
        return layout
    first, second = numpy.split(layout.units, 2)
    if layout.slots[len(first)]:
        raise NotUnderstoodError("it parts what belongs to one unit")
    step.units.tie(first, second)
    return Layout(layout.axis, first, layout.slots[: len(first)])
