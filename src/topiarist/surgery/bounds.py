"""Bounds of activations: where units cannot go further, as the layers that read them see it."""

from collections.abc import Iterator
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
    """The lowest and the highest value that an activation gives; `from_above`: only the highest saturates it."""

    lowest: float
    highest: float
    from_above: bool = False

    @property
    def nearly_lowest(self) -> float:
        """Give the value below which a unit is next to its lower bound."""
        return float("-inf") if self.from_above else self.lowest + NEXT_TO * (self.highest - self.lowest)

    @property
    def nearly_highest(self) -> float:
        """Give the value above which a unit is next to its upper bound."""
        return self.highest - NEXT_TO * (self.highest - self.lowest)


UNIT, SIGNED, CLIPPED = Bounds(0.0, 1.0), Bounds(-1.0, 1.0), Bounds(0.0, 6.0, from_above=True)
FUNCTIONS = {"sigmoid": UNIT, "hardsigmoid": UNIT, "tanh": SIGNED, "softsign": SIGNED, "relu6": CLIPPED}


def bounds_seen(model: nn.Module, found: Anatomy, space: Space, reader: Place) -> Bounds | None:
    """Give the bounds of what a layer reads of a space; None where there are none, or where they are not known.

    They are known through dropout, pooling, flattening and concatenation, and not behind a batch norm.
    """
    seen = found.calls[reader.module]
    writers = frozenset(place.module for place in (*space.producers, *space.passes))
    sources = seen.node.all_input_nodes
    return bounds_of(model, sources[0], writers) if seen.count == 1 and sources else None


def bounds_of(model: nn.Module, node: fx.Node, writers: frozenset[str]) -> Bounds | None:
    """Give the bounds of what an operation gives of units that some layers write."""
    if node.op == "call_module":
        module = model.get_submodule(str(node.target))
        own, passing, joining = module_bounds(module), isinstance(module, PASSING), False
    elif node.op in ("call_function", "call_method"):
        name = known_name(node) or ""
        own, passing, joining = function_bounds(name, node), name in PASSING_FUNCTIONS, name in JOINING_FUNCTIONS
    else:
        return None
    if own is not None or not (passing or joining):
        return own
    sources = [source for source in node.all_input_nodes if leads_to(model, source, writers)]
    known = {bounds_of(model, source, writers) for source in (sources if joining else sources[:1])}
    return known.pop() if len(known) == 1 else None


def module_bounds(module: nn.Module) -> Bounds | None:
    """Give the bounds of an activation that is a module."""
    match module:
        case nn.ReLU6():
            return CLIPPED
        case nn.Hardtanh():
            return Bounds(float(module.min_val), float(module.max_val))
        case nn.Sigmoid() | nn.Hardsigmoid():
            return UNIT
        case nn.Tanh() | nn.Softsign():
            return SIGNED
    return None


def function_bounds(name: str, node: fx.Node) -> Bounds | None:
    """Give the bounds of an activation that is a function or a method."""
    if name != "hardtanh":
        return FUNCTIONS.get(name)
    named: dict[str, Any] = {"min_val": -1.0, "max_val": 1.0, **node.kwargs}
    named |= dict(zip(("min_val", "max_val"), node.args[1:3], strict=False))
    return Bounds(float(named["min_val"]), float(named["max_val"]))


def leads_to(model: nn.Module, node: fx.Node, writers: frozenset[str]) -> bool:
    """Say whether an operation gives units that one of some layers wrote."""
    return any(str(source.target) in writers for source in sources_of(model, node))


def sources_of(model: nn.Module, node: fx.Node) -> Iterator[fx.Node]:
    """Give the linear layers and convolutions that wrote what an operation gives; what they read does not count."""
    waiting, known = [node], {node}
    while waiting:
        now = waiting.pop()
        if now.op == "call_module" and isinstance(model.get_submodule(str(now.target)), (nn.Linear, _ConvNd)):
            yield now
            continue
        new = [source for source in now.all_input_nodes if source not in known]
        known.update(new)
        waiting += new
