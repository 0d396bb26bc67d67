"""A network with the arithmetic of its preprocessing before it and probabilities after it, as one module."""

import torch
from torch import Tensor, nn

from topiarist.data import Preprocessing
from topiarist.data.projection import ColumnBlock


class Deployable(nn.Module):
    """Reads samples as they come and gives logits and probabilities, both (n_samples, n_classes)."""

    def __init__(self, network: nn.Module, preprocessing: Preprocessing | None) -> None:
        super().__init__()
        self.preparation = nn.Identity() if preprocessing is None else Preparation(preprocessing)
        self.network = network

    def forward(self, samples: Tensor) -> tuple[Tensor, Tensor]:
        """Give the logits and the probabilities."""
        logits = self.network(self.preparation(samples))
        return logits, logits.softmax(dim=1)


class Preparation(nn.Module):
    """What a `Preprocessing` computes once text is encoded; in float64, as there."""

    fill: Tensor
    shift: Tensor
    scale: Tensor

    def __init__(self, preprocessing: Preprocessing) -> None:
        super().__init__()
        self.shape = preprocessing.input_shape
        self.unit = preprocessing.scaling == "unit"
        self.blocks = nn.ModuleList(Projection(block) for block in preprocessing.projection)
        self.widths = [block.columns for block in preprocessing.projection]
        per_channel = (-1, *[1] * (len(self.shape) - 1))
        self.register_buffer("fill", float64(fill_of(preprocessing)))
        self.register_buffer("shift", float64(preprocessing.shift).reshape(per_channel))
        self.register_buffer("scale", float64(preprocessing.scale).reshape(per_channel))

    def forward(self, samples: Tensor) -> Tensor:
        """Give what the network reads (n_samples, *input_shape)."""
        x = samples.flatten(1)
        if self.unit or len(self.fill) or len(self.blocks) or len(self.shift):
            x = x.double()
        if len(self.fill):
            x = torch.where(x.isnan() | x.isinf(), self.fill, x)
        if len(self.blocks):
            pieces = torch.split(x, self.widths, dim=1)
            x = torch.cat([block(piece) for block, piece in zip(self.blocks, pieces, strict=True)], dim=1)
        if self.unit:
            norms = (x * x).sum(dim=1, keepdim=True).sqrt()
            x = x / torch.where(norms == 0, 1.0, norms)
        x = x.reshape(-1, *self.shape)
        if len(self.shift):
            x = (x - self.shift) * self.scale
        return x.float()


class Projection(nn.Module):
    """A block of columns along its axes."""

    axes: Tensor
    offset: Tensor

    def __init__(self, block: ColumnBlock) -> None:
        super().__init__()
        self.register_buffer("axes", torch.from_numpy(block.matrix()))
        self.register_buffer("offset", float64(block.offset))

    def forward(self, x: Tensor) -> Tensor:
        """Give the components (n_samples, components)."""
        return x @ self.axes - self.offset


def float64(numbers: tuple[float, ...]) -> Tensor:
    """Give numbers as they were learned."""
    return torch.tensor(numbers, dtype=torch.float64)


def fill_of(preprocessing: Preprocessing) -> tuple[float, ...]:
    """Give what stands for a missing number of each input; nothing where none may be missing."""
    return tuple(column.fill for column in preprocessing.columns for _ in range(column.width)) or preprocessing.fill
