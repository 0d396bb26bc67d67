"""Settings of all tests: properties are checked without a clock, one thread a process (the tests run in several).

The same examples are tried each time, so that a change is judged by what it changes; `make fuzz` tries others. Networks
settle in few steps where nobody says how many, and are timed for a moment: what most tests are about hangs on neither.
"""

import sys
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

from tests.pace import all_steps_taken, hurry

settings.register_profile("steady", deadline=None, derandomize=True)
settings.register_profile("fuzz", deadline=None, print_blob=True)
settings.load_profile("steady")
torch.set_num_threads(1)
hurry()


@pytest.fixture
def all_steps() -> Iterator[None]:
    """Let networks settle in as many steps as for users."""
    with all_steps_taken():
        yield


# Pipes, devices, signals, forked processes, links and bits of permission, as these files try them, are those of POSIX.
POSIX_ONLY = [
    "cli/test_bad_input.py",
    "cli/test_outputs.py",
    "cli/test_resize_surgeon.py",
    "cli/test_strange_input.py",
    "cli/test_study.py",
    "data/test_read_source.py",
    "data/test_samples.py",
    "methods/surgeon/test_checkpoint.py",
    "rightsizing/test_kills.py",
    "study/test_kill.py",
    "test_files.py",
]
collect_ignore = POSIX_ONLY if sys.platform == "win32" else []
