"""Small convolutional networks after VGGNet and Inception.

V(a, b, c, d) and I(p, q, r) of Ooi, Peksi and Gan, Ensemble of pruned low-complexity models (2020).
"""

from collections import OrderedDict
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.models.perceptrons import make_network

SCENES = (1, 48, 467)  # ten seconds at 48 kHz as 48 mel bands
FILTERS, LAST_FILTERS = (12, 16, 20, 24), 28  # of the blocks of V, and of the 1 × 1 convolution after them
STEM, NARROW, WIDE = 16, 16, 32  # filters of the stem of I and of its blocks
DENSE = 20  # units of the hidden layer behind the convolutions, in V and in I

Layers = OrderedDict[str, nn.Module]


def vgg(
    a: int,
    b: int,
    c: int,
    d: int,
    *,
    input_shape: Sequence[int] = SCENES,
    classes: int = 3,
    dropout: float = 0.5,
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """Build four blocks of 3 × 3 convolutions with 12, 16, 20 and 24 filters, each with batch norm and ReLU.

    A 2 × 2 max-pool follows each block, also an empty one; then come a 1 × 1 convolution with 28 filters, a dense layer
    of 20 and the classes. Padding keeps the size; a direction in which one value is left is pooled no more.

    Parameters
    ----------
    a, b, c, d : the number of convolutions in each block
    input_shape : (channels, height, width) of a sample
    classes : the number of logits
    dropout : before and after the dense layer
    generator : what draws the weights; without one, seed 0 is used

    Raises
    ------
    ModelError : where these make no network

    Examples
    --------
    >>> vgg(1, 0, 2, 1, input_shape=(3, 32, 32), classes=10)(torch.zeros(4, 3, 32, 32)).shape
    torch.Size([4, 10])
    """
    blocks, shape = (a, b, c, d), tuple(int(size) for size in input_shape)
    _check(blocks, shape, classes, dropout)
    spec = {"family": "vgg", "a": a, "b": b, "c": c, "d": d, "input_shape": list(shape), "classes": classes}
    return make_network(lambda: _vgg_layers(blocks, shape, classes, dropout), {**spec, "dropout": dropout}, generator)


def inception(
    p: int,
    q: int,
    r: int,
    *,
    input_shape: Sequence[int] = SCENES,
    classes: int = 3,
    dropout: float = 0.5,
    batch_norm: bool = False,
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """Build a stem of convolutions, Inception blocks, a dense layer of 20 and the classes.

    Padding is "same" throughout: a stride of 2 gives half the size, rounded up.

    Parameters
    ----------
    p, q, r : the number of blocks with 16, 32 and 32 filters
    input_shape : (channels, height, width) of a sample
    classes : the number of logits
    dropout : before and after the dense layer
    batch_norm : after each convolution of the blocks, which lets a network that is pruned in few steps recover; as
        published, there is none
    generator : what draws the weights; without one, seed 0 is used

    Raises
    ------
    ModelError : where these make no network

    Examples
    --------
    >>> inception(1, 0, 1, input_shape=(1, 28, 28), classes=10)(torch.zeros(4, 1, 28, 28)).shape
    torch.Size([4, 10])
    """
    blocks, shape = (p, q, r), tuple(int(size) for size in input_shape)
    _check(blocks, shape, classes, dropout)
    spec = {"family": "inception", "p": p, "q": q, "r": r, "input_shape": list(shape), "classes": classes}
    spec |= {"dropout": dropout, **({"batch_norm": True} if batch_norm else {})}
    return make_network(lambda: _inception_layers(blocks, shape, classes, dropout, batch_norm), spec, generator)


class InceptionBlock(nn.Module):
    """Three branches of as many filters: 1 × 1 then 3 × 3, 1 × 1 then 5 × 5, max-pool then 1 × 1."""

    def __init__(self, channels: int, filters: int, *, batch_norm: bool = False) -> None:
        super().__init__()

        def step(channels: int, kernel: int) -> list[nn.Module]:
            convolution = nn.Conv2d(channels, filters, kernel, padding="same")
            return [convolution, *([nn.BatchNorm2d(filters)] if batch_norm else []), nn.ReLU()]

        self.three = nn.Sequential(*step(channels, 1), *step(filters, 3))
        self.five = nn.Sequential(*step(channels, 1), *step(filters, 5))
        self.pooled = nn.Sequential(nn.MaxPool2d(3, stride=1, padding=1), *step(channels, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Return the three branches one after the other (n_samples, 3 · filters, height, width)."""
        return torch.cat([self.three(x), self.five(x), self.pooled(x)], dim=1)


def _vgg_layers(blocks: tuple[int, ...], shape: tuple[int, ...], classes: int, dropout: float) -> Layers:
    channels, height, width = shape
    layers: Layers = OrderedDict()

    def add_convolution(name: str, channels: int, filters: int, kernel: int) -> None:
        layers[f"convolution{name}"] = nn.Conv2d(channels, filters, kernel, padding="same")
        layers[f"norm{name}"] = nn.BatchNorm2d(filters)
        layers[f"activation{name}"] = nn.ReLU()

    for number, (count, filters) in enumerate(zip(blocks, FILTERS, strict=True)):
        for place in range(count):
            add_convolution(f"{number}_{place}", channels, filters, kernel=3)
            channels = filters
        pool = (min(2, height), min(2, width))
        layers[f"pool{number}"] = nn.MaxPool2d(pool)
        height, width = height // pool[0], width // pool[1]
    add_convolution("4_0", channels, LAST_FILTERS, kernel=1)
    return _with_head(layers, LAST_FILTERS * height * width, classes, dropout, batch_norm=True)


def _inception_layers(
    blocks: tuple[int, ...], shape: tuple[int, ...], classes: int, dropout: float, batch_norm: bool
) -> Layers:
    size = shape[1:]  # followed from layer to layer, because what is padded depends on it
    layers: Layers = OrderedDict()

    def add_pool(name: str) -> None:  # of 3 with a stride of 2, padded on both sides if the size is odd
        nonlocal size
        layers[name] = nn.MaxPool2d(3, stride=2, padding=_odd(size), ceil_mode=True)
        size = _halved(size)

    layers["padding"] = nn.ZeroPad2d((*_around(size[1], kernel=7), *_around(size[0], kernel=7)))
    layers["stem0"] = nn.Conv2d(shape[0], STEM, 7, stride=2)
    layers["stem_activation0"] = nn.ReLU()
    size = _halved(size)
    add_pool("pool0")
    layers["norm0"] = nn.BatchNorm2d(STEM)
    for number, kernel in ((1, 1), (2, 3)):
        layers[f"stem{number}"] = nn.Conv2d(STEM, STEM, kernel, padding="same")
        layers[f"stem_activation{number}"] = nn.ReLU()
    layers["norm1"] = nn.BatchNorm2d(STEM)
    add_pool("pool1")
    channels = STEM
    for name, count, filters in zip("pqr", blocks, (NARROW, WIDE, WIDE), strict=True):
        for number in range(count):
            layers[f"{name}{number}"] = InceptionBlock(channels, filters, batch_norm=batch_norm)
            channels = 3 * filters
        if name != "p":
            add_pool(f"pool_{name}")
    layers["average"] = nn.AvgPool2d(3, 2, padding=_odd(size), ceil_mode=True, count_include_pad=False)
    height, width = _halved(size)
    return _with_head(layers, channels * height * width, classes, dropout, batch_norm=False)


def _with_head(layers: Layers, inputs: int, classes: int, dropout: float, *, batch_norm: bool) -> Layers:
    layers["flatten"] = nn.Flatten()
    layers["dropout0"] = nn.Dropout(dropout)
    layers["dense"] = nn.Linear(inputs, DENSE)
    if batch_norm:
        layers["dense_norm"] = nn.BatchNorm1d(DENSE)
    layers["dense_activation"] = nn.ReLU()
    layers["dropout1"] = nn.Dropout(dropout)
    layers["output"] = nn.Linear(DENSE, classes)
    return layers


def _odd(size: tuple[int, ...]) -> tuple[int, int]:
    return size[0] % 2, size[1] % 2


def _halved(size: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(-(-length // 2) for length in size)


def _around(length: int, *, kernel: int) -> tuple[int, int]:
    """Return the padding before and after that lets a kernel with a stride of 2 halve a length, the larger after."""
    total = max((-(-length // 2) - 1) * 2 + kernel - length, 0)
    return total // 2, total - total // 2


def _check(blocks: Sequence[int], input_shape: Sequence[int], classes: int, dropout: float) -> None:
    if min(blocks) < 0:
        raise ModelError(f"the blocks have 0 or more layers each; found {tuple(blocks)}")
    if len(input_shape) != 3 or min(input_shape) < 1:
        raise ModelError(f"a convolutional network reads samples (channels, height, width); found {tuple(input_shape)}")
    if classes < 1:
        raise ModelError(f"a network has at least 1 class; found {classes}")
    if not 0 <= dropout < 1:
        raise ModelError(f"dropout must be at least 0 and below 1; found {dropout}")
