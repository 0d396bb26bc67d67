"""Operations that read values one by one, or where others say: pointwise convolutions, grids, indices, permutations."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.tracing.cutting import Makers, check_network, making
from topiarist import anatomy, surgery


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


def _spatial_gate(net: Any, x: Tensor) -> Any:
    kept, gate = net.first(x).chunk(2, -1)
    return net.last(kept * net.tokens(gate))


def _sampled(net: Any, x: Tensor) -> Any:
    h = net.first(x)
    grid = net.offsets(h).tanh().permute(0, 2, 3, 1)
    return net.last(functional.grid_sample(h, grid, align_corners=False))


def _unpooled(net: Any, x: Tensor) -> Any:
    h = net.first(x)
    pooled, places = functional.max_pool2d(h, 2, return_indices=True)
    return net.last(functional.max_unpool2d(net.inner(pooled), places, [2, 2], output_size=h.size()))


def _in_buckets(net: Any, x: Tensor) -> Any:
    h = net.first(x)
    return net.last(h * torch.bucketize(h, net.borders))


def _complex(net: Any, x: Tensor) -> Any:
    h = net.first(x)
    return net.last((torch.complex(h, h.sin()) * net.turn).abs())


def _overlapping(net: Any, x: Tensor) -> Any:
    h = net.first(x).contiguous()
    batch, length, width = h.shape
    windows = h.as_strided((batch, length // 2 * 2 - 1, 2, width), (h.stride(0), h.stride(1), h.stride(1), h.stride(2)))
    return net.last(windows.amax(2))


def _linear() -> nn.Module:
    return nn.Linear(4, 8)


def _image(width: int = 6) -> nn.Module:
    return nn.Conv2d(2, width, 3, padding=1)


CASES: dict[str, tuple[Callable[..., Any], tuple[int, ...], Makers]] = {
    "a convolution of one position over tokens": (
        _spatial_gate,
        (3, 5, 4),
        {"first": _linear, "tokens": lambda: nn.Conv1d(5, 5, 1), "last": lambda: nn.Linear(4, 2)},
    ),
    "a grid that the network computes": (
        _sampled,
        (2, 2, 6, 6),
        {"first": _image, "offsets": lambda: nn.Conv2d(6, 2, 1), "last": lambda: nn.Conv2d(6, 2, 1)},
    ),
    "unpooling": (
        _unpooled,
        (2, 2, 6, 6),
        {"first": _image, "inner": lambda: nn.Conv2d(6, 6, 1), "last": lambda: nn.Conv2d(6, 2, 1)},
    ),
    "buckets": (
        _in_buckets,
        (3, 4),
        {
            "first": _linear,
            "borders": lambda: nn.Parameter(torch.tensor([-0.5, 0.0, 0.5])),
            "last": lambda: nn.Linear(8, 2),
        },
    ),
    "complex numbers": (
        _complex,
        (3, 4),
        {
            "first": _linear,
            "turn": lambda: nn.Parameter(torch.randn(8, dtype=torch.complex64)),
            "last": lambda: nn.Linear(8, 2),
        },
    ),
    "windows that overlap": (_overlapping, (3, 6, 4), {"first": _linear, "last": lambda: nn.Linear(8, 2)}),
}


@pytest.mark.parametrize("name", CASES)
def test_units_that_are_read_one_by_one_can_go(name: str, tmp_path: Path) -> None:
    code, shape, parts = CASES[name]
    assert not check_network(making(code, **parts), numbers(*shape), tmp_path)["first"].fixed


def test_a_convolution_along_units_fixes_them() -> None:
    model = making(
        _spatial_gate, first=_linear, tokens=lambda: nn.Conv1d(5, 5, 3, padding=1), last=lambda: nn.Linear(4, 2)
    )()
    reason = anatomy(model, numbers(3, 5, 4).float())["first"].reason
    assert reason is not None and "a convolution runs along them" in reason


def test_a_buffer_that_picks_units_more_than_once_is_renumbered_once(tmp_path: Path) -> None:
    order = torch.tensor([3, 1, 7, 0, 2, 6, 5, 4])
    make = making(
        lambda net, x: net.last(net.first(x)[:, net.order]) + net.other(net.first(x)[:, net.order]),
        first=_linear,
        order=lambda: nn.Buffer(order.clone()),
        last=lambda: nn.Linear(8, 2),
        other=lambda: nn.Linear(8, 2),
        unused=lambda: nn.Linear(8, 8),
    )
    found = check_network(make, numbers(3, 4), tmp_path)
    assert not found["first"].fixed
    cut = surgery.remove(make(), numbers(3, 4).float(), units={"first": [0, 7]})
    assert cut.get_buffer("order").tolist() == [2, 0, 1, 5, 4, 3]


class Between(nn.Module):
    """A block that asks at each run whether its width changes; only one of the two numbers shapes a tensor."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.inputs, self.outputs = inputs, outputs
        self.main = nn.Linear(inputs, outputs)
        if inputs != outputs:
            self.short = nn.Linear(inputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        y = self.main(x).relu().view(len(x), self.outputs)
        if self.inputs != self.outputs:
            x = self.short(x)
        given: Tensor = x + y
        return given


def test_numbers_that_are_only_compared_keep_the_answer(tmp_path: Path) -> None:
    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(3, 4), Between(4, 8), Between(8, 8), nn.Linear(8, 2))

    found = check_network(make, numbers(3, 3), tmp_path)
    assert {name: space.size for name, space in found.free.items()} == {"0": 4, "1.main": 8}


class KeepsBiases(nn.Module):
    """Attention that keeps its biases from one run to the next, behind a batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(5)
        self.queries, self.values, self.last = nn.Linear(4, 8), nn.Linear(4, 8), nn.Linear(8, 2)
        self.biases = nn.Parameter(torch.randn(4, 3))
        self.register_buffer("places", torch.arange(25).view(5, 5) % 3)
        self.heads, self.kept = 4, dict[str, Tensor]()

    def forward(self, x: Tensor) -> Any:
        x = self.norm(x)
        parted = (each(x).view(*x.shape[:2], self.heads, -1).transpose(1, 2) for each in (self.queries, self.values))
        queries, values = parted
        assert isinstance(self.places, Tensor)
        if "biases" not in self.kept:
            self.kept["biases"] = self.biases[:, self.places]
        weights = (queries @ queries.transpose(-1, -2) + self.kept["biases"]).softmax(-1)
        return self.last((weights @ values).transpose(1, 2).flatten(2))


def test_what_forward_keeps_of_the_whole_network_is_not_that_of_the_cut_one() -> None:
    model, x = KeepsBiases().eval(), numbers(2, 5, 4).float()
    found = anatomy(model, x)
    (heads,) = (name for name, space in found.free.items() if space.size == 4)
    assert surgery.remove(model, x, units={heads: [1, 2]}, anatomy=found)(x).shape == (2, 5, 2)
