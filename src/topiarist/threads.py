"""How many threads a computation takes."""

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
