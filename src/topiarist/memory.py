"""Memory that was freed, given back to the system.

The C library of Linux keeps what lies between blocks that are still in use, and counts it as the process's own: after a
training that came and went through many large blocks, as much as the data themselves.
"""

import ctypes
import gc
from collections.abc import Callable
from functools import cache

# `malloc.h`: what blocks are mapped by themselves, and how much may be free at the end of what they are taken from.
MAP_FROM, TRIM_FROM = -3, -1
LARGE_BLOCK, FREE_AT_END = 2**22, 2**25  # 4 MB: batches are smaller; 32 MB: giving back and taking again costs time


def map_large_blocks() -> None:
    """Let blocks of 4 MB or more go back to the system when they are freed, where its C library can be told to.

    By itself it learns from the first large block that is freed to keep all that follow. It holds for the process: this
    is for commands, not for functions that a user's program calls.
    """
    try:
        tell = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # another C library, or a system where it has no such name
        return
    tell(MAP_FROM, LARGE_BLOCK)
    tell(TRIM_FROM, FREE_AT_END)


def return_freed(*, cycles: bool = False) -> None:
    """Return freed memory to the system, where its C library can be asked for it, in some hundredths of a second.

    With `cycles`, objects that refer to each other are looked for and freed before, which takes some tenths.
    """
    if cycles:
        gc.collect()
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    """Return glibc's `malloc_trim`; None where there is no such function."""
    try:
        found = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):  # another C library, or a system where it has no such name
        return None
    found.argtypes, found.restype = [ctypes.c_size_t], ctypes.c_int
    return found
