"""How many numbers the paper's networks have on its input, 48 bands × 467 frames and 3 classes: built and counted.

Counted are weights, biases and the scale, shift, mean and variance of batch norm. Ours are pruned so that the zeros of
all kernels together are the rounded total; the paper does not say how it rounds, and rounding every kernel for itself
differs by a few weights.
"""

from functools import cache

from torch import nn

from topiarist.measurement.footprint import BYTES_PER_KB
from topiarist.models import ModelSettings, build_network
from topiarist.models.evaluation import kernels_of
from topiarist.surgery.choice.weights import removed_counts

PAPER_SHAPE, PAPER_CLASSES = (1, 48, 467), 3
SPARSITY = 0.8  # s_f of the paper, section 4
BYTES_PER_NUMBER = 4


@cache
def paper_network(family: str, blocks: tuple[int, ...]) -> nn.Module:
    """Build a network for the paper's input."""
    settings = ModelSettings.model_validate({"family": family, "blocks": blocks})
    return build_network(settings, input_shape=PAPER_SHAPE, classes=PAPER_CLASSES)


def numbers_of(family: str, blocks: tuple[int, ...]) -> int:
    """Count the numbers of a network for the paper's input."""
    return sum(
        value.numel() for value in paper_network(family, blocks).state_dict().values() if value.is_floating_point()
    )


def pruned_numbers_of(family: str, blocks: tuple[int, ...]) -> int:
    """Count what is left of them after pruning as `train` does it."""
    sizes = {name: kernel.numel() for name, kernel in kernels_of(paper_network(family, blocks)).items()}
    return numbers_of(family, blocks) - sum(removed_counts(sizes, SPARSITY).values())


def rounded_numbers_of(family: str, blocks: tuple[int, ...]) -> int:
    """Count what is left of them where every kernel keeps size − round(0.8 · size) of its weights."""
    kernels = kernels_of(paper_network(family, blocks)).values()
    return numbers_of(family, blocks) - sum(round(SPARSITY * kernel.numel()) for kernel in kernels)


def kernels_in(family: str, blocks: tuple[int, ...]) -> int:
    """Count the kernels of a network: as many numbers may two ways of rounding differ by."""
    return len(kernels_of(paper_network(family, blocks)))


def kilobytes(numbers: int) -> float:
    """Return the KB of so many numbers of 32 bits, as the paper counts them."""
    return numbers * BYTES_PER_NUMBER / BYTES_PER_KB
