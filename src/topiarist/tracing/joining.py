"""How the units of several tensors come together: broadcast operations tie them, concatenation lists them."""

import math
from collections.abc import Sequence

import numpy
from torch import Tensor, fx

from topiarist.tracing.step import Step
from topiarist.tracing.units import Fixed, Layout, NotUnderstoodError, Operand, Units, Whereabouts, everywhere

CONSTANT = "a constant"
DIFFERENT_AXES = "its operands have their units along different axes"


def broadcast(operands: Sequence[Operand], units: Units) -> Whereabouts:
    """Tie the units of tensors that are combined element by element."""
    known = [(tensor, layout) for tensor, layout in operands if isinstance(layout, Layout)]
    if not known:
        return Fixed(next((source for source in map(_data_source, operands) if source), CONSTANT))
    wide = [layout for _, layout in known if len(layout.units) > 1] or [known[0][1]]
    first = wide[0]
    if max(_size_along(tensor, first.axis) for tensor, _ in operands) > len(first.units):
        for _, spread in known:
            units.fix(spread.units, "one unit is spread over many")
        return Fixed(next((source for source in map(_data_source, operands) if source), CONSTANT))
    if any(layout.axis != first.axis for layout in wide):
        raise NotUnderstoodError(DIFFERENT_AXES)
    for tensor, layout in operands:
        count = _size_along(tensor, first.axis)
        if isinstance(layout, Layout) and layout.axis == first.axis and len(layout.units) == len(first.units):
            units.tie(first.units, layout.units)
        elif isinstance(layout, Layout):
            units.fix(layout.units, "one unit is spread over many")
            units.modulated.update(first.units.tolist())
            if count != 1:
                raise NotUnderstoodError(DIFFERENT_AXES)
        elif count > 1:
            _meet_constant(tensor, layout, first, units)
        elif _data_source((tensor, layout)) is not None:
            units.modulated.update(first.units.tolist())
    return first


def _size_along(tensor: Tensor, axis: int) -> int:
    """Return the size of a tensor along an axis counted from the right; axes that it does not have count as 1."""
    return tensor.shape[axis] if tensor.ndim >= -axis else 1


def _data_source(operand: Operand) -> str | None:
    """Name the input that a fixed tensor is computed from; None for parameters and constants."""
    fixed = operand[1]
    return fixed.source if isinstance(fixed, Fixed) and fixed.parameter is None and fixed.source != CONSTANT else None


def _meet_constant(tensor: Tensor, constant: Fixed, layout: Layout, units: Units) -> None:
    """Let a parameter pass along the units it is combined with; anything else that is fixed fixes them.

    The axis of the parameter that lies along the units must be sure: it may have been reshaped since.
    """
    count = len(layout.units)
    dimension = None
    if constant.shape == tuple(tensor.shape):
        dimension = tensor.ndim + layout.axis
    elif math.prod(constant.shape) == count == tensor.numel():
        dimension = constant.shape.index(count)
    if constant.parameter is None or dimension is None:
        units.tie(units.constant(constant.source, count), layout.units)
    else:
        module, _, name = constant.parameter.rpartition(".")
        units.meet(module, "passes", layout, name, dimension)


def _concatenate(operands: Sequence[Operand], dimension: int, units: Units) -> Whereabouts:
    """List the units of tensors one after the other, or tie them where they are joined along another axis."""
    axis = dimension if dimension < 0 else dimension - operands[0][0].ndim
    known = [layout for _, layout in operands if isinstance(layout, Layout)]
    if known and any(layout.axis != known[0].axis for layout in known):
        raise NotUnderstoodError(DIFFERENT_AXES)
    if not known or known[0].axis != axis:
        return broadcast(operands, units)
    return Layout.joined(
        [
            layout if isinstance(layout, Layout) else units.constant_layout(layout, tensor.shape[axis], axis)
            for tensor, layout in operands
        ]
    )


def concatenation_rule(step: Step) -> Whereabouts:
    """List the operands' units one after the other."""
    nodes = step.call.node.args[0] if step.call.node.args else step.call.node.kwargs["tensors"]
    dimension = step.argument("dim", 1, step.call.kwargs.get("axis", 0))
    if not isinstance(nodes, (tuple, list)):
        return _concatenate(step.operands, dimension, step.units)
    operands = [(step.values[node], step.places[node]) for node in nodes if isinstance(node, fx.Node)]
    return _concatenate(operands, dimension, step.units)  # type: ignore[arg-type]


def stack_rule(step: Step) -> Whereabouts:
    """Put tensors on a new axis; what stands at the same place in each is one unit."""
    layout = broadcast(step.operands, step.units)
    assert isinstance(layout, Layout)
    new = step.argument("dim", 1, 0) % step.given.ndim
    return layout if new <= step.taken.ndim + layout.axis else layout.moved(layout.axis - 1)


def chunk_rule(step: Step) -> Whereabouts:
    """Keep equal pieces along the units equal: what stands at the same place in each is one unit."""
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
    """Tie the halves of a gated linear unit, which multiplies one by a gate made of the other."""
    layout = step.layout
    if isinstance(layout, Fixed) or step.taken.ndim + layout.axis != dimension % step.taken.ndim:
        return layout
    first, second = numpy.split(layout.units, 2)
    if layout.slots[len(first)]:
        raise NotUnderstoodError("it parts what belongs to one unit")
    step.units.tie(first, second)
    return Layout(layout.axis, first, layout.slots[: len(first)])
