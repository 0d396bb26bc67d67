"""Indices that forward takes from the sizes of tensors: where they count units, the units must stay as many."""

import operator
from collections.abc import Iterator

import torch
from torch import Tensor, fx

from topiarist.tracing.step import Step
from topiarist.tracing.units import Layout


def fix_foreign(step: Step, size: fx.Node) -> None:
    """Note units whose number is taken from that of others: unless they turn out to be the same, both must stay."""
    step.units.same_size += [(step.tracked.units, layout.units) for layout in counted_layouts(step, size)]


def fix_counted(step: Step) -> None:
    """Fix units whose number forward computes with."""
    for node in step.call.node.all_input_nodes:
        if not isinstance(step.values[node], Tensor) and step.places[node] is None:
            for layout in counted_layouts(step, node):
                step.units.fix(layout.units, "forward computes with their number")


def counted_layouts(step: Step, node: fx.Node) -> Iterator[Layout]:
    """Give the layouts of the tensors along whose units a number was measured, as far as can be told."""
    value = step.values[node]
    if isinstance(value, Tensor):
        place = step.places[node]
        if isinstance(place, Layout):
            yield place
        return
    measured = measured_axis(step, node)
    if measured is not None:
        tensor, axis = measured
        place = step.places[tensor]
        if isinstance(place, Layout) and step.values[tensor].ndim + place.axis == axis:
            yield place
        return
    for source in node.all_input_nodes:
        yield from counted_layouts(step, source)


def measured_axis(step: Step, node: fx.Node) -> tuple[fx.Node, int] | None:
    """Give the tensor and the axis of `x.size(axis)` and `x.shape[axis]`; None for anything else."""
    if node.op == "call_method" and node.target == "size" and len(node.args) == 2 and isinstance(node.args[1], int):
        source, axis = node.args
    elif node.target is operator.getitem and isinstance(node.args[1], int) and isinstance(node.args[0], fx.Node):
        shape, axis = node.args[0], node.args[1]
        whole = shape.target is getattr or (shape.target == "size" and len(shape.args) == 1)
        source = shape.args[0] if whole and isinstance(step.values[shape], torch.Size) else None
    else:
        return None
    if not isinstance(source, fx.Node) or not isinstance(axis, int):
        return None
    return source, axis % step.values[source].ndim
