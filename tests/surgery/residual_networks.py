"""Networks of residual blocks, as people write them, by name: each with an example input and its removable blocks."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.networks import BasicBlock, built


class PreActivation(nn.Module):
    """A block with norms and activations before its convolutions (He et al., 2016, identity mappings)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(width), nn.Conv2d(width, width + 1, 3, padding=1, bias=False)
        self.norm2, self.conv2 = nn.BatchNorm2d(width + 1), nn.Conv2d(width + 1, width, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.conv1(functional.relu(self.norm1(x)))
        given: Tensor = self.conv2(functional.relu(self.norm2(inner)))
        given += x
        return given


class Stacked(nn.Module):
    """A stem, blocks in a list that forward iterates, and a head."""

    def __init__(self, stem: nn.Module, blocks: list[nn.Module], head: nn.Module) -> None:
        super().__init__()
        self.stem, self.blocks, self.head = stem, nn.ModuleList(blocks), head

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        given: Tensor = self.head(x)
        return given


def pooled(width: int, classes: int) -> nn.Module:
    """Return a linear layer over the means of images."""
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


class Masked(nn.Module):
    """A block that returns more than one thing: its result, nothing, and the mask that it was given."""

    def __init__(self, width: int, form: Callable[[Any], Any]) -> None:
        super().__init__()
        self.first, self.second, self.form = nn.Linear(width, 7), nn.Linear(7, width), form

    def forward(self, hidden: Tensor, mask: Tensor | None = None) -> Any:
        changed = self.second(functional.gelu(self.first(hidden)))
        if mask is not None:
            changed = changed * mask
        return self.form([hidden + changed, None, mask])


class MaskedNetwork(nn.Module):
    """Blocks that hand a mask on, in tuples or lists."""

    def __init__(self, form: Callable[[Any], Any]) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(5, 6), nn.Linear(6, 3)
        self.blocks = nn.ModuleList(Masked(6, form) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        hidden, mask = self.stem(x), (x[..., :1] > 0).to(x)
        for block in self.blocks:
            hidden, _, mask = block(mask=mask, hidden=hidden)
        given: Tensor = self.head(hidden)
        return given


class Mixer(nn.Module):
    """A block of MLP-Mixer: over tokens, then over channels."""

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens, self.channels = nn.Linear(tokens, tokens), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + functional.gelu(self.tokens(self.norm1(x).transpose(1, 2))).transpose(1, 2)
        return x + functional.gelu(self.channels(self.norm2(x)))


class ConvNextBlock(nn.Module):
    """A block of ConvNeXt: channels last inside, scaled, beside a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise, self.norm = nn.Conv2d(width, width, 3, padding=1, groups=width), nn.LayerNorm(width)
        self.wide, self.back = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        inner = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        added: Tensor = self.scale * self.back(functional.gelu(self.wide(inner)))
        return x + added.permute(0, 3, 1, 2)


def encoder(*, norm_first: bool) -> nn.Module:
    """Return torch's own encoder."""
    layer = nn.TransformerEncoderLayer(6, 2, 9, batch_first=True, norm_first=norm_first)
    return nn.Sequential(nn.Linear(4, 6), nn.TransformerEncoder(layer, 3, enable_nested_tensor=False), nn.Linear(6, 2))


def residual_cnn() -> nn.Module:
    """Return a small residual network, whose third block changes the shape."""
    stem = nn.Sequential(nn.Conv2d(3, 5, 3, padding=1), nn.ReLU())
    blocks = [BasicBlock(5, 5, 1), BasicBlock(5, 5, 1), BasicBlock(5, 7, 2), BasicBlock(7, 7, 1)]
    return Stacked(stem, list(blocks), pooled(7, 4))


Made = Callable[[int], tuple[nn.Module, Any]]
RESIDUAL: dict[str, tuple[Made, list[str]]] = {
    "residual": (
        lambda seed: built(residual_cnn, (2, 3, 6, 6), seed=seed),
        ["blocks.0", "blocks.1", "blocks.3"],
    ),
    "pre-activation": (
        lambda seed: built(
            lambda: Stacked(nn.Conv2d(3, 5, 3), [PreActivation(5) for _ in range(3)], pooled(5, 4)),
            (2, 3, 6, 6),
            seed=seed,
        ),
        ["blocks.0", "blocks.1", "blocks.2"],
    ),
    "encoder, norms first": (
        lambda seed: built(lambda: encoder(norm_first=True), (2, 5, 4), seed=seed),
        ["1.layers.0", "1.layers.1", "1.layers.2"],
    ),
    "encoder, norms last": (
        lambda seed: built(lambda: encoder(norm_first=False), (2, 5, 4), seed=seed),
        ["1.layers.0", "1.layers.1", "1.layers.2"],
    ),
    "tuples": (
        lambda seed: built(lambda: MaskedNetwork(tuple), (2, 4, 5), seed=seed),
        ["blocks.0", "blocks.1", "blocks.2"],
    ),
    "lists": (
        lambda seed: built(lambda: MaskedNetwork(list), (2, 4, 5), seed=seed),
        ["blocks.0", "blocks.1", "blocks.2"],
    ),
    "mixer": (
        lambda seed: built(
            lambda: Stacked(nn.Linear(3, 6), [Mixer(4, 6) for _ in range(2)], nn.Linear(6, 2)), (2, 4, 3), seed=seed
        ),
        ["blocks.0", "blocks.1"],
    ),
    "convnext": (
        lambda seed: built(
            lambda: Stacked(nn.Conv2d(3, 6, 2, 2), [ConvNextBlock(6) for _ in range(2)], pooled(6, 3)),
            (2, 3, 6, 6),
            seed=seed,
        ),
        ["blocks.0", "blocks.1"],
    ),
}
