"""How good a network is with some of its units only, for many choices at once, where the last layer reads the units.

The logits are Σ_u mask_u h_u W_u + b. The margin of a sample's own class r over another class o is linear in the mask,
Σ_u mask_u h_u (W_ru − W_ou) + b_r − b_o, so what each unit adds to each margin is computed once, and the margins of all
masks are matrix products. An answer is right where no other class has a higher logit, and none with a lower number an
equal one, as argmax would have it.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from topiarist.errors import ModelError
from topiarist.threads import torch_threads

BLOCK_COLUMNS = 4096
BLOCK_MASKS = 128
MULTIPLE = 16
MOST_BYTES = 2**29
Bits = NDArray[numpy.bool_]
Floats = NDArray[numpy.float64]
Integers = NDArray[numpy.intp]


@dataclass(frozen=True)
class MarginBlock:
    """What the units of a network add to the margins of some samples over each other class.

    `contributions` is (n_units, n_others · n_samples), and `thresholds` (n_others · n_samples,) is what the sum of
    contributions must reach for the answer to be right. The number of samples is filled up to a multiple of 16, for
    speed, with samples that are never right.
    """

    contributions: Tensor
    thresholds: NDArray[numpy.floating]
    n_others: int


class ReadoutNetwork:
    """One network, units first: `hidden` (n_units, n_samples), `weights` (n_units, n_classes), `bias`, `labels`."""

    def __init__(self, hidden: Tensor, weights: Tensor, bias: Tensor, labels: Tensor, dtype: torch.dtype) -> None:
        check_shapes(hidden, weights, bias, labels)
        self.hidden, self.weights, self.bias = (
            tensor.detach().to("cpu", dtype).contiguous() for tensor in (hidden.mT, weights.mT, bias)
        )
        self.labels = labels.to("cpu", torch.long)
        self.factor_dtype = torch.empty(0, dtype=dtype).numpy().dtype
        self.n_samples, self.n_units = hidden.shape
        self.n_bytes = self.n_samples * self.n_units * (len(bias) - 1) * dtype.itemsize

    def blocks(self) -> Iterator[MarginBlock]:
        """Make the blocks, one after the other."""
        columns = BLOCK_COLUMNS // (len(self.bias) - 1)
        samples = max(MULTIPLE, columns - columns % MULTIPLE)
        for start in range(0, self.n_samples, samples):
            yield self.block(self.hidden[:, start : start + samples], self.labels[start : start + samples])

    def block(self, hidden: Tensor, labels: Tensor) -> MarginBlock:
        """Make the block of some samples, `hidden` (n_units, n_samples).

        The n-th of the other classes is class n where that is below a sample's own class, else class n + 1.
        """
        numbers = torch.arange(len(self.bias) - 1)[:, None]
        below = numbers < labels
        others = torch.where(below, numbers, numbers + 1)
        padding = (0, -len(labels) % MULTIPLE)
        bias = self.bias[labels] - self.bias[others]
        thresholds = torch.where(below, next_above(-bias), -bias)
        own, other = (self.weights.index_select(1, classes.flatten()) for classes in (labels, others))
        contributions = own[:, None] - other.view(len(other), *others.shape)
        contributions *= hidden[:, None]
        return MarginBlock(
            contributions=pad(contributions, padding).flatten(1),
            thresholds=pad(thresholds, padding, value=torch.inf).flatten().numpy(),
            n_others=len(numbers),
        )

    def as_factors(self, masks: Bits) -> Tensor:
        """Return masks as a tensor of zeros and ones."""
        if masks.shape[1:] != (self.n_units,):
            raise ModelError(f"masks must have a bit for each of {self.n_units} units; found shape {masks.shape}")
        return torch.from_numpy(masks.astype(self.factor_dtype))


class Readout:
    """Networks, such as those of folds, with the activations of the units that their last layers read.

    Of each network: `hidden` (n_samples, n_units), `weights` (n_classes, n_units), `bias` (n_classes,) and `labels`
    (n_samples,); as tensors with one more dimension, or as lists where networks differ in their number of samples.
    """

    def __init__(
        self,
        hidden: Tensor | Sequence[Tensor],
        weights: Tensor | Sequence[Tensor],
        bias: Tensor | Sequence[Tensor],
        labels: Tensor | Sequence[Tensor],
        *,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        counts = [len(hidden), len(weights), len(bias), len(labels)]
        if len(set(counts)) > 1:
            raise ModelError(f"hidden, weights, bias and labels must be of as many networks each; found {counts}")
        self.networks = [ReadoutNetwork(*parts, dtype) for parts in zip(hidden, weights, bias, labels, strict=True)]
        self.sizes = numpy.array([network.n_samples for network in self.networks])
        bytes_kept = sum(network.n_bytes for network in self.networks)
        self.blocks = [list(network.blocks()) for network in self.networks] if bytes_kept <= MOST_BYTES else None

    def right(self, networks: Integers, masks: Bits) -> Integers:
        """Count right answers (n,) of networks, their numbers (n,) ascending, cut to masks (n, n_units)."""
        check_ascending(networks)
        counts = numpy.zeros(len(masks), dtype=numpy.intp)
        with one_thread():
            for network, rows in pieces(networks):
                mask = self.networks[network].as_factors(masks[rows])
                for block in self.blocks_of(network):
                    counts[rows] += right_in(block, mask)
        return counts

    def accuracy(self, networks: Integers, masks: Bits) -> Floats:
        """Return the percentage (n,) of right answers; the arguments are those of `right`."""
        shares: Floats = 100.0 * self.right(networks, masks) / self.sizes.take(networks)
        return shares

    def blocks_of(self, network: int) -> "Iterator[MarginBlock] | list[MarginBlock]":
        """Return the blocks of a network: kept, or made anew where they would take too much memory."""
        return self.networks[network].blocks() if self.blocks is None else self.blocks[network]


def one_thread() -> AbstractContextManager[None]:
    """Let torch use one thread; products this small gain nothing by more, and setting the number takes long."""
    return nullcontext() if torch.get_num_threads() == 1 else torch_threads(1)


def right_in(block: MarginBlock, masks: Tensor) -> Integers:
    """Count the right answers (n_masks,) among the samples of a block."""
    if len(masks) > BLOCK_MASKS:
        return numpy.concatenate([right_in(block, part) for part in torch.split(masks, BLOCK_MASKS)])
    reached = numpy.greater_equal(torch.mm(masks, block.contributions).numpy(), block.thresholds)
    # eight flags at a time, as 64 bits
    flags = reached.view(numpy.uint64).reshape(len(masks), block.n_others, -1)
    counts: Integers = numpy.bitwise_count(numpy.bitwise_and.reduce(flags, axis=1)).sum(axis=1, dtype=numpy.intp)
    return counts


def pieces(networks: Integers) -> Iterator[tuple[int, slice]]:
    """Yield each network's number and its rows; the numbers must ascend."""
    numbers = networks.tolist()
    start = 0
    while start < len(numbers):
        end = bisect_right(numbers, numbers[start], lo=start)
        yield numbers[start], slice(start, end)
        start = end


def check_ascending(numbers: Integers) -> None:
    """Refuse numbers of networks in another order."""
    if (numbers[1:] < numbers[:-1]).any():
        raise ModelError(f"the networks' numbers must ascend; found {numbers.tolist()[:10]} …")


def next_above(values: Tensor) -> Tensor:
    """Return the next larger numbers; above 0, the smallest that no processor takes for 0."""
    smallest = torch.finfo(values.dtype).tiny
    return torch.where(values == 0, smallest, torch.nextafter(values, values.new_tensor(torch.inf)))


def check_shapes(hidden: Tensor, weights: Tensor, bias: Tensor, labels: Tensor) -> None:
    """Refuse tensors that do not belong together."""
    found = f"hidden {tuple(hidden.shape)}, weights {tuple(weights.shape)}, bias {tuple(bias.shape)}"
    n_classes = len(weights)
    if hidden.ndim != 2 or weights.shape[1:] != hidden.shape[1:] or bias.shape != (n_classes,):
        raise ModelError(f"hidden, weights and bias must be samples by units, classes by units, classes; found {found}")
    if labels.shape != hidden.shape[:1] or not len(hidden):
        raise ModelError(f"each sample needs a label; found {len(hidden)} samples and labels {tuple(labels.shape)}")
    if n_classes < 2 or not 0 <= int(labels.min()) <= int(labels.max()) < n_classes:
        raise ModelError(f"labels must be numbers of at least 2 classes; found {n_classes} classes")
    if not all(bool(torch.isfinite(tensor).all()) for tensor in (hidden, weights, bias)):
        raise ModelError("hidden, weights and bias must be finite")
