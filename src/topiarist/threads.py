"""How torch computes in this thread: with how many others, and whether the tiniest numbers count.

torch is imported where it is used, so that commands which only count cores start quickly.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from topiarist.errors import SettingsError


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux, where a container may leave a process fewer than the machine has
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Let torch use `count` threads inside the block; None leaves it alone."""
    import torch  # noqa: PLC0415  # see the top of the file

    if count is not None and count < 1:
        raise SettingsError(f"threads must be at least 1; found {count}")
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread inside the block, and every library loaded so far that has threads of its own.

    Several threads add up parts of a sum in an order of their own: an SVD, or the first sums of gradient boosting, then
    end in other bits on a machine of other cores, or on a worker.
    """
    from threadpoolctl import threadpool_limits  # noqa: PLC0415  # see the top of the file

    with torch_threads(1), threadpool_limits(1):
        yield


@contextmanager
def without_denormals() -> Iterator[None]:
    """Treat numbers below about 1e-38 as 0 inside the block: they mean nothing and take many times as long.

    An optimizer produces them for weights without a gradient, such as those of pixels that are always black.
    """
    import torch  # noqa: PLC0415  # see the top of the file

    before = flushes_denormals()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def flushes_denormals() -> bool:
    """Return whether this thread treats denormal numbers as 0, found by a trial: torch has no getter."""
    import torch  # noqa: PLC0415  # see the top of the file

    return bool((torch.tensor([1e-40]) * 1.0 == 0).item())
