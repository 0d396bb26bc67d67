"""Functions that a network keeps, and that hold on to its layers: in a copy, they have to hold on to the copy's.

`deepcopy` leaves functions as they are. A lambda such as `self.mlp = lambda x: self.second(self.first(x))` would run
the layers of the network itself wherever a copy runs.
"""

from collections.abc import Callable, Mapping
from copy import copy
from types import CellType, FunctionType, MethodType
from typing import Any

from torch import Tensor, nn
from torch.jit import ScriptModule

_NOT_FUNCTIONS = ("_modules", "_parameters", "_buffers")
_DEEPEST = 4  # lists in lists, functions in functions


def rebind_functions(model: nn.Module, other: nn.Module) -> None:
    """Let the functions and hooks that a copy of a network keeps use the copy's modules and tensors, in place."""
    twins: dict[int, Any] = dict(zip(map(id, model.modules()), other.modules(), strict=True))
    for own, same in zip(model.modules(), other.modules(), strict=True):
        for kind in ("_parameters", "_buffers") if not isinstance(own, ScriptModule) else ():
            held = vars(same)[kind]
            twins |= {id(value): held[name] for name, value in vars(own)[kind].items() if held.get(name) is not None}
    for module in list(other.modules()):
        for name, value in list(vars(module).items()):
            if name not in _NOT_FUNCTIONS and isinstance(value, (FunctionType, list, tuple, dict)) and value:
                changed = _twin(value, twins, _DEEPEST)
                if changed is not value:
                    vars(module)[name] = changed


def _twin(value: Any, twins: Mapping[int, Any], depth: int) -> Any:
    """Return what stands in a copy for a value of a network: the value itself where nothing in it is the network's."""
    if isinstance(value, (nn.Module, Tensor)):
        return twins.get(id(value), value)
    if not depth:
        return value

    def inner(item: Any) -> Any:
        return _twin(item, twins, depth - 1)

    if isinstance(value, FunctionType):
        return _function(value, inner)
    if isinstance(value, MethodType):
        owner = inner(value.__self__)
        return value if owner is value.__self__ else MethodType(value.__func__, owner)
    if type(value) in (list, tuple):
        items = [inner(item) for item in value]
        return value if _same(items, value) else type(value)(items)
    if isinstance(value, dict):
        changed = {key: inner(item) for key, item in value.items()}
        if not _same(changed.values(), value.values()):
            made = copy(value)  # of the user's kind, or of torch's for hooks
            made.update(changed)
            return made
    return value


def _function(function: FunctionType, inner: Callable[[Any], Any]) -> FunctionType:
    """Return a function that holds on to other values, or the function itself where they are the same."""
    own_cells = function.__closure__ or ()
    cells = [_content(cell) for cell in own_cells]
    held, defaults = [inner(content) for content in cells], inner(function.__defaults__)
    named = None if function.__kwdefaults__ is None else inner(dict(function.__kwdefaults__))
    same_names = named is None or _same(named.values(), (function.__kwdefaults__ or {}).values())
    if _same(held, cells) and defaults is function.__defaults__ and same_names:
        return function
    closure = tuple(
        own if new is old else CellType(new)
        for own, new, old in zip(function.__closure__ or (), held, cells, strict=True)
    )
    made = FunctionType(function.__code__, function.__globals__, function.__name__, defaults, closure)
    made.__kwdefaults__, made.__qualname__, made.__module__ = named, function.__qualname__, function.__module__
    made.__dict__.update(function.__dict__)
    return made


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing was put there yet
        return None


def _same(left: Any, right: Any) -> bool:
    return all(one is other for one, other in zip(left, right, strict=True))
