"""How much room a network takes; what is tied is counted once."""

from itertools import chain

from torch import nn

BYTES_PER_KB = 1024


def count_nonzero(model: nn.Module) -> int:
    """Count the parameters that are not zero."""
    return sum(int(parameter.detach().count_nonzero()) for parameter in model.parameters())


def memory_kb(model: nn.Module) -> float:
    """Give the KB that parameters and buffers take in memory."""
    return sum(tensor.nbytes for tensor in chain(model.parameters(), model.buffers())) / BYTES_PER_KB
