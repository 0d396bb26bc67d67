"""Buffers that forward writes into, as running means: kept as they are while a network is tried out."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def keeping_buffers(model: nn.Module) -> Iterator[None]:
    """Restore the buffers of a network afterwards: the same tensors with the same values."""
    modules = [(module, dict(module._buffers)) for module in model.modules() if module._buffers]
    tensors = {id(own): own for _, buffers in modules for own in buffers.values() if own is not None}
    values = {key: own.detach().clone() for key, own in tensors.items()}
    try:
        yield
    finally:
        for module, buffers in modules:
            module._buffers.clear()
            module._buffers.update(buffers)
        with torch.no_grad():
            for key, own in tensors.items():
                if not own.is_meta and not torch.equal(own, values[key]):
                    own.copy_(values[key])
