"""Small networks of every shape that surgery meets, in float64 and evaluation mode, with nothing left at its default.

`NETWORKS[name](seed)` gives a network and an example input; equal seeds give equal networks.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from tests.modern_networks import (
    EinsumNetwork,
    EncoderNetwork,
    FusedNetwork,
    RecurrentNetwork,
    TiedNetwork,
    UNet,
    WeightNormed,
)
from topiarist.randomness import isolated


class ResidualNetwork(nn.Module):
    """A residual block, then a depthwise-separable branch that is concatenated to its own input."""

    def __init__(self, width: int = 6, hidden: int = 5, branch: int = 4) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.stem_norm = nn.BatchNorm2d(width)
        self.first = nn.Conv2d(width, hidden, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(hidden)
        self.second = nn.Conv2d(hidden, width, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(width)
        self.depthwise = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.pointwise = nn.Conv2d(width, branch, 1)
        self.pointwise_norm = nn.BatchNorm2d(branch)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(width + branch, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.stem_norm(self.stem(x)))
        inner = functional.relu(self.first_norm(self.first(x)))
        x = functional.relu(x + self.second_norm(self.second(inner)))
        branch = functional.relu(self.pointwise_norm(self.pointwise(self.depthwise(x))))
        joined = torch.cat([x, branch], dim=1)
        given: Tensor = self.head(self.pool(joined).flatten(1))
        return given


class InceptionNetwork(nn.Module):
    """Three branches of different widths, concatenated and flattened before a linear layer."""

    def __init__(self, width: int = 5, reduced: int = 3, narrow: int = 4, wide: int = 2, pooled: int = 3) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.narrow_reduce = nn.Conv2d(width, reduced, 1)
        self.narrow = nn.Conv2d(reduced, narrow, 3, padding=1)
        self.wide_reduce = nn.Conv2d(width, reduced, 1)
        self.wide = nn.Conv2d(reduced, wide, 5, padding=2)
        self.pool = nn.MaxPool2d(3, stride=1, padding=1)
        self.pooled = nn.Conv2d(width, pooled, 1)
        self.head = nn.Linear((narrow + wide + pooled) * 9, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.stem(x))
        narrow = torch.relu(self.narrow(torch.relu(self.narrow_reduce(x))))
        wide = torch.relu(self.wide(torch.relu(self.wide_reduce(x))))
        pooled = torch.relu(self.pooled(self.pool(x)))
        x = torch.cat((narrow, wide, pooled), 1)
        x = x.view(x.size(0), -1)
        given: Tensor = self.head(x)
        return given


class CascadeNetwork(nn.Module):
    """A multilayer perceptron whose every layer reads the one before it and the network's input."""

    def __init__(self, widths: Sequence[int] = (6, 5, 4), inputs: int = 3) -> None:
        super().__init__()
        before = [inputs, *(width + inputs for width in widths)]
        self.layers = nn.ModuleList(nn.Linear(read, width) for read, width in zip(before, widths, strict=False))
        self.head = nn.Linear(before[-1], 2)

    def forward(self, x: Tensor) -> Tensor:
        h = x
        for layer in self.layers:
            h = torch.cat([torch.tanh(layer(h)), x], dim=1)
        given: Tensor = self.head(h)
        return given


class SqueezeAndExcite(nn.Module):
    """A weight for each channel, made of the means of all channels."""

    def __init__(self, width: int, squeezed: int) -> None:
        super().__init__()
        self.squeeze = nn.Linear(width, squeezed)
        self.excite = nn.Linear(squeezed, width)

    def forward(self, x: Tensor) -> Tensor:
        weights = torch.sigmoid(self.excite(torch.relu(self.squeeze(x.mean(dim=(2, 3))))))
        return x * weights.unsqueeze(-1).unsqueeze(-1)


class GatedNetwork(nn.Module):
    """Slopes for each channel, a squeeze-and-excite gate, a gated linear unit and a scale for each channel."""

    def __init__(self, width: int = 6, squeezed: int = 3, gated: int = 4) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.slopes = nn.PReLU(width)
        self.gate = SqueezeAndExcite(width, squeezed)
        self.expand = nn.Conv2d(width, 2 * gated, 1)
        self.project = nn.Conv2d(gated, width, 1)
        self.scale = nn.Parameter(torch.rand(width, 1, 1) + 0.5)
        self.head = nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.gate(self.slopes(self.stem(x)))
        values, gates = self.expand(x).chunk(2, dim=1)
        x = x + self.scale * self.project(values * torch.sigmoid(gates))
        given: Tensor = self.head(x.mean(dim=(2, 3)))
        return given


class GroupedNetwork(nn.Module):
    """A convolution and normalisations in groups of several channels, on images."""

    def __init__(self, width: int = 8, groups: int = 4, mixed: int = 6) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.grouped = nn.Conv2d(width, 3 * groups, 3, padding=1, groups=groups)
        self.group_norm = nn.GroupNorm(groups, 3 * groups)
        self.mix = nn.Conv2d(3 * groups, mixed, 1)
        self.mix_norm = nn.GroupNorm(2, mixed)
        self.head = nn.Linear(mixed, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.group_norm(self.grouped(functional.relu(self.stem(x)))))
        x = functional.silu(self.mix_norm(self.mix(x)))
        given: Tensor = self.head(x.mean((2, 3)))
        return given


class GroupedSequence(nn.Module):
    """A convolution in groups and one channel by channel, on sequences."""

    def __init__(self, width: int = 6, groups: int = 3, mixed: int = 5) -> None:
        super().__init__()
        self.stem = nn.Conv1d(2, width, 3, padding=1)
        self.grouped = nn.Conv1d(width, width, 3, padding=1, groups=groups)
        self.mix = nn.Conv1d(width, mixed, 1)
        self.norm = nn.BatchNorm1d(mixed)
        self.depthwise = nn.Conv1d(mixed, mixed, 5, padding=2, groups=mixed)
        self.channel_norm = nn.GroupNorm(mixed, mixed)
        self.pool = nn.AdaptiveMaxPool1d(2)
        self.flatten = nn.Flatten()
        self.head = nn.Linear(2 * mixed, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.grouped(torch.relu(self.stem(x))))
        x = self.channel_norm(self.depthwise(torch.relu(self.norm(self.mix(x)))))
        given: Tensor = self.head(self.flatten(self.pool(x)))
        return given


class InputResidual(nn.Module):
    """A residual around the first convolutions, to the network's input."""

    def __init__(self, hidden: int = 5, channels: int = 3, width: int = 4) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, hidden, 3, padding=1)
        self.second = nn.Conv2d(hidden, channels, 3, padding=1)
        self.third = nn.Conv2d(channels, width, 3, padding=1)
        self.head = nn.Linear(width, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.second(torch.relu(self.first(x)))
        given: Tensor = self.head(torch.relu(self.third(torch.relu(x))).mean((2, 3)))
        return given


class TwoInputsTwoOutputs(nn.Module):
    """An image and a table row come together; a class and a number come out."""

    def __init__(self, channels: int = 4, hidden: int = 5, shared: int = 6) -> None:
        super().__init__()
        self.look = nn.Conv2d(3, channels, 3, padding=1)
        self.read = nn.Linear(7, hidden)
        self.shared = nn.Linear(channels + hidden, shared)
        self.kind = nn.Linear(shared, 3)
        self.number = nn.Linear(shared, 1)

    def forward(self, image: Tensor, row: Tensor) -> dict[str, Tensor]:
        seen = torch.relu(self.look(image)).mean((2, 3))
        told = torch.relu(self.read(row))
        joined = torch.relu(self.shared(torch.cat([seen, told], dim=1)))
        return {"kind": self.kind(joined), "number": self.number(joined)}


class SharedLayer(nn.Module):
    """One linear layer that is applied twice."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.stem = nn.Linear(4, width)
        self.shared = nn.Linear(width, width)
        self.head = nn.Linear(width, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.stem(x))
        for _ in range(2):
            h = torch.relu(self.shared(h))
        given: Tensor = self.head(h)
        return given


class FrozenNetwork(nn.Module):
    """A pretrained trunk that is not trained any more, and a head that is."""

    def __init__(self, width: int = 5, wider: int = 7, hidden: int = 6) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, wider, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )
        self.trunk.requires_grad_(False)
        self.hidden = nn.Linear(4 * wider, hidden)
        self.head = nn.Linear(hidden, 3)

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.head(torch.relu(self.hidden(self.trunk(x))))
        return given


class NormedNetwork(nn.Module):
    """A multilayer perceptron with a layer normalisation, which mixes the units of its layer."""

    def __init__(self, normed: int = 6, hidden: int = 5) -> None:
        super().__init__()
        self.stem = nn.Linear(4, normed)
        self.norm = nn.LayerNorm(normed)
        self.hidden = nn.Linear(normed, hidden)
        self.head = nn.Linear(hidden, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.norm(self.stem(x)))
        given: Tensor = self.head(torch.relu(self.hidden(h)))
        return given


class BasicBlock(nn.Module):
    """Two convolutions beside a shortcut, which is a convolution where the shape changes (He et al., 2016)."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Sequential()
        if stride != 1 or channels != width:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        given = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        given += self.shortcut(x)
        summed: Tensor = self.relu(given)
        return summed


class ResNet18(nn.Module):
    """The residual network of 18 layers for small images: 11 million parameters at a width of 64."""

    def __init__(self, width: int = 64, classes: int = 10) -> None:
        super().__init__()
        widths = [width, 2 * width, 4 * width, 8 * width]
        self.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.layers = nn.Sequential(
            *(
                nn.Sequential(BasicBlock(before, after, 1 if before == after else 2), BasicBlock(after, after, 1))
                for before, after in zip([width, *widths[:-1]], widths, strict=True)
            )
        )
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(widths[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layers(torch.relu(self.bn1(self.conv1(x))))
        given: Tensor = self.fc(torch.flatten(self.pool(x), 1))
        return given


@torch.no_grad()
def randomise(model: nn.Module) -> None:
    """Move normalisations and slopes away from their defaults, with which many a wrong cut goes unseen."""
    for module in model.modules():
        if isinstance(module, (_BatchNorm, nn.GroupNorm, nn.LayerNorm)):
            module.weight.uniform_(0.5, 1.5)
            module.bias.normal_(std=0.3)
        if isinstance(module, _BatchNorm) and module.running_mean is not None and module.running_var is not None:
            module.running_mean.normal_(std=0.3)
            module.running_var.uniform_(0.5, 2.0)
        if isinstance(module, nn.PReLU):
            module.weight.uniform_(0.1, 0.5)


def built(make: Callable[[], nn.Module], *shapes: tuple[int, ...], seed: int) -> tuple[nn.Module, Any]:
    """Make a network and its example inputs: one tensor, or a tuple where the network takes several."""
    with isolated(seed):
        model = make()
        randomise(model)
        inputs = tuple(torch.randn(shape, dtype=torch.float64) for shape in shapes)
    return model.double().eval(), inputs if len(inputs) > 1 else inputs[0]


def built_for_words(make: Callable[[], nn.Module], words: int, *shape: int, seed: int) -> tuple[nn.Module, Any]:
    """Make a network and an example input of whole numbers."""
    model, _ = built(make, (1,), seed=seed)
    with isolated(seed):
        return model, torch.randint(0, words, shape)


Factory = Callable[[int], tuple[nn.Module, Any]]

NETWORKS: dict[str, Factory] = {
    "residual": lambda seed: built(ResidualNetwork, (2, 3, 6, 6), seed=seed),
    "inception": lambda seed: built(InceptionNetwork, (2, 3, 6, 6), seed=seed),
    "cascade": lambda seed: built(CascadeNetwork, (4, 3), seed=seed),
    "gated": lambda seed: built(GatedNetwork, (2, 3, 5, 5), seed=seed),
    "grouped": lambda seed: built(GroupedNetwork, (2, 3, 5, 5), seed=seed),
    "grouped sequence": lambda seed: built(GroupedSequence, (2, 2, 9), seed=seed),
    "input residual": lambda seed: built(InputResidual, (2, 3, 5, 5), seed=seed),
    "two inputs": lambda seed: built(TwoInputsTwoOutputs, (2, 3, 5, 5), (2, 7), seed=seed),
    "shared layer": lambda seed: built(SharedLayer, (4, 4), seed=seed),
    "frozen": lambda seed: built(FrozenNetwork, (2, 3, 6, 6), seed=seed),
    "normed": lambda seed: built(NormedNetwork, (4, 4), seed=seed),
    "encoder": lambda seed: built(EncoderNetwork, (2, 5, 4), seed=seed),
    "fused attention": lambda seed: built(FusedNetwork, (2, 5, 4), seed=seed),
    "einsum attention": lambda seed: built(EinsumNetwork, (2, 5, 4), seed=seed),
    "lstm": lambda seed: built(lambda: RecurrentNetwork(nn.LSTM), (2, 7, 4), seed=seed),
    "gru": lambda seed: built(lambda: RecurrentNetwork(nn.GRU, depth=2, both=True), (2, 7, 4), seed=seed),
    "u-net": lambda seed: built(UNet, (2, 2, 8, 8), seed=seed),
    "weight norm": lambda seed: built(WeightNormed, (4, 4), seed=seed),
    "tied words": lambda seed: built_for_words(TiedNetwork, 11, 3, 7, seed=seed),
    "resnet18": lambda seed: built(ResNet18, (2, 3, 32, 32), seed=seed),
}


def outputs(model: nn.Module, example_input: Any) -> list[Tensor]:
    """Return the outputs of a network for an example input, in order."""
    with torch.no_grad():
        if isinstance(example_input, Tensor):
            given = model(example_input)
        elif isinstance(example_input, dict):
            given = model(**example_input)
        else:
            given = model(*example_input)
    if isinstance(given, Tensor):
        return [given]
    return list(given.values() if isinstance(given, dict) else given)
