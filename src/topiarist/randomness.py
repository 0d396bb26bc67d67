"""A seed gives named child generators, so that no result depends on the order or the number of workers.

Layer initialisers and dropout draw from torch's global generator; `isolated` is the one place that touches it.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy
import torch

Name = str | int


def child_seed(seed: int, *names: Name) -> int:
    """Derive a 63-bit seed from a seed and the name of what it is for."""
    text = "/".join([str(seed), *(str(name) for name in names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *names: Name) -> torch.Generator:
    """Make torch's generator for one named purpose."""
    return torch.Generator().manual_seed(child_seed(seed, *names))


def array_generator(seed: int, *names: Name) -> numpy.random.Generator:
    """Make numpy's generator for one named purpose."""
    return numpy.random.Generator(numpy.random.PCG64(child_seed(seed, *names)))


@contextmanager
def isolated(seed: int) -> Iterator[None]:
    """Seed torch's global generator inside the block and restore it afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


def draw_seed(source: torch.Generator) -> int:
    """Draw a seed for `isolated` from a generator that was passed in."""
    return int(torch.randint(2**62, (), generator=source).item())
