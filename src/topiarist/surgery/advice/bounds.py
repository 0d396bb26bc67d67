"""Bounds of activations: where units cannot go further, as the layers that read them see it."""

from dataclasses import dataclass
from typing import Any

from torch import fx, nn
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.dropout import _DropoutNd

from topiarist.tracing import Anatomy, Place, Space
from topiarist.tracing.function_rules import SPATIAL, known_name, words
from topiarist.tracing.module_rules import POOLING

NEXT_TO = 0.01  # of the range between the bounds
PASSING = (nn.Identity, nn.Flatten, _DropoutNd, *POOLING)
PASSING_FUNCTIONS = SPATIAL | words("dropout flatten view reshape contiguous permute transpose squeeze")
JOINING_FUNCTIONS = words("cat concat concatenate")


@dataclass(frozen=True)
class Bounds:
    """The lowest and the highest value of an activation; `from_above`: only the highest saturates it."""

    lowest: float
    highest: float
    from_above: bool = False

    @property
    def nearly(self) -> tuple[float, float]:
        """Return the values below, and above, which a unit is next to a bound."""
        margin = NEXT_TO * (self.highest - self.lowest)
        return float("-inf") if self.from_above else self.lowest + margin, self.highest - margin


UNIT, SIGNED, CLIPPED = Bounds(0.0, 1.0), Bounds(-1.0, 1.0), Bounds(0.0, 6.0, from_above=True)
FUNCTIONS = {"sigmoid": UNIT, "hardsigmoid": UNIT, "tanh": SIGNED, "softsign": SIGNED, "relu6": CLIPPED}
MODULES = {nn.Sigmoid: UNIT, nn.Hardsigmoid: UNIT, nn.Tanh: SIGNED, nn.Softsign: SIGNED, nn.ReLU6: CLIPPED}


def bounds_seen(model: nn.Module, anatomy: Anatomy, space: Space, reader: Place) -> Bounds | None:
    """Return the bounds of what a layer reads of a space; None where there are none, or where they are not known.

    They are known through dropout, pooling, flattening and concatenation, and not behind a batch norm.
    """
    call = anatomy.calls[reader.module]
    writers = frozenset(place.module for place in (*space.producers, *space.passes))
    sources = call.node.all_input_nodes
    return _bounds_of(model, sources[0], writers) if call.count == 1 and sources else None


def _bounds_of(model: nn.Module, node: fx.Node, writers: frozenset[str]) -> Bounds | None:
    """Return the bounds of what an operation returns of units that some layers write."""
    joining = False
    if node.op == "call_module":
        module = model.get_submodule(str(node.target))
        passing = isinstance(module, PASSING)
        own = next((bounds for kind, bounds in MODULES.items() if isinstance(module, kind)), None)
        if isinstance(module, nn.Hardtanh) and own is None:
            own = Bounds(float(module.min_val), float(module.max_val))
    elif node.op in ("call_function", "call_method"):
        name = known_name(node) or ""
        passing, joining = name in PASSING_FUNCTIONS, name in JOINING_FUNCTIONS
        own = FUNCTIONS.get(name)
        if name == "hardtanh":
            named: dict[str, Any] = {"min_val": -1.0, "max_val": 1.0, **node.kwargs}
            named |= dict(zip(("min_val", "max_val"), node.args[1:3], strict=False))
            own = Bounds(float(named["min_val"]), float(named["max_val"]))
    else:
        return None
    if own is not None or not (passing or joining):
        return own
    sources = [source for source in node.all_input_nodes if _leads_to(model, source, writers)]
    known = {_bounds_of(model, source, writers) for source in (sources if joining else sources[:1])}
    return known.pop() if len(known) == 1 else None


def _leads_to(model: nn.Module, node: fx.Node, writers: frozenset[str]) -> bool:
    """Return whether an operation returns units that one of some layers wrote; what those read does not count."""
    waiting, known = [node], {node}
    while waiting:
        now = waiting.pop()
        if now.op == "call_module" and isinstance(model.get_submodule(str(now.target)), (nn.Linear, _ConvNd)):
            if str(now.target) in writers:
                return True
            continue
        new = [source for source in now.all_input_nodes if source not in known]
        known.update(new)
        waiting += new
    return False
