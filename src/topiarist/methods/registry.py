"""The registry of methods, which the command line, studies, rightsizing and the report read."""

from collections.abc import Mapping
from typing import TypeVar

from topiarist.errors import SettingsError
from topiarist.methods.method import Method

DEFAULT_METHOD = "distinctiveness"  # the fastest of them (see `relative_cost`), and it needs no labels
_METHODS: dict[str, type[Method]] = {}
M = TypeVar("M", bound=type[Method])


def register(method: M) -> M:
    """Make a method known by its name.

    Parameters
    ----------
    method : subclass of Method
        Its `name` is what users write; its `traits` say what it needs and can do.

    Returns
    -------
    The same class, so that `register` can be used as a decorator.

    Raises
    ------
    SettingsError
        If another class has that name.
    """
    known = _METHODS.setdefault(method.name, method)
    if (known.__module__, known.__qualname__) != (method.__module__, method.__qualname__):
        raise SettingsError(f"a method called '{method.name}' is registered already: {known.__qualname__}")
    _METHODS[method.name] = method
    return method


def registered() -> Mapping[str, type[Method]]:
    """Return all methods by name, in the order in which they were registered."""
    return dict(_METHODS)


def find_method(name: str, *, setting: str = "method") -> type[Method]:
    """Return the method with a name; raise SettingsError that lists the known ones."""
    if name not in _METHODS:
        raise SettingsError(f"{setting} must be one of {', '.join(_METHODS)}; found '{name}'", setting=setting)
    return _METHODS[name]


def rightsizing_methods() -> tuple[str, ...]:
    """Return the names of the methods that `rightsize` asks unless others are named."""
    return tuple(name for name, method in _METHODS.items() if method.traits.in_rightsizing)
