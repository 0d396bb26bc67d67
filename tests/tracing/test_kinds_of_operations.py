"""Operations that pick, pair or compare units: distances, interleaved halves, masks, norms of neighbours."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.tracing.cutting import Makers, check_network, making, written
from topiarist import anatomy


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


def _nearest(net: Any, x: Tensor) -> Any:
    return net.last(torch.cdist(net.first(x), net.centres))


def _manhattan(net: Any, x: Tensor) -> Any:
    return net.last(torch.cdist(net.first(x), net.centres, p=1))


def _apart(net: Any, x: Tensor) -> Any:
    return net.last(torch.nn.functional.pdist(net.first(x)).mean() * net.first(x))


def _interleaved_gate(net: Any, x: Tensor) -> Any:
    h = net.first(x)
    return net.last(h[..., ::2] * h[..., 1::2].sigmoid())


def _interleaved_writing(net: Any, x: Tensor) -> Any:
    h = net.first(x)
    turned = torch.empty_like(h)
    turned[..., ::2], turned[..., 1::2] = -h[..., 1::2].relu(), h[..., ::2]
    return net.last(turned)


def _masked_rows(net: Any, x: Tensor) -> Any:
    h = net.first(x)
    return net.last(torch.masked_select(h, x[..., :1] > -0.5).view(-1, h.shape[-1])).sum(0)


def _masked_rows_spread(net: Any, x: Tensor) -> Any:
    h = net.first(x)
    return net.last(h.masked_select((x[..., 0] > -0.5).unsqueeze(-1).expand_as(h)).view(-1, h.shape[-1])).sum(0)


def _masked_tokens(net: Any, x: Tensor) -> Any:
    return net.last(net.first(x)[x[..., 0] > 0]).sum(0)


CENTRES: Makers = {"centres": lambda: nn.Parameter(torch.randn(6, 8)), "read": lambda: nn.Linear(6, 2)}
OPERATIONS: dict[str, tuple[Callable[..., Any], tuple[int, ...], Makers]] = {
    "distances": (
        _nearest,
        (3, 4),
        {"centres": lambda: nn.Parameter(torch.randn(6, 8)), "read": lambda: nn.Linear(6, 2)},
    ),
    "other distances": (
        _manhattan,
        (3, 4),
        {"centres": lambda: nn.Parameter(torch.randn(6, 8)), "read": lambda: nn.Linear(6, 2)},
    ),
    "distances within": (_apart, (3, 4), {"read": lambda: nn.Linear(8, 2)}),
    "interleaved gate": (_interleaved_gate, (3, 4), {"read": lambda: nn.Linear(4, 2)}),
    "interleaved writing": (_interleaved_writing, (3, 4), {"read": lambda: nn.Linear(8, 2)}),
    "masked rows": (_masked_rows, (3, 5, 4), {"read": lambda: nn.Linear(8, 2)}),
    "masked rows, spread": (_masked_rows_spread, (3, 5, 4), {"read": lambda: nn.Linear(8, 2)}),
    "masked tokens": (_masked_tokens, (3, 5, 4), {"read": lambda: nn.Linear(8, 2)}),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_units_that_an_operation_reads_can_go(name: str, tmp_path: Path) -> None:
    code, shape, parts = OPERATIONS[name]
    last = parts["read"]
    others = {key: make for key, make in parts.items() if key != "read"}
    make = making(code, first=lambda: nn.Linear(4, 8), last=last, **others)
    found = check_network(make, numbers(*shape), tmp_path)
    assert not found["first"].fixed


class InterleavedRotary(nn.Module):
    """Attention that turns pairs of neighbouring dims, as the paper on rotary embeddings has them."""

    def __init__(self) -> None:
        super().__init__()
        self.heads, self.dim = 3, 8
        self.queries, self.keys, self.values = nn.Linear(5, 24), nn.Linear(5, 24), nn.Linear(5, 24)
        self.last = nn.Linear(24, 2)
        self.register_buffer("frequencies", torch.rand(4))

    def turned(self, x: Tensor) -> Tensor:
        assert isinstance(self.frequencies, Tensor)
        angles = torch.arange(x.shape[2], dtype=x.dtype)[:, None] * self.frequencies
        even, odd = x[..., ::2], x[..., 1::2]
        pairs = even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()
        return torch.stack(pairs, -1).flatten(-2)

    def forward(self, x: Tensor) -> Any:
        shape = *x.shape[:2], self.heads, self.dim
        queries, keys, values = (each(x).view(shape).transpose(1, 2) for each in (self.queries, self.keys, self.values))
        weights = (self.turned(queries) @ self.turned(keys).transpose(-1, -2)).softmax(-1)
        return self.last((weights @ values).transpose(1, 2).flatten(2))


@pytest.mark.slow
def test_interleaved_rotary_pairs_can_go(tmp_path: Path) -> None:
    found = check_network(InterleavedRotary, numbers(2, 6, 5), tmp_path)
    assert sorted(space.size for space in found.free.values()) == [3, 4]


def test_every_third_of_units_that_are_no_threes_is_fixed() -> None:
    model, x = written(
        lambda net, x: net.last(net.first(x)[..., 1::3]),
        (3, 4),
        {"first": lambda: nn.Linear(4, 10), "last": lambda: nn.Linear(3, 2)},
    )
    assert not anatomy(model, x).free


def test_a_norm_of_neighbours_fixes_units_and_says_what_to_do() -> None:
    model: nn.Module = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.LocalResponseNorm(3), nn.Conv2d(8, 6, 1), nn.Conv2d(6, 2, 1)
    )
    found = anatomy(model, torch.zeros(2, 3, 5, 5))
    assert list(found.free) == ["2"]
    reason = found["0"].reason
    assert reason is not None
    assert "'local_response_norm'" in reason and "in '1'" in reason and "a batch norm in its place" in reason
    code: Callable[..., Any] = lambda net, x: net.last(nn.functional.local_response_norm(net.first(x), 3))  # noqa: E731
    model, x = written(code, (2, 3, 8), {"first": lambda: nn.Conv1d(3, 8, 3), "last": lambda: nn.Conv1d(8, 2, 1)})
    reason = anatomy(model, x)["first"].reason
    assert reason is not None and "'local_response_norm'" in reason and "test_kinds_of_operations.py line" in reason
