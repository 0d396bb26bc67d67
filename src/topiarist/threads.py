"""How torch computes in this thread: with how many others, and whether the tiniest numbers count."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from topiarist.errors import SettingsError


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Let torch use `count` threads inside the block; None leaves it alone."""
    if count is not None and count < 1:
        raise SettingsError(f"threads must be at least 1; found {count}")
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def without_denormals() -> Iterator[None]:
    """Let numbers below about 1e-38 be 0 inside the block: they mean nothing and take many times as long.

    Weights that get no gradient, as those of pixels that are always black, give an optimizer no other numbers.
    """
    before = flushes_denormals()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def flushes_denormals() -> bool:
    """Say whether this thread takes denormal numbers for 0; torch does not tell."""
    return bool((torch.tensor([1e-40]) * 1.0 == 0).item())
