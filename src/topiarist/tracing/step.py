"""What a rule gets to see: one operation, where the units lie in what it takes, and which sizes it counts."""

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx

from topiarist.tracing.graph import Call
from topiarist.tracing.units import Fixed, Layout, NotUnderstoodError, Operand, Units, Whereabouts


@dataclass(frozen=True)
class Step:
    """One operation with the whereabouts of all values that came before it."""

    call: Call
    places: Mapping[fx.Node, Whereabouts]
    values: Mapping[fx.Node, Any]
    units: Units

    @property
    def operands(self) -> list[Operand]:
        """Return the tensors that the operation takes, each once."""
        found = []
        for node in self.call.node.all_input_nodes:
            place, value = self.places[node], self.values[node]
            if isinstance(place, tuple):
                found += [pair for pair in zip(value, place, strict=True) if isinstance(pair[0], Tensor)]
            elif isinstance(value, Tensor) and place is not None:
                found.append((value, place))
        return found

    @property
    def layout(self) -> Layout | Fixed:
        """Return where the units of the first tensor lie."""
        return self.operands[0][1]

    @property
    def tracked(self) -> Layout:
        """Return where the units of the first tensor lie; it must have some."""
        if isinstance(self.layout, Fixed):
            raise NotUnderstoodError("other units than those of its input decide what it does")
        return self.layout

    @property
    def taken(self) -> Tensor:
        """Return the first tensor."""
        return self.operands[0][0]

    @property
    def given(self) -> Tensor:
        """Return the tensor that comes out."""
        if not isinstance(self.call.output, Tensor):
            raise NotUnderstoodError(f"it returns a {type(self.call.output).__name__} where a tensor was expected")
        return self.call.output

    def argument(self, name: str, position: int, default: Any = None) -> Any:
        """Return a setting of the operation by name or by its position, the tensor itself being at 0."""
        if name in self.call.kwargs:
            return self.call.kwargs[name]
        return self.call.args[position] if len(self.call.args) > position else default

    def along(self, axis: int) -> Layout:
        """Return the layout of the first tensor, which must have its units along an axis counted from the right."""
        if isinstance(self.layout, Fixed):
            return self.units.constant_layout(self.layout, self.taken.shape[axis], axis)
        if self.layout.axis != axis:
            raise NotUnderstoodError(f"it works along axis {axis}, but the units lie along axis {self.layout.axis}")
        return self.layout

    def fix_counted(self) -> None:
        """Fix units whose number forward computes with."""
        for node in self.call.node.all_input_nodes:
            if not isinstance(self.values[node], Tensor) and self.places[node] is None:
                for layout in self.counted_layouts(node):
                    self.units.fix(layout.units, "forward computes with their number")

    def counted_layouts(self, node: fx.Node) -> Iterator[Layout]:
        """Yield the layouts of the tensors along whose units a number was measured, as far as can be told."""
        if isinstance(self.values[node], Tensor):
            place = self.places[node]
            if isinstance(place, Layout):
                yield place
            return
        measured = self._measured_axis(node)
        if measured is not None:
            tensor, axis = measured
            place = self.places[tensor]
            if isinstance(place, Layout) and self.values[tensor].ndim + place.axis == axis:
                yield place
            return
        for source in node.all_input_nodes:
            yield from self.counted_layouts(source)

    def _measured_axis(self, node: fx.Node) -> tuple[fx.Node, int] | None:
        """Return the tensor and the axis of `x.size(axis)` and `x.shape[axis]`; None for anything else."""
        if node.op == "call_method" and node.target == "size" and len(node.args) == 2 and isinstance(node.args[1], int):
            source, axis = node.args
        elif node.target is operator.getitem and isinstance(node.args[1], int) and isinstance(node.args[0], fx.Node):
            shape, axis = node.args[0], node.args[1]
            whole = shape.target is getattr or (shape.target == "size" and len(shape.args) == 1)
            source = shape.args[0] if whole and isinstance(self.values[shape], torch.Size) else None
        else:
            return None
        if not isinstance(source, fx.Node) or not isinstance(axis, int):
            return None
        return source, axis % self.values[source].ndim
