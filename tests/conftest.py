"""Settings of all tests: properties are checked without a clock, one thread a process (the tests run in several).

The same examples are tried each time, so that a change is judged by what it changes; `make fuzz` tries others.
"""

import torch
from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True)
settings.register_profile("fuzz", deadline=None, print_blob=True)
settings.load_profile("steady")
torch.set_num_threads(1)
