"""A network seen as unit spaces: who writes them, passes them on and reads them, and which cannot change."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, fx, nn

from topiarist.errors import ModelError
from topiarist.tracing.function_rules import function_rule
from topiarist.tracing.graph import LEAVES, Call, Inputs, described, find_calls
from topiarist.tracing.joining import NotUnderstoodError
from topiarist.tracing.module_rules import module_rule
from topiarist.tracing.spaces import Space, find_spaces
from topiarist.tracing.step import Step
from topiarist.tracing.table import render
from topiarist.tracing.units import Fixed, Layout, Units, Whereabouts, everywhere


@dataclass(frozen=True)
class Seen:
    """A layer that runs: its first node in the graph, the shape it gives there and the axis of its units.

    `count` is how often it runs, `elements` how many values it gives in all, `taken` how many it gets.
    """

    node: fx.Node
    shape: tuple[int, ...]
    axis: int | None
    count: int = 1
    elements: int = 0
    taken: int = 0


@dataclass(frozen=True)
class Anatomy:
    """The unit spaces of a network by name, in the order in which they are written.

    `calls` has the layers in the order in which they run; `opaque` lists what was not understood and therefore fixed;
    `samples` is the number of samples in the example input.
    """

    spaces: Mapping[str, Space]
    calls: Mapping[str, Seen]
    opaque: tuple[str, ...] = ()
    samples: int = 1

    @property
    def free(self) -> dict[str, Space]:
        """Give the spaces whose units can go and come."""
        return {name: space for name, space in self.spaces.items() if not space.fixed}

    def space(self, name: str) -> Space:
        """Give a space by name."""
        if name not in self.spaces:
            raise ModelError(f"there is no space '{name}': known are {', '.join(self.spaces)}")
        return self.spaces[name]

    def __str__(self) -> str:
        return render(self.spaces, self.opaque)


def anatomy(model: nn.Module, example_input: Inputs, *, partial: bool = False) -> Anatomy:
    """Find the unit spaces of a network; the network is left as it is.

    `example_input` is a batch as the network gets it: a tensor, a sequence of arguments, or a mapping by name. What
    cannot be followed is an error that names the module and the operation; with `partial`, the units that it touches
    are fixed and it is listed in `opaque`.
    """
    units = Units()
    places: dict[fx.Node, Whereabouts] = {}
    values: dict[fx.Node, Any] = {}
    calls: dict[str, Seen] = {}
    opaque = []
    shared = shared_parameters(model)
    for call in find_calls(model, example_input):
        step = Step(call, places, values, units)
        values[call.node] = call.output
        try:
            places[call.node] = follow(step, model, shared)
        except NotUnderstoodError as error:
            what = f"{described(call.place)} ({call.operation}): {error}"
            if not partial:
                raise ModelError(f"surgery cannot follow {what}; partial=True leaves its units alone") from error
            opaque.append(what)
            places[call.node] = fix_all(step)
        note_parameters(step, places[call.node])
        if call.module is not None:
            calls[call.place] = seen(call, places[call.node], calls.get(call.place))
    units.fix_parameters()
    units.fix_sizes()
    samples = next((len(value) for value in values.values() if isinstance(value, Tensor) and value.ndim), 1)
    return Anatomy(find_spaces(units), calls, tuple(opaque), samples)


def follow(step: Step, model: nn.Module, shared: set[str]) -> Whereabouts:
    """Give where the units lie after an operation."""
    target = str(step.call.node.target)
    match step.call.node.op:
        case "placeholder":
            return everywhere(step.call.output, Fixed(target.lstrip("*")))
        case "get_attr":
            return read_parameter(step, model, target)
        case "output":
            for _, layout in step.operands:
                if isinstance(layout, Layout):
                    step.units.fix(layout.units, "the network's output")
            return None
        case "call_module":
            if target in shared:
                raise NotUnderstoodError("its parameters are shared with another layer, or computed from others")
            return module_rule(step)
        case _:
            return function_rule(step)


def read_parameter(step: Step, model: nn.Module, name: str) -> Whereabouts:
    """Give the place of a parameter or a buffer that forward reads directly; anything else is a constant."""
    owner, _, own = name.rpartition(".")
    module = model.get_submodule(owner)
    if own not in module._parameters and own not in module._buffers:
        return everywhere(step.call.output, Fixed(name))
    step.units.read_directly.add(name)
    return Fixed(name, parameter=name, shape=tuple(step.call.output.shape))


def note_parameters(step: Step, place: Whereabouts) -> None:
    """Note the parameters that an operation takes and neither passes on nor lets lie along units."""
    for _, taken in step.operands:
        if isinstance(taken, Fixed) and taken.parameter is not None:
            passed_on = isinstance(place, Fixed) and place.parameter == taken.parameter
            if not passed_on and taken.parameter not in step.units.just_met:
                step.units.read_otherwise.add(taken.parameter)
    step.units.just_met.clear()


def fix_all(step: Step) -> Whereabouts:
    """Fix the units of all that an operation takes, and all that its layer meets; what it gives has none."""
    if step.call.module is not None:
        step.units.fix_layer(step.call.place, f"'{step.call.operation}' is not understood")
    for _, layout in step.operands:
        if isinstance(layout, Layout):
            step.units.fix(layout.units, f"'{step.call.operation}' is not understood")
    return everywhere(step.call.output, Fixed(f"{step.call.node.name}"))


def seen(call: Call, place: Whereabouts, before: Seen | None) -> Seen:
    """Remember a layer's call, together with those before it."""
    given, taken = (
        value if isinstance(value, Tensor) else torch.empty(0) for value in (call.output, first_taken(call))
    )
    if before is None:
        axis = place.axis if isinstance(place, Layout) else None
        return Seen(call.node, tuple(given.shape), axis, 1, given.numel(), taken.numel())
    return replace(
        before, count=before.count + 1, elements=before.elements + given.numel(), taken=before.taken + taken.numel()
    )


def first_taken(call: Call) -> Any:
    """Give the first value that a layer is called with."""
    return next(iter((*call.args, *call.kwargs.values())), None)


def shared_parameters(model: nn.Module) -> set[str]:
    """Name the modules with a parameter that another module has too, or that is computed from others."""
    owners: dict[int, str] = {}
    shared = set()
    for name, module in model.named_modules():
        computed = isinstance(module, LEAVES) and module._parameters.get("weight") is not getattr(
            module, "weight", None
        )
        if computed or hasattr(module, "parametrizations"):
            shared.add(name)
        for parameter in module.parameters(recurse=False):
            first = owners.setdefault(id(parameter), name)
            shared |= {first, name} if first != name else set()
    return shared
