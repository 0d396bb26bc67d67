"""Networks of one input for a test, and samples like their example."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tests.networks import built
from topiarist.randomness import generator


def made(make: Callable[[], nn.Module], *shape: int, seed: int = 0) -> tuple[Any, Tensor]:
    """Make a network and an example input of one shape."""
    model, x = built(make, shape, seed=seed)
    assert isinstance(x, Tensor)
    return model, x


def more(example: Any, count: int, seed: int = 0) -> Any:
    """Return samples like an example input."""
    if isinstance(example, tuple):
        return tuple(more(tensor, count, seed + number) for number, tensor in enumerate(example))
    if not example.is_floating_point():
        return example[torch.randint(len(example), (count,), generator=generator(seed, "samples"))]
    return torch.randn(count, *example.shape[1:], generator=generator(seed, "samples"), dtype=torch.float64)
