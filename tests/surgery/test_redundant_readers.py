"""Units that are combinations of others go without a loss, whatever reads them: the refit finds what expresses them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from topiarist import surgery
from topiarist.randomness import isolated

remove = partial(surgery.remove, settling=0)  # refits alone
GONE = range(6, 9)  # of nine units: copies of the first three


class Read(nn.Module):
    """A layer that writes units, and something that reads them."""

    def __init__(self, writer: nn.Module, read: Callable[[Any, Tensor], Tensor], **parts: Any) -> None:
        super().__init__()
        self.writer, self.read = writer, read
        for name, part in parts.items():
            setattr(self, name, nn.Parameter(torch.randn(*part)) if isinstance(part, tuple) else part)

    def forward(self, x: Tensor) -> Tensor:
        return self.read(self, torch.relu(self.writer(x)))


def with_copies(model: nn.Module, *names: str) -> nn.Module:
    """Let the last three of nine rows of parameters be copies of the first."""
    with torch.no_grad():
        for name in names:
            tensor = model.get_parameter(name)
            rows = tensor.view(-1, 9, *tensor.shape[1:])
            rows[:, 6:] = rows[:, :3]
    return model


READERS: dict[str, Callable[[], tuple[nn.Module, tuple[int, ...]]]] = {
    "a linear layer": lambda: (Read(nn.Linear(4, 9), lambda m, h: m.last(h), last=nn.Linear(9, 3)), (4,)),
    "a convolution": lambda: (
        Read(nn.Conv2d(2, 9, 3), lambda m, h: m.last(h), last=nn.Conv2d(9, 3, 3, padding=1)),
        (2, 7, 7),
    ),
    "a transposed convolution": lambda: (
        Read(nn.Conv2d(2, 9, 3), lambda m, h: m.last(h), last=nn.ConvTranspose2d(9, 3, 3, 2, padding=1)),
        (2, 6, 6),
    ),
    "linear": lambda: (Read(nn.Linear(4, 9), lambda m, h: functional.linear(h, m.weight), weight=(3, 9)), (4,)),
    "linear with a bias": lambda: (
        Read(nn.Linear(4, 9), lambda m, h: functional.linear(h, m.weight, m.bias), weight=(3, 9), bias=(3,)),
        (4,),
    ),
    "conv2d": lambda: (
        Read(nn.Conv2d(2, 9, 3), lambda m, h: functional.conv2d(h, m.weight, padding=1), weight=(3, 9, 3, 3)),
        (2, 6, 6),
    ),
    "a product of matrices": lambda: (Read(nn.Linear(4, 9), lambda m, h: h @ m.weight, weight=(9, 3)), (5, 4)),
    "einsum": lambda: (
        Read(nn.Linear(4, 9), lambda m, h: torch.einsum("btu,uo->bto", h, m.weight), weight=(9, 3)),
        (5, 4),
    ),
    "einsum of several axes": lambda: (
        Read(nn.Linear(4, 9), lambda m, h: torch.einsum("btu,huo->bhto", h, m.weight), weight=(2, 9, 3)),
        (5, 4),
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_copies_go_without_a_loss(name: str) -> None:
    with isolated(1):
        model, shape = READERS[name]()
        model = with_copies(model.double().eval(), "writer.weight", "writer.bias")
        x = torch.randn(128, *shape, dtype=torch.float64)
    as_cut = remove(model, x[:2], units={"writer": GONE})
    cut = remove(model, x[:2], units={"writer": GONE}, calibration=x)
    with torch.no_grad():
        lost = float((as_cut(x) - model(x)).square().mean())
        left = float((cut(x) - model(x)).square().mean())
    assert left < 1e-4 * lost
