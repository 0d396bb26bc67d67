"""Forward hooks of the user's: they run as part of forward, and those that change values are found out."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from torch import nn


def hooked_layers(model: nn.Module) -> tuple[str, ...]:
    """Name the modules with forward hooks that are not torch's own."""
    return tuple(
        name
        for name, module in model.named_modules()
        if any(_is_users(hook) for kind in _hooks_of(module) for hook in kind.values())
    )


def watch_hooks(model: nn.Module) -> dict[str, None]:
    """Replace the hooks of a copy by ones that do the same; return the names of the modules whose hooks change values.

    The names come as the network runs, in order.
    """
    changing: dict[str, None] = {}
    for name, module in model.named_modules():
        for hooks in _hooks_of(module):
            for key, hook in hooks.items():
                if _is_users(hook):
                    hooks[key] = _watched(hook, name, changing)
    return changing


def _hooks_of(module: nn.Module) -> tuple[dict[int, Any], ...]:
    return module._forward_hooks, module._forward_pre_hooks


def _watched(hook: Callable[..., Any], name: str, changing: dict[str, None]) -> Callable[..., Any]:
    @wraps(hook)
    def run(*args: Any, **kwargs: Any) -> Any:
        given = hook(*args, **kwargs)
        if given is not None:  # it stands for what the module takes, or returns
            changing[name] = None
        return given

    return run


def _is_users(hook: Any) -> bool:
    named = str(getattr(hook, "__module__", ""))
    return not type(hook).__module__.startswith("torch") and not named.startswith("torch.")
