"""Small networks after VGGNet, V(a, b, c, d) of Ooi, Peksi and Gan, Ensemble of pruned low-complexity models (2020)."""

from collections import OrderedDict

import torch
from torch import nn

from topiarist.models.convolutional import SCENES, check, make_network

FILTERS = (12, 16, 20, 24)
LAST_FILTERS, DENSE = 28, 20


def vgg(
    a: int,
    b: int,
    c: int,
    d: int,
    *,
    input_shape: tuple[int, ...] = SCENES,
    classes: int = 3,
    dropout: float = 0.5,
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """Build four blocks of 3 × 3 convolutions with 12, 16, 20 and 24 filters, `a` to `d` of them.

    Each convolution is followed by batch norm and ReLU, each block by a 2 × 2 max-pool, also where it is empty; then
    come a 1 × 1 convolution with 28 filters, a dense layer of 20 and the classes. Padding keeps the size; a direction
    in which one value is left is pooled no more.
    """
    blocks, shape = (a, b, c, d), tuple(int(size) for size in input_shape)
    check(blocks, shape, classes, dropout)
    spec = {"family": "vgg", "a": a, "b": b, "c": c, "d": d, "input_shape": list(shape), "classes": classes}
    return make_network(lambda: make_layers(blocks, shape, classes, dropout), {**spec, "dropout": dropout}, generator)


def make_layers(blocks: tuple[int, ...], shape: tuple[int, ...], classes: int, dropout: float) -> nn.Sequential:
    """Give the layers, named after their block and place."""
    channels, height, width = shape
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    for number, (count, filters) in enumerate(zip(blocks, FILTERS, strict=True)):
        for place in range(count):
            layers |= convolution(f"{number}_{place}", channels, filters, kernel=3)
            channels = filters
        pool = (min(2, height), min(2, width))
        layers[f"pool{number}"] = nn.MaxPool2d(pool)
        height, width = height // pool[0], width // pool[1]
    layers |= convolution("4_0", channels, LAST_FILTERS, kernel=1)
    layers["flatten"] = nn.Flatten()
    layers["dropout0"] = nn.Dropout(dropout)
    layers["dense"] = nn.Linear(LAST_FILTERS * height * width, DENSE)
    layers["dense_norm"] = nn.BatchNorm1d(DENSE)
    layers["dense_activation"] = nn.ReLU()
    layers["dropout1"] = nn.Dropout(dropout)
    layers["output"] = nn.Linear(DENSE, classes)
    return nn.Sequential(layers)


def convolution(name: str, channels: int, filters: int, *, kernel: int) -> OrderedDict[str, nn.Module]:
    """Give a convolution that keeps the size, with batch norm and ReLU."""
    return OrderedDict(
        {
            f"convolution{name}": nn.Conv2d(channels, filters, kernel, padding="same"),
            f"norm{name}": nn.BatchNorm2d(filters),
            f"activation{name}": nn.ReLU(),
        }
    )
