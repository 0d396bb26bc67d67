"""Caches of functions that a network's forward calls: they return numbers and tensors of other runs, without memory.

`einops`, for instance, keeps the sizes that it computed for a shape. While a network is followed, such functions are
called anew, and nothing that they return then is kept.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import _lru_cache_wrapper
from typing import Any

from torch import nn

_OF_OTHERS = ("einops.einops", "einops.packing")  # packages that compute sizes for a network's forward


@contextmanager
def without_caches(model: nn.Module) -> Iterator[None]:
    """Let functions that keep what they returned compute it again: those of the files that a network is written in."""
    replaced: list[tuple[Any, str, Any]] = []
    try:
        for holder in _holders(model):
            for name, value in list(vars(holder).items()):
                if isinstance(value, _lru_cache_wrapper):
                    setattr(holder, name, value.__wrapped__)
                    replaced.append((holder, name, value))
        yield
    finally:
        for holder, name, value in replaced:
            setattr(holder, name, value)


def _holders(model: nn.Module) -> list[Any]:
    """Return the classes of a network, and the files that they are written in, apart from torch's."""
    kinds = {kind: None for module in model.modules() for kind in type(module).__mro__ if _is_users(kind)}
    files = dict.fromkeys((*(kind.__module__ for kind in kinds), *_OF_OTHERS))
    return [*kinds, *(sys.modules[name] for name in files if name in sys.modules)]


def _is_users(kind: type) -> bool:
    return kind is not object and not kind.__module__.startswith("torch.")
