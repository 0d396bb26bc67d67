"""Libraries that decode images and sound, and would write to standard error by themselves."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

STANDARD_ERROR = 2  # the number of that file in POSIX


@contextmanager
def silent_decoder() -> Iterator[None]:
    """Let nothing but Python's errors out of the block: libtiff and mpg123 write to the process's standard error."""
    try:
        kept = os.dup(STANDARD_ERROR)
    except OSError:  # it is closed
        yield
        return
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, STANDARD_ERROR)
        os.close(nowhere)
        yield
    finally:
        os.dup2(kept, STANDARD_ERROR)
        os.close(kept)
