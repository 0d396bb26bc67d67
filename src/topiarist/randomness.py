"""A seed gives named child generators, so that no result depends on the order or the number of workers.

Layer initialisers and dropout draw from torch's global generator; `isolated` is the one place that touches it.
"""

import hashlib
from collections.abc import Iterator, Sequence
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
    before = global_states(place)
    try:
        torch.default_generator.manual_seed(seed)
        if len(before) > 1:
            with torch.accelerator.device_index(place.index):
                torch.get_device_module(place).manual_seed(seed)
        yield
    finally:
        set_global_states(before, place)


def global_states(device: "torch.device") -> "list[torch.Tensor]":
    """Return the states of torch's global generators: the CPU's, and that of a device that has one of its own."""
    import torch  # noqa: PLC0415

    own = [] if device.type in ("cpu", "meta") else [torch.get_device_module(device).get_rng_state(device)]
    return [torch.default_generator.get_state(), *own]


def set_global_states(states: "Sequence[torch.Tensor]", device: "torch.device") -> None:
    """Take torch's global generators back to the states that `global_states` returned."""
    import torch  # noqa: PLC0415

    torch.default_generator.set_state(states[0])
    for own in states[1:]:
        torch.get_device_module(device).set_rng_state(own, device)
