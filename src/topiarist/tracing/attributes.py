"""The integers that a network's modules hold: found, given a memory, read and written."""

from copy import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd

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
        for name in [name for name in own if name not in _OF_EVERY_MODULE]:
            own[name] = _tracked_value(own[name], Attribute(path, (name,)), found, seen)
    return found


def _tracked_value(value: Any, place: Attribute, found: dict[Attribute, int], seen: set[int]) -> Any:
    """Return a value in which integers remember their place; an object is changed in place, or copied for its place."""
    if isinstance(value, (bool, Tensor, nn.Module, str, float, type(None))) or callable(value):
        return value
    if isinstance(value, int):
        found[place] = int(value)
        return tracked(value, place)
    if type(value) in (tuple, list) or isinstance(value, torch.Size):
        inner = [_tracked_value(item, _further(place, at), found, seen) for at, item in enumerate(value)]
        return type(value)(inner)
    if len(place.way) > 3 or type(value).__module__.startswith("torch"):
        return value
    if id(value) in seen:  # several modules hold one object: settings are copied, anything else stays shared
        if not _holds_settings(value):
            return value
        value = copy(value)
    held = value if isinstance(value, dict) else getattr(value, "__dict__", None)
    if isinstance(held, dict) and type(held) is dict:
        seen.add(id(value))
        for key in [key for key in held if isinstance(key, str)]:
            held[key] = _tracked_value(held[key], _further(place, key), found, seen)
    return value


def _holds_settings(value: Any) -> bool:
    """Return whether an object, or a dict, holds numbers and words, and nothing else."""
    return all(map(_is_setting, (value if isinstance(value, dict) else vars(value)).values()))


def _is_setting(value: Any) -> bool:
    if isinstance(value, (tuple, list, dict)):
        return all(map(_is_setting, value.values() if isinstance(value, dict) else value))
    return isinstance(value, (int, float, str, torch.dtype, torch.device, type(None)))


def _further(place: Attribute, key: str | int) -> Attribute:
    return Attribute(place.module, (*place.way, key))


def read_integer(module: nn.Module, way: tuple[str | int, ...]) -> Any:
    """Return what lies at a way from a module; None where there is nothing."""
    value: Any = module
    for key in way:
        if isinstance(key, int):
            value = value[key] if isinstance(value, (tuple, list)) and key < len(value) else None
        else:
            value = value.get(key) if isinstance(value, dict) else getattr(value, key, None)
        if value is None:
            return None
    return value


def write_integer(module: nn.Module, way: tuple[str | int, ...], number: int) -> None:
    """Set the integer at a way from a module; objects that it lies in are copied, as other modules may share them."""
    name = str(way[0])
    vars(module)[name] = _with(vars(module)[name], way[1:], number)


def _with(value: Any, way: tuple[str | int, ...], number: int) -> Any:
    if not way:
        return number
    key = way[0]
    if isinstance(key, int):
        items = [*value]
        items[key] = _with(items[key], way[1:], number)
        return type(value)(items)
    if isinstance(value, dict):
        return {**value, key: _with(value[key], way[1:], number)}
    changed = copy(value)
    changed.__dict__[key] = _with(changed.__dict__[key], way[1:], number)
    return changed
