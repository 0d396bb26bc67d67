"""Finds the unit spaces of a network: runs it once, and follows the units through every operation."""

import warnings
from collections.abc import Iterable
from dataclasses import replace

from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from topiarist.errors import ModelError, TopiaristWarning
from topiarist.tracing.anatomy import Anatomy
from topiarist.tracing.attributes import follows_parameters
from topiarist.tracing.hooks import hooked_layers
from topiarist.tracing.joint import join_spaces
from topiarist.tracing.leaves import Leaf
from topiarist.tracing.parameter_sizes import shapes_of
from topiarist.tracing.running import ExampleInput, uncollected
from topiarist.tracing.solving import Solver
from topiarist.tracing.spaces import Meeting, Role
from topiarist.tracing.trace import Trace, run_traced
from topiarist.tracing.tracer import Tracer
from topiarist.tracing.units import Mark

Ignored = str | type[nn.Module] | Iterable[str | type[nn.Module]]
_LAYER_TENSORS = ("weight", "bias", "running_mean", "running_var")
_ORDER: tuple[Role, ...] = ("reads", "writes", "passes")
_KERNEL = "they are the positions of a kernel"
_SPREAD = "one unit is spread over many"


def anatomy(model: nn.Module, example_input: ExampleInput, *, ignored: Ignored = ()) -> Anatomy:
    """Find the unit spaces of a network.

    Parameters
    ----------
    model : nn.Module
        Any network that runs; it is left as it is.
    example_input : Tensor, sequence, mapping or callable
        A batch as the network gets it: a tensor, a sequence of arguments, a mapping by name, or a function that is
        given the network and runs it.
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
        The network does not run on the example.

    Examples
    --------
    >>> from torch import nn, zeros
    >>> model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> anatomy(model, zeros(1, 4))["0"].size
    3
    >>> list(anatomy(model, zeros(1, 4), ignored="0").free)
    []
    """
    with uncollected():
        return _found(model, example_input, ignored)


def _found(model: nn.Module, example_input: ExampleInput, ignored: Ignored) -> Anatomy:
    trace = run_traced(model, example_input)
    _warn_of_hooks(trace)
    labels = trace.tracer.labels
    meetings = find_meetings(model, trace)
    solver = Solver(labels, trace.constraints, trace.integers)
    spaces = join_spaces(labels, meetings, solver)
    uncut = _ignored_layers(model, ignored)
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    for name, space in spaces.items():
        held = {f"{place.module}.{own}".removeprefix(".") for place in space.places for own, _ in place.tensors}
        if not space.fixed and not held & parameters:
            spaces[name] = replace(space, reason="no parameter lies along them")
        met = next((place.module for place in space.places if place.module in uncut), None)
        if met is not None and not space.fixed:
            spaces[name] = replace(space, reason=f"'{met}' is ignored")
    opaque = tuple(f"'{name}' ({count} times)" for name, count in trace.tracer.not_understood.items())
    return Anatomy(
        spaces=spaces,
        calls=trace.calls,
        opaque=opaque,
        samples=trace.samples,
        shapes=shapes_of(model),
        ignored=uncut,
        solver=solver,
        trace=trace,
        unreached=trace.unreached,
        hooked=hooked_layers(model),
    )


def _warn_of_hooks(trace: Trace) -> None:
    """Warn of hooks that change values."""
    if trace.changed_by_hooks:
        named = ", ".join(f"'{name}'" if name else "the network" for name in trace.changed_by_hooks)
        text = f"hooks of {named} change values: they count as part of forward, and must not depend on single units"
        warnings.warn(text, TopiaristWarning, stacklevel=4)


def find_meetings(model: nn.Module, trace: Trace) -> list[Meeting]:
    """Return the axes of parameters and buffers that units lie along, in the order in which they are used."""
    tracer = trace.tracer
    found: dict[tuple[str, Role, int], Meeting] = {}
    for name in tracer.reached:
        leaf = tracer.leaves[name]
        path, _, own = name.rpartition(".")
        roles = _layer_roles(model.get_submodule(path), path, own, leaf)
        order = sorted(range(leaf.tensor.ndim), key=lambda axis: _ORDER.index(_role(leaf, roles, axis)))
        for axis in order:
            vector = leaf.axes[axis]
            if vector is None or (roles is not None and axis not in roles) or _has_no_units(tracer, leaf, axis, roles):
                continue
            role = _role(leaf, roles, axis)
            if roles is None and role == "passes" and "reads" in leaf.roles.get(axis, ()):
                tracer.labels.mark(vector, Mark.ESCAPED)  # one tensor writes and reads them: a tied table of words
            key = (path if roles is not None else name, role, 0 if roles is not None else axis)
            tensors = (*(found[key].tensors if key in found else ()), (own, axis))
            parameter = None if roles is not None else own
            first = found[key].vector if key in found else vector
            found[key] = Meeting(path, role, first, tensors, parameter)
    return list(found.values())


def _has_no_units(tracer: Tracer, leaf: Leaf, axis: int, roles: dict[int, Role] | None) -> bool:
    """Return whether an axis holds the positions of a kernel, or one position that is there for broadcasting."""
    vector = leaf.axes[axis]
    units = tracer.labels.units_at(vector) if vector is not None else None
    reason = None if units is None or not units.size else tracer.labels.reason(int(units[0, 0]))
    if reason is None:
        return False
    spread = roles is None and len(leaf.axes) > 1 and leaf.tensor.shape[axis] == 1 and reason.startswith(_SPREAD)
    return reason.startswith(_KERNEL) or spread


def _role(leaf: Leaf, roles: dict[int, Role] | None, axis: int) -> Role:
    """Return how an axis meets its units: by the kind of layer, or by how forward uses the parameter."""
    if roles is not None:
        return roles.get(axis, "passes")
    seen = leaf.roles.get(axis, set())
    return "reads" if seen == {"reads"} else "writes" if seen == {"writes"} else "passes"


def _layer_roles(module: nn.Module, path: str, own: str, leaf: Leaf) -> dict[int, Role] | None:
    """Return the roles of the axes of a layer's tensor; None where it is not one of torch's layers used as such."""
    if not follows_parameters(module) or leaf.users != [path] or own not in _LAYER_TENSORS:
        return None
    match module:
        case nn.Linear():
            return {0: "writes", 1: "reads"} if own == "weight" else {0: "writes"}
        case _ConvTransposeNd():
            return None
        case _ConvNd() if module.groups == 1:
            return {0: "writes", 1: "reads"} if own == "weight" else {0: "writes"}
        case _ConvNd() if leaf.tensor.ndim == 1 or leaf.tensor.shape[1] == 1:
            return {0: "passes"}
        case _NormBase() | nn.GroupNorm() | nn.PReLU():
            return {0: "passes"}
        case nn.LayerNorm() | nn.RMSNorm() if leaf.tensor.ndim == 1:
            return {0: "passes"}
    return None


def ensure_anatomy(model: nn.Module, example_input: ExampleInput, known: Anatomy | None) -> Anatomy:
    """Return an anatomy that is known, after a check that it is of this network; trace what is not known."""
    if known is not None:
        shapes = shapes_of(model)
        odd = next((name for name in (*shapes, *known.shapes) if known.shapes.get(name) != shapes.get(name)), None)
        if odd is not None:
            raise ModelError(f"the anatomy is of another network, as '{odd}' shows: pass anatomy(model, example_input)")
        if known.valid_for != "nothing":
            return known
    return trace_again(model, example_input, known)


def trace_again(model: nn.Module, example_input: ExampleInput, known: Anatomy | None) -> Anatomy:
    """Trace a network whose anatomy is not known, or was before it changed; layers that are ignored stay so."""
    names = dict(model.named_modules())
    ignored = () if known is None else [name for name in known.ignored if name in names]
    return anatomy(model, example_input, ignored=ignored)


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
