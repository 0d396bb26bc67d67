"""What a rule gets to see: one operation, and where the units lie in what it takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, fx

from topiarist.tracing.graph import Call
from topiarist.tracing.joining import NotUnderstoodError, Operand, constant_layout
from topiarist.tracing.units import Fixed, Layout, Units, Whereabouts


@dataclass(frozen=True)
class Step:
    """One operation with the whereabouts of all values that came before it."""

    call: Call
    places: Mapping[fx.Node, Whereabouts]
    values: Mapping[fx.Node, Any]
    units: Units

    @property
    def operands(self) -> list[Operand]:
        """Give the tensors that the operation takes, each once."""
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
        """Give where the units of the first tensor lie."""
        return self.operands[0][1]

    @property
    def tracked(self) -> Layout:
        """Give where the units of the first tensor lie; it must have some."""
        if isinstance(self.layout, Fixed):
            raise NotUnderstoodError("other units than those of its input decide what it does")
        return self.layout

    @property
    def taken(self) -> Tensor:
        """Give the first tensor."""
        return self.operands[0][0]

    @property
    def given(self) -> Tensor:
        """Give the tensor that comes out."""
        if not isinstance(self.call.output, Tensor):
            raise NotUnderstoodError(f"it gives a {type(self.call.output).__name__} where a tensor was expected")
        return self.call.output

    def argument(self, name: str, position: int, default: Any = None) -> Any:
        """Give a setting of the operation by name or by its position, the tensor itself being at 0."""
        if name in self.call.kwargs:
            return self.call.kwargs[name]
        return self.call.args[position] if len(self.call.args) > position else default

    def along(self, axis: int) -> Layout:
        """Give the layout of the first tensor, which must have its units along an axis counted from the right."""
        if isinstance(self.layout, Fixed):
            return constant_layout(self.layout, self.taken.shape[axis], axis, self.units)
        if self.layout.axis != axis:
            raise NotUnderstoodError(f"it works along axis {axis}, but the units lie along axis {self.layout.axis}")
        return self.layout
