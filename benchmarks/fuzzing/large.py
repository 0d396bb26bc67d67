"""Limits set so low that small files are read as large ones are: some rows at a time, or left in their file."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from topiarist.data import file_arrays, joined, preprocessing, samples
from topiarist.data.readers import arrays, chunks, idx

LIMITS = (
    (chunks, {"LARGE_BYTES": 0, "CHUNK_CELLS": 8, "FEWEST_ROWS": 4}),
    (preprocessing, {"CHUNK_BYTES": 64, "CACHED_BYTES": 16, "LARGE_TABLE": 8}),
    (samples, {"MOST_BYTES": 64, "FEW_BYTES": 16}),
    (file_arrays, {"FILED_BYTES": 16, "WINDOW_BYTES": 64, "CALL_BYTES": 16}),
    (idx, {"FILED_BYTES": 16, "LARGE_BYTES": 16}),
    (arrays, {"LARGE_BYTES": 16}),
    (joined, {"LARGE_BYTES": 16}),
)


@contextmanager
def low_limits() -> Iterator[None]:
    """Take every file for a large one for a while."""
    with ExitStack() as stack:
        for module, limits in LIMITS:
            for name, limit in limits.items():
                stack.enter_context(patch.object(module, name, limit))
        yield
