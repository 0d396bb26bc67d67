"""Residual networks for CIFAR as He et al. describe them, with shortcuts that pad, or such with convolutions."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Block(nn.Module):
    """A residual block of two convolutions; a shortcut that changes the shape strides and pads with zeros.

    `projected`: it is a convolution with a norm instead.
    """

    def __init__(self, before: int, width: int, *, projected: bool = False) -> None:
        """Make a block that strides where the width grows."""
        super().__init__()
        self.stride = 1 if before == width else 2
        self.conv1 = nn.Conv2d(before, width, 3, self.stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.missing = 0 if projected else width - before
        if projected and width > before:
            convolution = nn.Conv2d(before, width, 1, self.stride, bias=False)
            self.shortcut: nn.Module = nn.Sequential(convolution, nn.BatchNorm2d(width))
        else:
            self.shortcut = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of both branches."""
        inner = functional.relu(self.norm1(self.conv1(x)))
        if self.missing:
            side = self.missing // 2
            x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, side, self.missing - side))
        return functional.relu(self.norm2(self.conv2(inner)) + self.shortcut(x))


class CifarResNet(nn.Module):
    """A network of three stages of 16, 32 and 64 channels; `blocks` 3 is ResNet-20, 9 is ResNet-56."""

    def __init__(
        self,
        blocks: int = 3,
        widths: tuple[int, ...] = (16, 32, 64),
        classes: int = 10,
        channels: int = 3,
        *,
        projected: bool = False,
    ) -> None:
        """Make the network for images of so many channels."""
        super().__init__()
        self.conv = nn.Conv2d(channels, widths[0], 3, 1, 1, bias=False)
        self.norm = nn.BatchNorm2d(widths[0])
        stages, before = [], widths[0]
        for width in widths:
            for _ in range(blocks):
                stages.append(Block(before, width, projected=projected))
                before = width
        self.blocks = nn.Sequential(*stages)
        self.head = nn.Linear(before, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        x = self.blocks(functional.relu(self.norm(self.conv(x))))
        logits: Tensor = self.head(torch.flatten(functional.adaptive_avg_pool2d(x, 1), 1))
        return logits
