"""A seed gives named child generators, so that no result depends on the order or the number of workers.

Layer initialisers and dropout draw from torch's global generator; `isolated` is the one place that touches it.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    import torch

Name = str | int


def child_seed(seed: int, *names: Name) -> int:
    """Derive a 63-bit seed from a seed and the name of what it is for."""
    text = "/".join([str(seed), *(str(name) for name in names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *names: Name) -> "torch.Generator":
    """Make torch's generator for one named purpose."""
    import torch  # noqa: PLC0415  # splitting data needs seeds and no torch

    return torch.Generator().manual_seed(child_seed(seed, *names))


def array_generator(seed: int, *names: Name) -> numpy.random.Generator:
    """Make numpy's generator for one named purpose."""
    return numpy.random.Generator(numpy.random.PCG64(child_seed(seed, *names)))


@contextmanager
def isolated(seed: int, device: "torch.device | str" = "cpu") -> Iterator[None]:
    """Seed torch's global generators, of the CPU and of `device`, inside the block and restore them afterwards."""
    import torch  # noqa: PLC0415

    place = torch.device(device)
    elsewhere = [] if place.type == "cpu" else [place]
    with torch.random.fork_rng(devices=elsewhere, device_type=place.type if elsewhere else "cuda"):
        torch.default_generator.manual_seed(seed)
        if elsewhere:
            torch.get_device_module(place).manual_seed(seed)
        yield
