"""The integers that a network's modules hold: found, given a memory, and written."""

from copy import copy
from typing import Any

import numpy
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd

from topiarist.tracing.holders import held_by, hold, is_sequence, like_sequence
from topiarist.tracing.integers import Attribute, tracked

# Layers whose integers follow from the shapes of their parameters, and from the groups that their operation found
FOLLOWING = (nn.Linear, _ConvNd, _NormBase, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm, nn.Embedding, nn.PReLU)


_OF_EVERY_MODULE = frozenset({*vars(nn.Module()), "training"})


def is_layer(module: nn.Module) -> bool:
    """Return whether a module is one of torch's own layers, or computes what one does."""
    if isinstance(module, (nn.Sequential, nn.ModuleList, nn.ModuleDict, torch.jit.ScriptModule)):
        return False
    own = next((kind for kind in type(module).__mro__ if kind.__module__.startswith("torch.nn")), nn.Module)
    same = own is not nn.Module and type(module).forward is getattr(own, "forward", None)
    return same and all(child is None for child in module._modules.values())


def follows_parameters(module: nn.Module) -> bool:
    """Return whether the integers of a layer follow from its parameters, and nothing else is in its code."""
    if not isinstance(module, FOLLOWING) or not is_layer(module):
        return False
    return any(own is not None for own in (*module._parameters.values(), *module._buffers.values()))


def track_integers(model: nn.Module) -> dict[Attribute, int]:
    """Let the integers that modules hold remember that they do, in place; return their values."""
    found: dict[Attribute, int] = {}
    seen: set[int] = set()
    for path, module in model.named_modules():
        if isinstance(module, torch.jit.ScriptModule):
            continue
        own = vars(module)
        inherited = {name: value for name, value in _class_numbers(type(module)).items() if name not in own}
        for name in [name for name in own if name not in _OF_EVERY_MODULE]:
            own[name] = _tracked_value(own[name], Attribute(path, (name,)), found, seen)
        for name, value in inherited.items():  # the instance gets its own, which hides that of the class
            own[name] = _tracked_value(value, Attribute(path, (name,)), found, seen)
    return found


def _class_numbers(kind: type) -> dict[str, Any]:
    """Return the integers that a user's class has, and its sequences of them, by name."""
    found: dict[str, Any] = {}
    for each in reversed(kind.__mro__):
        if not each.__module__.startswith("torch."):
            own = {name: value for name, value in vars(each).items() if not name.startswith("__")}
            found = {name: value for name, value in found.items() if name not in own}
            found |= {name: value for name, value in own.items() if _is_number(value) or _holds_numbers(value)}
    return found


def _is_number(value: Any) -> bool:
    return type(value) is int or isinstance(value, numpy.integer)


def _holds_numbers(value: Any) -> bool:
    return type(value) in (tuple, list) and bool(value) and all(map(_is_number, value))


def _tracked_value(value: Any, place: Attribute, found: dict[Attribute, int], seen: set[int]) -> Any:
    """Return a value in which integers remember their place; an object is changed in place, or copied for its place."""
    if isinstance(value, (bool, Tensor, nn.Module, str, float, type(None))) or callable(value):
        return value
    if isinstance(value, (int, numpy.integer)):
        found[place] = int(value)
        return tracked(int(value), place)
    if is_sequence(value):
        inner = [_tracked_value(item, _further(place, at), found, seen) for at, item in enumerate(value)]
        return like_sequence(value, inner)
    if len(place.way) > 3 or type(value).__module__.startswith("torch"):
        return value
    if id(value) in seen:  # several modules hold one object: settings are copied, anything else stays shared
        if not _holds_settings(value):
            return value
        value = copy(value)
    held = held_by(value)
    if held:
        seen.add(id(value))
    for key, inner in held.items():
        hold(value, key, _tracked_value(inner, _further(place, key), found, seen))
    return value


def _holds_settings(value: Any) -> bool:
    """Return whether an object, or a dict, holds numbers and words, and nothing else."""
    return all(map(_is_setting, held_by(value).values()))


def _is_setting(value: Any) -> bool:
    if isinstance(value, (tuple, list, set, frozenset, dict)):
        return all(map(_is_setting, value.values() if isinstance(value, dict) else value))
    return isinstance(value, (int, float, str, numpy.integer, torch.dtype, torch.device, type(None)))


def _further(place: Attribute, key: str | int) -> Attribute:
    return Attribute(place.module, (*place.way, key))


def write_integer(model: nn.Module, place: Attribute, number: int) -> None:
    """Set an integer of a network; objects that it lies in are copied, as other networks may share them.

    Modules that hold the same object get the same copy, unless it holds settings alone, which each has for itself.
    """
    module, name = model.get_submodule(place.module), str(place.way[0])
    old = getattr(module, name)
    new = vars(module)[name] = _with(old, place.way[1:], number)
    if held_by(old) and not _holds_settings(old):
        for other in model.modules():
            for key, value in vars(other).items():
                if value is old:
                    vars(other)[key] = new


def _with(value: Any, way: tuple[str | int, ...], number: int) -> Any:
    if not way:
        return type(value)(number) if isinstance(value, numpy.integer) else number
    key = way[0]
    if isinstance(key, int):
        items = [*value]
        items[key] = _with(items[key], way[1:], number)
        return like_sequence(value, items)
    changed = copy(value)
    hold(changed, key, _with(held_by(changed)[key], way[1:], number))
    return changed
