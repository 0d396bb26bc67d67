"""Finds the unit spaces of a network: follows the units through every operation that it runs."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, fx, nn

from topiarist.errors import ModelError
from topiarist.tracing.anatomy import Anatomy, LayerCall
from topiarist.tracing.function_rules import function_rule
from topiarist.tracing.graph import LEAVES, Call, Inputs, described, find_calls
from topiarist.tracing.module_rules import module_rule
from topiarist.tracing.spaces import find_spaces, shapes_of
from topiarist.tracing.step import Step
from topiarist.tracing.units import Fixed, Layout, NotUnderstoodError, Units, Whereabouts, everywhere

Ignored = str | type[nn.Module] | Iterable[str | type[nn.Module]]


def anatomy(model: nn.Module, example_input: Inputs, *, partial: bool = False, ignored: Ignored = ()) -> Anatomy:
    """Find the unit spaces of a network.

    Parameters
    ----------
    model : nn.Module
        Any network that torch.fx can trace; it is left as it is.
    example_input : Tensor, sequence or mapping
        A batch as the network gets it: a tensor, a sequence of arguments, or a mapping by name.
    partial : bool
        Fix the units that an operation touches which cannot be followed, and list it in `opaque`.
    ignored : str, type or several of them
        Layers that must not be cut, by name or by type; the name of a container stands for all layers in it. The
        spaces that they write, pass on or read are fixed.

    Returns
    -------
    Anatomy
        The spaces, to print or to pass on as `anatomy=` to what would otherwise trace the network again.

    Raises
    ------
    ModelError
        The network cannot be traced; without `partial`, it names the module and the operation that cannot be followed.

    Examples
    --------
    >>> from torch import nn, zeros
    >>> model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> anatomy(model, zeros(1, 4))["0"].size
    3
    >>> list(anatomy(model, zeros(1, 4), ignored="0").free)
    []
    """
    units = Units()
    places: dict[fx.Node, Whereabouts] = {}
    values: dict[fx.Node, Any] = {}
    calls: dict[str, LayerCall] = {}
    opaque = []
    shared = _shared_parameters(model)
    for call in find_calls(model, example_input):
        step = Step(call, places, values, units)
        values[call.node] = call.output
        try:
            places[call.node] = _follow(step, model, shared)
        except NotUnderstoodError as error:
            what = f"{described(call.place)} ({call.operation}): {error}"
            if not partial:
                raise ModelError(f"surgery cannot follow {what}; partial=True leaves its units alone") from error
            opaque.append(what)
            places[call.node] = _fix_all(step)
        _note_parameters(step, places[call.node])
        if call.module is not None:
            calls[call.place] = _layer_call(call, places[call.node], calls.get(call.place))
    units.fix_parameters()
    units.fix_sizes()
    samples = next((len(value) for value in values.values() if isinstance(value, Tensor) and value.ndim), 1)
    uncut = _ignored_layers(model, ignored)
    spaces = find_spaces(units)
    for name, space in spaces.items():
        met = next((place.module for place in space.places if place.module in uncut), None)
        if met is not None and not space.fixed:
            spaces[name] = replace(space, reason=f"'{met}' is ignored")
    return Anatomy(spaces, calls, tuple(opaque), samples, shapes_of(model), uncut)


def ensure_anatomy(model: nn.Module, example_input: Inputs, known: Anatomy | None) -> Anatomy:
    """Return an anatomy that is known, after a check that it is of this network; trace what is not known."""
    if known is not None:
        shapes = shapes_of(model)
        odd = next((name for name in (*shapes, *known.shapes) if known.shapes.get(name) != shapes.get(name)), None)
        if odd is not None:
            raise ModelError(f"the anatomy is of another network, as '{odd}' shows: pass anatomy(model, example_input)")
        if known.valid_for != "nothing":
            return known
    return trace_again(model, example_input, known)


def trace_again(model: nn.Module, example_input: Inputs, known: Anatomy | None) -> Anatomy:
    """Trace a network whose anatomy is not known, or was before it changed; layers that are ignored stay so."""
    names = dict(model.named_modules())
    ignored = () if known is None else [name for name in known.ignored if name in names]
    return anatomy(model, example_input, partial=True, ignored=ignored)


def _follow(step: Step, model: nn.Module, shared: set[str]) -> Whereabouts:
    """Return where the units lie after an operation."""
    target = str(step.call.node.target)
    match step.call.node.op:
        case "placeholder":
            return everywhere(step.call.output, Fixed(target.lstrip("*")))
        case "get_attr":
            return _read_parameter(step, model, target)
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


def _read_parameter(step: Step, model: nn.Module, name: str) -> Whereabouts:
    """Return the place of a parameter or a buffer that forward reads directly; anything else is a constant."""
    owner, _, own = name.rpartition(".")
    module = model.get_submodule(owner)
    if own not in module._parameters and own not in module._buffers:
        return everywhere(step.call.output, Fixed(name))
    step.units.read_directly.add(name)
    return Fixed(name, parameter=name, shape=tuple(step.call.output.shape))


def _note_parameters(step: Step, place: Whereabouts) -> None:
    """Note the parameters that an operation takes and neither passes on nor lets lie along units."""
    for _, taken in step.operands:
        if isinstance(taken, Fixed) and taken.parameter is not None:
            passed_on = isinstance(place, Fixed) and place.parameter == taken.parameter
            if not passed_on and taken.parameter not in step.units.just_met:
                step.units.read_otherwise.add(taken.parameter)
    step.units.just_met.clear()


def _fix_all(step: Step) -> Whereabouts:
    """Fix the units of all that an operation takes, and all that its layer meets; its result has none."""
    if step.call.module is not None:
        step.units.fix_layer(step.call.place, f"'{step.call.operation}' is not understood")
    for _, layout in step.operands:
        if isinstance(layout, Layout):
            step.units.fix(layout.units, f"'{step.call.operation}' is not understood")
    return everywhere(step.call.output, Fixed(f"{step.call.node.name}"))


def _layer_call(call: Call, place: Whereabouts, before: LayerCall | None) -> LayerCall:
    """Return a layer's call, together with those before it."""
    first = next(iter((*call.args, *call.kwargs.values())), None)
    given, taken = (value if isinstance(value, Tensor) else torch.empty(0) for value in (call.output, first))
    if before is None:
        axis = place.axis if isinstance(place, Layout) else None
        return LayerCall(call.node, tuple(given.shape), axis, 1, given.numel(), taken.numel())
    elements, read = before.elements + given.numel(), before.taken + taken.numel()
    return replace(before, count=before.count + 1, elements=elements, taken=read)


def _shared_parameters(model: nn.Module) -> set[str]:
    """Name the modules with a parameter that another module has too, or that is computed from others."""
    owners: dict[int, str] = {}
    shared = set()
    for name, module in model.named_modules():
        own = module._parameters.get("weight")
        if hasattr(module, "parametrizations") or (isinstance(module, LEAVES) and own is not module.weight):
            shared.add(name)
        for parameter in module.parameters(recurse=False):
            first = owners.setdefault(id(parameter), name)
            shared |= {first, name} if first != name else set()
    return shared


def _ignored_layers(model: nn.Module, ignored: Ignored) -> tuple[str, ...]:
    """Name the layers that are ignored; the name of no layer is an error."""
    modules = dict(model.named_modules())
    found: list[str] = []
    for each in (ignored,) if isinstance(ignored, (str, type)) else ignored:
        if isinstance(each, type):
            found += [name for name, module in modules.items() if isinstance(module, each)]
        elif isinstance(each, str) and each in modules:
            found += [name for name in modules if f"{name}.".startswith(f"{each}.") or not each]
        else:
            known = ", ".join(name for name in modules if name)
            raise ModelError(f"ignored must name layers or types of layers; found {each!r}: known are {known}")
    return tuple(found)
