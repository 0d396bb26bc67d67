"""Small networks after Inception, I(p, q, r) of Ooi, Peksi and Gan, Ensemble of pruned low-complexity models (2020)."""

from collections import OrderedDict

import torch
from torch import Tensor, nn

from topiarist.models.convolutional import SCENES, check, make_network

STEM, NARROW, WIDE, DENSE = 16, 16, 32, 20


class InceptionBlock(nn.Module):
    """Three ways side by side, each with as many filters: 1 × 1 then 3 × 3, 1 × 1 then 5 × 5, max-pool then 1 × 1."""

    def __init__(self, channels: int, filters: int, *, batch_norm: bool = False) -> None:
        super().__init__()
        make = normed_step if batch_norm else step
        self.three = nn.Sequential(*make(channels, filters, 1), *make(filters, filters, 3))
        self.five = nn.Sequential(*make(channels, filters, 1), *make(filters, filters, 5))
        self.pooled = nn.Sequential(nn.MaxPool2d(3, stride=1, padding=1), *make(channels, filters, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Give the three ways one after the other (n_samples, 3 · filters, height, width)."""
        return torch.cat([self.three(x), self.five(x), self.pooled(x)], dim=1)


def inception(
    p: int,
    q: int,
    r: int,
    *,
    input_shape: tuple[int, ...] = SCENES,
    classes: int = 3,
    dropout: float = 0.5,
    batch_norm: bool = False,
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """Build a stem of convolutions, `p` blocks of 16 filters, `q` and `r` of 32, a dense layer of 20 and the classes.

    Padding is "same" throughout: a step of 2 gives half the size, rounded up. As published, there is no batch norm in
    the blocks; with `batch_norm`, one follows each of their convolutions, which lets a network that is pruned in few
    steps recover.
    """
    blocks, shape = (p, q, r), tuple(int(size) for size in input_shape)
    check(blocks, shape, classes, dropout)
    spec = {"family": "inception", "p": p, "q": q, "r": r, "input_shape": list(shape), "classes": classes}
    spec |= {"dropout": dropout, **({"batch_norm": True} if batch_norm else {})}
    return make_network(lambda: make_layers(blocks, shape, classes, dropout, batch_norm), spec, generator)


def make_layers(
    blocks: tuple[int, ...], shape: tuple[int, ...], classes: int, dropout: float, batch_norm: bool
) -> nn.Sequential:
    """Give the layers by name; the size is followed, because what is padded depends on it."""
    size = shape[1:]
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    layers["padding"] = nn.ZeroPad2d((*around(size[1], kernel=7), *around(size[0], kernel=7)))
    layers["stem0"] = nn.Conv2d(shape[0], STEM, 7, stride=2)
    layers["stem_activation0"] = nn.ReLU()
    size = halved(size)
    layers["pool0"], size = max_pool(size), halved(size)
    layers["norm0"] = nn.BatchNorm2d(STEM)
    for number, kernel in ((1, 1), (2, 3)):
        layers[f"stem{number}"], layers[f"stem_activation{number}"] = step(STEM, STEM, kernel)
    layers["norm1"] = nn.BatchNorm2d(STEM)
    layers["pool1"], size = max_pool(size), halved(size)
    channels = STEM
    for name, count, filters in zip("pqr", blocks, (NARROW, WIDE, WIDE), strict=True):
        for number in range(count):
            layers[f"{name}{number}"] = InceptionBlock(channels, filters, batch_norm=batch_norm)
            channels = 3 * filters
        if name != "p":
            layers[f"pool_{name}"], size = max_pool(size), halved(size)
    layers["average"] = nn.AvgPool2d(3, 2, padding=odd(size), ceil_mode=True, count_include_pad=False)
    size = halved(size)
    layers["flatten"] = nn.Flatten()
    layers["dropout0"] = nn.Dropout(dropout)
    layers["dense"] = nn.Linear(channels * size[0] * size[1], DENSE)
    layers["dense_activation"] = nn.ReLU()
    layers["dropout1"] = nn.Dropout(dropout)
    layers["output"] = nn.Linear(DENSE, classes)
    return nn.Sequential(layers)


def step(channels: int, filters: int, kernel: int) -> tuple[nn.Conv2d, nn.ReLU]:
    """Give a convolution that keeps the size, and ReLU."""
    return nn.Conv2d(channels, filters, kernel, padding="same"), nn.ReLU()


def normed_step(channels: int, filters: int, kernel: int) -> tuple[nn.Conv2d, nn.BatchNorm2d, nn.ReLU]:
    """Return a convolution that keeps the size, batch norm and ReLU."""
    convolution, activation = step(channels, filters, kernel)
    return convolution, nn.BatchNorm2d(filters), activation


def max_pool(size: tuple[int, ...]) -> nn.MaxPool2d:
    """Give the pool of 3 with a step of 2 that halves a size: padded on both sides if odd, after it if even."""
    return nn.MaxPool2d(3, stride=2, padding=odd(size), ceil_mode=True)


def odd(size: tuple[int, ...]) -> tuple[int, int]:
    """Give how much a pool of 3 with a step of 2 is padded on either side; the last window may stand out beyond."""
    return size[0] % 2, size[1] % 2


def halved(size: tuple[int, ...]) -> tuple[int, ...]:
    """Give the size after a step of 2."""
    return tuple(-(-length // 2) for length in size)


def around(length: int, *, kernel: int) -> tuple[int, int]:
    """Give the padding before and after that lets a kernel with a step of 2 halve a length, the larger half after."""
    total = max((-(-length // 2) - 1) * 2 + kernel - length, 0)
    return total // 2, total - total // 2
