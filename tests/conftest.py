"""Settings of all tests: properties are checked without a clock, one thread a process (the tests run in several)."""

import torch
from hypothesis import settings

settings.register_profile("without a clock", deadline=None)
settings.load_profile("without a clock")
torch.set_num_threads(1)
