"""How the units of several tensors come together: broadcast operations tie them, concatenation lists them."""

import math
from collections.abc import Sequence

import numpy
from torch import Tensor

from topiarist.tracing.units import Fixed, Layout, Units, Whereabouts

CONSTANT = "a constant"
Operand = tuple[Tensor, Layout | Fixed]


class NotUnderstoodError(Exception):
    """An operation that surgery could not follow; the text says what was found."""


def broadcast(operands: Sequence[Operand], units: Units) -> Whereabouts:
    """Tie the units of tensors that are combined element by element."""
    known = [(tensor, layout) for tensor, layout in operands if isinstance(layout, Layout)]
    if not known:
        return Fixed(next((source for source in map(data_source, operands) if source), CONSTANT))
    wide = [layout for _, layout in known if len(layout.units) > 1] or [known[0][1]]
    first = wide[0]
    if max(size_along(tensor, first.axis) for tensor, _ in operands) > len(first.units):
        return spread_out(operands, units)
    if any(layout.axis != first.axis for layout in wide):
        raise NotUnderstoodError("its operands have their units along different axes")
    for tensor, layout in operands:
        count = size_along(tensor, first.axis)
        if isinstance(layout, Layout) and layout.axis == first.axis and len(layout.units) == len(first.units):
            units.tie(first.units, layout.units)
        elif isinstance(layout, Layout):
            units.fix(layout.units, "one unit is spread over many")
            units.modulated.update(first.units.tolist())
            if count != 1:
                raise NotUnderstoodError("its operands have their units along different axes")
        elif count > 1:
            meet_constant(tensor, layout, first, units)
        elif data_source((tensor, layout)) is not None:
            units.modulated.update(first.units.tolist())
    return first


def size_along(tensor: Tensor, axis: int) -> int:
    """Give the size of a tensor along an axis counted from the right; axes that it does not have count as 1."""
    return tensor.shape[axis] if tensor.ndim >= -axis else 1


def spread_out(operands: Sequence[Operand], units: Units) -> Fixed:
    """Fix single units that are spread over something longer, which is fixed itself."""
    for _, layout in operands:
        if isinstance(layout, Layout):
            units.fix(layout.units, "one unit is spread over many")
    return Fixed(next((source for source in map(data_source, operands) if source), CONSTANT))


def data_source(operand: Operand) -> str | None:
    """Name the input that a fixed tensor is computed from; None for parameters and constants."""
    fixed = operand[1]
    return fixed.source if isinstance(fixed, Fixed) and fixed.parameter is None and fixed.source != CONSTANT else None


def meet_constant(tensor: Tensor, constant: Fixed, layout: Layout, units: Units) -> None:
    """Let a parameter pass along the units it is combined with; anything else that is fixed fixes them."""
    dimension = own_dimension(tensor, constant, layout)
    if constant.parameter is None or dimension is None:
        units.tie(units.constant(constant.source, len(layout.units)), layout.units)
    else:
        module, _, name = constant.parameter.rpartition(".")
        units.meet(module, "passes", layout, name, dimension)


def own_dimension(tensor: Tensor, constant: Fixed, layout: Layout) -> int | None:
    """Give the axis of a parameter that lies along units, where that is sure: it may have been reshaped since."""
    count = len(layout.units)
    if constant.shape == tuple(tensor.shape):
        return tensor.ndim + layout.axis
    alone = math.prod(constant.shape) == count == tensor.numel()
    return constant.shape.index(count) if alone else None


def concatenate(operands: Sequence[Operand], dimension: int, units: Units) -> Whereabouts:
    """List the units of tensors one after the other, or tie them where they are joined along another axis."""
    axis = dimension if dimension < 0 else dimension - operands[0][0].ndim
    known = [layout for _, layout in operands if isinstance(layout, Layout)]
    if not known:
        return broadcast(operands, units)
    if any(layout.axis != known[0].axis for layout in known):
        raise NotUnderstoodError("its operands have their units along different axes")
    if known[0].axis != axis:
        return broadcast(operands, units)
    parts = [
        layout if isinstance(layout, Layout) else constant_layout(layout, tensor.shape[axis], axis, units)
        for tensor, layout in operands
    ]
    return Layout(
        axis, numpy.concatenate([part.units for part in parts]), numpy.concatenate([part.slots for part in parts])
    )


def constant_layout(constant: Fixed, count: int, axis: int, units: Units) -> Layout:
    """Give the layout of a fixed tensor along an axis."""
    return Layout(axis, units.constant(constant.source, count), numpy.zeros(count, dtype=numpy.int64))
