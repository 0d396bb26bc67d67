"""A network as a list of operations: torch.fx finds them, an example input gives every value its shape."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from types import NoneType
from typing import Any

from torch import Tensor, fx, nn
from torch.nn.parameter import is_lazy

from topiarist.errors import ModelError
from topiarist.models.copying import copying
from topiarist.models.evaluation import evaluating, numbers_of, placed
from topiarist.randomness import isolated

Args = tuple[Any, ...]
Kwargs = dict[str, Any]
Inputs = Tensor | Sequence[Any] | Mapping[str, Any]
LEAVES = (nn.Linear, nn.modules.conv._ConvNd, nn.modules.batchnorm._BatchNorm, nn.PReLU)
_OF_EVERY_MODULE = frozenset(vars(nn.Module()))


@dataclass(frozen=True)
class Call:
    """One operation of a network: its node in the graph, the module it calls, if any, its arguments and its result."""

    node: fx.Node
    module: nn.Module | None
    args: Args
    kwargs: Kwargs
    output: Any

    @property
    def operation(self) -> str:
        """Name the operation as a reader of the network's code would."""
        if self.module is not None:
            return type(self.module).__name__
        target = self.node.target
        return target if isinstance(target, str) else getattr(target, "__name__", str(target))

    @property
    def place(self) -> str:
        """Name the module that is called, or the one whose forward calls a function."""
        if self.module is not None:
            return str(self.node.target)
        return next(reversed(self.node.meta.get("nn_module_stack") or {}), "")  # the network itself has no name


class Tracer(fx.Tracer):
    """Torch's tracer; a subclass of a known layer with the layer's own forward counts as that layer."""

    def __init__(self) -> None:
        super().__init__()
        self.entered: list[str] = [""]

    def is_leaf_module(self, module: nn.Module, name: str) -> bool:
        """Return whether a module is one operation."""
        known = isinstance(module, LEAVES) and any(
            kind.__module__.startswith("torch.nn") and type(module).forward is kind.forward
            for kind in type(module).__mro__
            if issubclass(kind, nn.Module)
        )
        return known or super().is_leaf_module(module, name)

    def call_module(self, module: nn.Module, forward: Any, args: Args, kwargs: Kwargs) -> Any:
        """Remember which module is being traced, for the sake of errors."""
        self.entered.append(self.path_of_module(module))
        result = super().call_module(module, forward, args, kwargs)
        self.entered.pop()
        return result


def described(place: str) -> str:
    """Name a module in an error."""
    return f"'{place}'" if place else "the network's forward"


def find_calls(model: nn.Module, example_input: Inputs) -> Iterator[Call]:
    """Yield the operations of a network in the order in which they run, with their values for an example.

    They run in a copy that shares the parameters: forward may count, remember or write into buffers.
    """
    _check_forwards(model)
    copy = sharing_copy(model)
    args, kwargs = arguments(model, example_input)
    with evaluating(copy), isolated(0):
        yield from _run(copy, _graph_of(copy, args, kwargs), args, kwargs)


def _check_forwards(model: nn.Module) -> None:
    """Refuse networks whose code cannot be seen: wrapped ones, and forwards that were replaced in an object."""
    inside = {"OptimizedModule": "_orig_mod", "DataParallel": "module", "DistributedDataParallel": "module"}
    if (wrapper := type(model).__name__) in inside:
        raise ModelError(f"the network is wrapped in {wrapper}: pass the one inside, model.{inside[wrapper]}")
    for name, module in model.named_modules():
        if "forward" in vars(module):
            raise ModelError(f"the forward of {described(name)} was replaced in this object: write it in a class")
        if any(is_lazy(parameter) for parameter in module.parameters(recurse=False)):
            raise ModelError(f"{described(name)} has no values yet: run the network on a batch first")


def arguments(model: nn.Module, example_input: Inputs) -> tuple[Args, Kwargs]:
    """Return an example input as the arguments of a call: a tensor, a sequence of arguments, or a mapping by name."""
    like = numbers_of(model)

    def fit(value: Any) -> Any:
        return placed(value, like).clone() if isinstance(value, Tensor) else value  # forward may write into it

    if isinstance(example_input, Tensor):
        return (fit(example_input),), {}
    if isinstance(example_input, Mapping):
        return (), {name: fit(value) for name, value in example_input.items()}
    if isinstance(example_input, (tuple, list)):
        return tuple(fit(value) for value in example_input), {}
    kind = type(example_input).__name__
    raise ModelError(f"example_input must be a tensor, a sequence or a mapping of tensors; found {kind}")


def _graph_of(model: nn.Module, args: Args, kwargs: Kwargs) -> fx.Graph:
    """Trace a network; arguments of its forward that the example leaves out keep their defaults."""
    signature = inspect.signature(model.forward)
    try:
        given = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ModelError(f"the example input does not fit {type(model).__name__}.forward: {error}") from error
    left_out = {
        name: parameter.default
        for name, parameter in signature.parameters.items()
        if name not in given.arguments and isinstance(parameter.default, (bool, int, float, str, NoneType))
    }
    tracer = Tracer()
    try:
        return tracer.trace(model, concrete_args=left_out or None)
    except Exception as error:  # whatever a user's forward raises when it meets a symbol
        reason = str(error).split("\n")[0] or type(error).__name__
        place = tracer.entered[-1]
        kind = type(model.get_submodule(place)).__name__
        raise ModelError(f"cannot trace {described(place)} ({kind}): {reason}") from error


def _run(model: nn.Module, graph: fx.Graph, args: Args, kwargs: Kwargs) -> Iterator[Call]:
    """Run a graph on an example, operation by operation."""
    values: dict[fx.Node, Any] = {}
    given = inspect.signature(model.forward).bind(*args, **kwargs)
    given.apply_defaults()
    inputs = iter(given.arguments.values())
    modules = dict(model.named_modules(remove_duplicate=False))
    for node in graph.nodes:
        taken = fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
        module = modules[str(node.target)] if node.op == "call_module" else None
        call = Call(node, module, taken[0], taken[1], None)
        try:
            values[node] = _execute(model, call, inputs)
        except Exception as error:  # whatever an operation raises
            reason = str(error).split("\n")[0] or type(error).__name__
            raise ModelError(
                f"the example input fails at {described(call.place)} ({call.operation}): {reason}"
            ) from error
        yield Call(node, module, taken[0], taken[1], values[node])


def _execute(model: nn.Module, call: Call, inputs: Iterator[Any]) -> Any:
    """Compute one operation."""
    node = call.node
    match node.op:
        case "placeholder":
            return next(inputs)
        case "get_attr":
            value: Any = model
            for name in str(node.target).split("."):
                value = getattr(value, name)
            return value
        case "call_module":
            assert call.module is not None
            return call.module(*call.args, **call.kwargs)
        case "call_method":
            return getattr(call.args[0], str(node.target))(*call.args[1:], **call.kwargs)
        case "call_function":
            return node.target(*call.args, **call.kwargs)  # type: ignore[operator]
        case _:
            return call.args[0]


def sharing_copy(model: nn.Module) -> nn.Module:
    """Copy a network, but not its parameters: forward may count, remember or write into buffers without harm.

    Several times as fast as `deepcopy`, which only classes with a way of their own to be copied need.
    """
    with copying():
        memo: dict[int, Any] = {id(parameter): parameter for parameter in model.parameters()}
        if not all(_copies_plainly(type(module)) for module in model.modules()):
            return deepcopy(model, memo)
        copies = {module: type(module).__new__(type(module)) for module in model.modules()}
        memo |= {id(module): copy for module, copy in copies.items()}
        for module, copy in copies.items():
            for name, value in vars(module).items():
                if name == "_modules":
                    vars(copy)[name] = {child: None if own is None else copies[own] for child, own in value.items()}
                elif name == "_parameters" or (name in _OF_EVERY_MODULE and not value):
                    vars(copy)[name] = value.copy() if isinstance(value, dict) else value
                else:
                    vars(copy)[name] = deepcopy(value, memo)
        return copies[model]


def _copies_plainly(kind: type) -> bool:
    names = ("__new__", "__reduce__", "__reduce_ex__")
    return not hasattr(kind, "__deepcopy__") and all(getattr(kind, name) is getattr(object, name) for name in names)
