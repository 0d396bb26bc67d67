"""What modules keep their integers in: sequences, named ones too, dicts, and objects with attributes or slots."""

from typing import Any

import torch


def is_sequence(value: Any) -> bool:
    """Return whether a value is a sequence that can be made anew from its items."""
    named = isinstance(value, tuple) and hasattr(value, "_make")
    return type(value) in (tuple, list) or isinstance(value, torch.Size) or named


def like_sequence(value: Any, items: list[Any]) -> Any:
    """Return a sequence of the same kind with other items."""
    return value._make(items) if hasattr(value, "_make") else type(value)(items)


def held_by(value: Any) -> dict[str, Any]:
    """Return what a dict or an object holds by names; nothing where that cannot be told."""
    if isinstance(value, dict):
        return {key: inner for key, inner in value.items() if isinstance(key, str)} if type(value) is dict else {}
    own = getattr(value, "__dict__", None)
    found = dict(own) if type(own) is dict else {}
    for name in _slots(type(value)):
        if hasattr(value, name):
            found[name] = getattr(value, name)
    return {name: inner for name, inner in found.items() if isinstance(name, str)}


def hold(value: Any, name: str, inner: Any) -> None:
    """Set what a dict or an object holds by a name, also in one that is frozen."""
    if isinstance(value, dict):
        value[name] = inner
    elif name in _slots(type(value)):
        object.__setattr__(value, name, inner)
    else:
        vars(value)[name] = inner


def _slots(kind: type) -> list[str]:
    """Return the names of the slots that a dataclass keeps its fields in."""
    fields = getattr(kind, "__dataclass_fields__", {})
    slots = (vars(each).get("__slots__", ()) for each in kind.__mro__)
    return [name for own in slots for name in ((own,) if isinstance(own, str) else own) if name in fields]
