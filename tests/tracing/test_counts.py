"""Values made from the number of units: a cut would change them in silence, so it is made up for, or refused."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.tracing.cutting import Makers, assert_same, check_network, computed, without, written
from topiarist import surgery
from topiarist.errors import ModelError
from topiarist.surgery import scales
from topiarist.surgery.products import run_products
from topiarist.tracing import anatomy

LAYER: Makers = {"layer": lambda: nn.Linear(4, 6), "head": lambda: nn.Linear(6, 2)}
ROWS = (2, 4)


def counted(use: Callable[[Any, Tensor], Tensor]) -> Callable[[Any, Tensor], Tensor]:
    """Return the code of a network that does something with its hidden units before it reads them."""

    def code(net: Any, x: Tensor) -> Tensor:
        given: Tensor = net.head(use(net, torch.tanh(net.layer(x))))
        return given

    return code


CASES: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "full": lambda net, y: y * torch.full((1,), y.size(1), dtype=y.dtype),
    "full as the number": lambda net, y: y + torch.full((1,), float(y.shape[1]), dtype=y.dtype),
    "arange": lambda net, y: y + torch.arange(y.size(1), dtype=y.dtype),
    "arange turned": lambda net, y: y * (1 + torch.arange(y.size(1)).flip(0).to(y)),
    "linspace": lambda net, y: y * torch.linspace(0, 1, y.size(1), dtype=y.dtype),
    "eye": lambda net, y: y + torch.eye(y.size(1), dtype=y.dtype)[:2],
    "root of a size": lambda net, y: y / math.sqrt(y.size(-1)),
    "power of a size": lambda net, y: y * y.shape[1] ** -0.5,
    "number of elements": lambda net, y: y + y.numel() / len(y),
    "number of elements as a factor": lambda net, y: y * y.numel(),
    "length of a row": lambda net, y: y - len(y[0]),
    "a sum over a size": lambda net, y: y - y.sum(1, keepdim=True) / y.shape[1],
    "a tensor of sizes": lambda net, y: y + torch.tensor(y.shape).to(y).sum(),
    "a tensor of one size": lambda net, y: y + torch.tensor(y.size(1), dtype=y.dtype),
    "a size as a value": lambda net, y: y + y.size(1),
    "a loop over units": lambda net, y: sum((y * 0.1 for _ in range(y.size(1))), y),
    "text of a size": lambda net, y: y * int(str(y.size(1))),
    "a format of a size": lambda net, y: y * float(f"{y.shape[1]}"),
    "a list of sizes": lambda net, y: y * sum(list(y.shape[1:])),
    "the largest of sizes": lambda net, y: y + max(y.shape),
    "a bit shifted": lambda net, y: y + (y.size(1) >> 1),
    "a rounded root": lambda net, y: y + round(y.size(1) ** 0.5),
    "a parity": lambda net, y: y + (y.size(1) % 2),
    "a negative size": lambda net, y: y + (-y.size(1)),
    "a stride": lambda net, y: y * y.stride(0),
    "a product of a shape": lambda net, y: y * math.prod(y.shape[1:]),
    "an ATen size": lambda net, y: y * torch.ops.aten.sym_size.int(y, 1),
    "a shape of numpy": lambda net, y: y * y.detach().numpy().shape[1],
    "bytes of a tensor": lambda net, y: y * (y.nbytes // len(y) // 8),
    "a count of non-zeros": lambda net, y: y + torch.count_nonzero(torch.ones_like(y[0])),
    "a sum of ones": lambda net, y: y + torch.ones_like(y).sum(),
    "a rank of values": lambda net, y: y + y.argsort(1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_value_made_from_the_number_of_units_is_never_wrong_in_silence(name: str) -> None:
    """Every choice of units is either refused in one line, or equals the network without them."""
    model, example = written(counted(CASES[name]), ROWS, LAYER)
    found = anatomy(model, example)
    for units in ([0], [5], [0, 2], [0, 1, 2, 3], [1, 2, 3, 4, 5]):
        try:
            smaller = surgery.remove(model, example, units={"layer": units}, anatomy=found)
        except ModelError as error:
            assert "\n" not in str(error)
            assert "test_counts.py line" in str(error) or "without units of 'layer'" in str(error), str(error)
        else:
            assert_same(computed(smaller, example), without(model, example, found, {"layer": units}))


class Attention(nn.Module):
    """Attention whose forward divides by the root of the number of dims."""

    def __init__(self, width: int, heads: int, dims: int) -> None:
        super().__init__()
        self.heads, self.dims = heads, dims
        self.query, self.key, self.value = (nn.Linear(width, heads * dims) for _ in range(3))
        self.project = nn.Linear(heads * dims, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            layer(x).view(len(x), -1, self.heads, self.dims).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.dims)
        mixed: Tensor = self.project((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return x + mixed


@pytest.mark.slow
def test_attention_behind_attention_is_made_up_for_by_its_own_queries_and_keys(tmp_path: Path) -> None:
    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(3, 8), *(Attention(8, 2, 4) for _ in range(3)), nn.Linear(8, 2))

    found = check_network(make, torch.randn(2, 5, 3, dtype=torch.float64), tmp_path)
    assert {f"{number}.query:{kind}" for number in (1, 2, 3) for kind in ("heads", "dims")} <= set(found.free)


def test_many_layers_of_attention_are_made_up_for_in_as_many_runs_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[nn.Module] = []

    def noted(model: nn.Module, *given: Any, **settings: Any) -> Any:
        runs.append(model)
        return run_products(model, *given, **settings)

    monkeypatch.setattr(scales, "run_products", noted)
    x, counts = torch.randn(2, 5, 3), []
    for depth in (1, 6):
        model = nn.Sequential(nn.Linear(3, 8), *(Attention(8, 2, 4) for _ in range(depth)), nn.Linear(8, 2))
        runs.clear()
        surgery.remove(model, x, units={f"{number}.query:dims": [1] for number in range(1, depth + 1)}, proof=False)
        counts.append(len(runs))
    assert counts[0] == counts[1] > 0
