"""Convolutional classifiers: dense and residual connections, gates, shuffles, masks, norms of weights."""
# ruff: noqa: D102
# mypy: disable-error-code="no-any-return,no-untyped-call"

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import prune
from torch.nn.utils.parametrizations import spectral_norm

from benchmarks.zoo.catalogue import Made
from benchmarks.zoo.own.collected import CATALOGUE


class LeNet(nn.Module):
    """LeNet as in torch's tutorial, with a number in `view`."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(16 * 4 * 4, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        x = x.view(-1, 16 * 4 * 4)
        x = functional.relu(self.fc1(x))
        return self.fc3(functional.relu(self.fc2(x)))


@CATALOGUE.add
def lenet_literal() -> Made:
    """Return LeNet, whose code names the number of features."""
    return LeNet(), torch.randn(3, 1, 28, 28)


class BasicBlock(nn.Module):
    """Two convolutions and a shortcut, added in place."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        out += x if self.shortcut is None else self.shortcut(x)
        return functional.relu(out)


@CATALOGUE.add
def residual() -> Made:
    """Return a residual network."""
    stem = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    blocks = [BasicBlock(16, 16, 1), BasicBlock(16, 32, 2), BasicBlock(32, 32, 1)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 5)), torch.randn(
        3, 3, 12, 12
    )


class DenseNetwork(nn.Module):
    """Layers that read all layers before them (Huang et al., DenseNet, 2017)."""

    def __init__(self, first: int = 12, growth: int = 8, layers: int = 4, classes: int = 5) -> None:
        super().__init__()
        self.conv0 = nn.Conv2d(3, first, 3, padding=1)
        widths = [first + growth * layer for layer in range(layers)]
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for width in widths)
        self.convs = nn.ModuleList(nn.Conv2d(width, growth, 3, padding=1) for width in widths)
        self.transition = nn.Conv2d(first + growth * layers, 24, 1)
        self.classifier = nn.Linear(24, classes)

    def forward(self, x: Tensor) -> Tensor:
        features = [self.conv0(x)]
        for norm, conv in zip(self.norms, self.convs, strict=True):
            features.append(conv(functional.relu(norm(torch.cat(features, 1)))))
        x = functional.avg_pool2d(functional.relu(self.transition(torch.cat(features, 1))), 2)
        return self.classifier(functional.adaptive_avg_pool2d(x, (1, 1)).flatten(1))


@CATALOGUE.add
def dense_connections() -> Made:
    """Return a network with dense connections."""
    return DenseNetwork(), torch.randn(3, 3, 8, 8)


class SqueezeExcite(nn.Module):
    """A gate for each channel (Hu et al., 2018)."""

    def __init__(self, channels: int, reduction: int = 4) -> None:
        super().__init__()
        self.fc = nn.Sequential(
            nn.Linear(channels, channels // reduction, bias=False),
            nn.ReLU(inplace=True),
            nn.Linear(channels // reduction, channels, bias=False),
            nn.Sigmoid(),
        )
        self.avg_pool = nn.AdaptiveAvgPool2d(1)

    def forward(self, x: Tensor) -> Tensor:
        b, c, _, _ = x.size()
        y = self.avg_pool(x).view(b, c)
        y = self.fc(y).view(b, c, 1, 1)
        return x * y.expand_as(x)


class InvertedBottleneck(nn.Module):
    """Expand, depthwise, squeeze and excite, project: the block of MobileNetV3 and EfficientNet."""

    def __init__(self, width: int, expansion: int = 3) -> None:
        super().__init__()
        inner = width * expansion
        self.expand = nn.Sequential(nn.Conv2d(width, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.Hardswish())
        self.depthwise = nn.Sequential(
            nn.Conv2d(inner, inner, 5, padding=2, groups=inner, bias=False), nn.BatchNorm2d(inner), nn.Hardswish()
        )
        self.gate = SqueezeExcite(inner)
        self.project = nn.Sequential(nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.project(self.gate(self.depthwise(self.expand(x))))


@CATALOGUE.add
def squeeze_excite() -> Made:
    """Return inverted bottlenecks with squeeze and excite."""
    blocks = [nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), InvertedBottleneck(16), InvertedBottleneck(16)]
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)), torch.randn(3, 3, 12, 12)


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """Interleave the channels of groups."""
    batch, channels, height, width = x.size()
    x = x.view(batch, groups, channels // groups, height, width)
    return torch.transpose(x, 1, 2).contiguous().view(batch, -1, height, width)


class ShuffleUnit(nn.Module):
    """Half of the channels pass, half are computed, then both are shuffled (Ma et al., ShuffleNet V2, 2018)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.branch = nn.Sequential(
            nn.Conv2d(half, half, 1, bias=False),
            nn.BatchNorm2d(half),
            nn.ReLU(),
            nn.Conv2d(half, half, 3, padding=1, groups=half, bias=False),
            nn.BatchNorm2d(half),
            nn.Conv2d(half, half, 1, bias=False),
            nn.BatchNorm2d(half),
            nn.ReLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        x1, x2 = x.chunk(2, dim=1)
        return channel_shuffle(torch.cat((x1, self.branch(x2)), dim=1), 2)


@CATALOGUE.add
def shuffle_units() -> Made:
    """Return a network with channel shuffles."""
    layers = [nn.Conv2d(3, 24, 3, padding=1), nn.ReLU(), ShuffleUnit(24), ShuffleUnit(24), nn.Conv2d(24, 48, 1)]
    return nn.Sequential(*layers, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 5)), torch.randn(
        3, 3, 8, 8
    )


@CATALOGUE.add
def grouped_convolutions() -> Made:
    """Return grouped and depthwise convolutions with group norm and a transposed convolution."""
    layers = [nn.Conv2d(3, 16, 3), nn.Conv2d(16, 16, 3, groups=16), nn.GroupNorm(4, 16), nn.ReLU6()]
    more = [nn.Conv2d(16, 24, 1, groups=4), nn.Hardswish(), nn.ConvTranspose2d(24, 10, 2), nn.ELU()]
    return nn.Sequential(*layers, *more, nn.Flatten(), nn.Linear(250, 4)), torch.randn(3, 3, 8, 8)


@CATALOGUE.add
def spectral_norm_critic() -> Made:
    """Return the critic of a GAN with spectral norm (a parametrization)."""
    layers = [spectral_norm(nn.Conv2d(3, 16, 4, 2, 1)), nn.LeakyReLU(0.2)]
    layers += [spectral_norm(nn.Conv2d(16, 32, 4, 2, 1)), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Flatten(), spectral_norm(nn.Linear(32 * 16, 1))), torch.randn(3, 3, 16, 16)


@CATALOGUE.add
def pruned_by_masks() -> Made:
    """Return a network whose weights are masked by `torch.nn.utils.prune`."""
    first, second, head = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 24, 3, padding=1), nn.Linear(24, 5)
    prune.ln_structured(first, "weight", amount=0.25, n=2, dim=0)
    prune.l1_unstructured(second, "weight", amount=0.5)
    layers = [first, nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), second, nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head), torch.randn(3, 3, 8, 8)


class TwoPaths(nn.Module):
    """Inception branches, max pooling, and weights that standardise themselves."""

    def __init__(self, classes: int = 5) -> None:
        super().__init__()
        self.branch1 = nn.Conv2d(3, 12, 1)
        self.branch3 = nn.Sequential(nn.Conv2d(3, 8, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, padding=1))
        self.pooled = nn.Sequential(nn.MaxPool2d(3, 1, 1), nn.Conv2d(3, 8, 1))
        self.standardised = nn.Conv2d(36, 24, 3, padding=1)
        self.norm = nn.GroupNorm(4, 24)
        self.fc = nn.Linear(24 * 9, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(torch.cat([self.branch1(x), self.branch3(x), self.pooled(x)], 1))
        weight = self.standardised.weight
        weight = (weight - weight.mean(dim=(1, 2, 3), keepdim=True)) / weight.std(dim=(1, 2, 3), keepdim=True)
        x = functional.conv2d(x, weight, self.standardised.bias, padding=1)
        x = functional.adaptive_max_pool2d(functional.silu(self.norm(x)), 3)
        return self.fc(x.reshape(x.shape[0], -1))


@CATALOGUE.add
def branches_and_standardised_weights() -> Made:
    """Return branches that are concatenated, and a convolution that standardises its weights."""
    return TwoPaths(), torch.randn(3, 3, 9, 9)
