"""Networks as others write them: with caches, lambdas, casts and complex numbers."""

import math
from copy import deepcopy
from functools import lru_cache
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.tracing.cutting import check_network
from topiarist import surgery


@lru_cache(16)
def head_shape(shape: tuple[int, ...], heads: int) -> tuple[int, ...]:
    return (*shape[:-1], heads, shape[-1] // heads)


class CachedShapes(nn.Module):
    """Two layers whose heads are parted by a function with a cache, as that of einops."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(4, 12), nn.Linear(12, 12), nn.Linear(12, 2)
        self.heads = 3

    def forward(self, x: Tensor) -> Tensor:
        for layer in (self.first, self.second):
            x = layer(x)
            x = x.view(head_shape(tuple(x.shape), self.heads)).softmax(0).flatten(1)
        out: Tensor = self.last(x)
        return out


@pytest.mark.slow
def test_numbers_from_caches_are_computed_again(tmp_path: Path) -> None:
    x = torch.randn(3, 4)
    CachedShapes()(x)
    found = check_network(CachedShapes, x, tmp_path)
    assert set(found.free) == {"first:groups", "first:members", "second:members"}
    assert head_shape.cache_info().currsize > 0
    assert all(type(number) is int for number in head_shape((3, 12), 3))


class InSinglePrecision(nn.Module):
    """A norm in float32, whatever the network is in."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))
        self.last = nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            h = layer(x).float()
            x = (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x).sin() * 3
        out: Tensor = self.last(x)
        return out


def test_casts_do_not_blur_a_proof() -> None:
    model, x = InSinglePrecision(), torch.randn(3, 8)
    found = surgery.proven(model, x)
    assert len(found.free) == 4
    assert max(found.proofs.values()) < 1e-12


class ComplexStates(nn.Module):
    """States that are divided by complex numbers which units lie along, as in diagonal state spaces."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 6), nn.Linear(6, 2)
        self.decay, self.turn = nn.Parameter(torch.rand(6, 5)), nn.Parameter(torch.rand(6, 5))

    def forward(self, x: Tensor) -> Tensor:
        rate = -self.decay + 1j * self.turn
        kernel = ((torch.exp(rate) - 1) / rate).sum(1).real
        out: Tensor = self.last(self.first(x) * kernel)
        return out


def test_complex_numbers_of_units_that_are_gone_are_silent(tmp_path: Path) -> None:
    assert set(check_network(ComplexStates, torch.randn(3, 4), tmp_path).free) == {"first", "decay"}


class ScaledWords(nn.Module):
    """Words that forward multiplies with the root of their width in one place, and not in another."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.last = nn.Embedding(10, 8), nn.Linear(8, 2)

    def forward(self, tokens: Tensor, others: Tensor) -> Tensor:
        out: Tensor = self.last(self.words(tokens) * self.words.embedding_dim**0.5 + self.words(others))
        return out


def test_a_layers_width_that_forward_computes_with_stays(tmp_path: Path) -> None:
    tokens = torch.randint(0, 10, (3, 5))
    assert list(check_network(ScaledWords, [tokens, tokens.flip(0)], tmp_path).free) == ["words"]


class TwiceScaled(nn.Module):
    """Features that are scaled by a root of their number, and their squares by another, as random features are."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 8) for _ in range(2))
        self.back = nn.ModuleList(nn.Linear(1, 6) for _ in range(2))
        self.last = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        for layer, back in zip(self.layers, self.back, strict=True):
            h = layer(x)
            scale = h.shape[-1] ** -0.25
            scores = (scale * h).sum(-1, keepdim=True)
            x = x + back((scores - (h**2).sum(-1, keepdim=True) / 2.0 * scale**2).tanh())
        out: Tensor = self.last(x)
        return out


@pytest.mark.slow
def test_weights_make_up_once_for_several_products(tmp_path: Path) -> None:
    assert set(check_network(TwiceScaled, torch.randn(3, 6), tmp_path).free) == {"layers.0", "layers.1"}


class PickedQueries(nn.Module):
    """Attention of a few queries, in two blocks whose layers have a bias and read what is not contiguous."""

    def __init__(self) -> None:
        super().__init__()
        self.queries = nn.ModuleList(nn.Linear(6, 8) for _ in range(2))
        self.keys = nn.ModuleList(nn.Linear(6, 8) for _ in range(2))
        self.last = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        for queries, keys in zip(self.queries, self.keys, strict=True):
            y = x.transpose(1, 2).contiguous().transpose(1, 2)
            q, k = queries(y)[:, torch.tensor([0, 2])], keys(y)
            scores = q @ k.transpose(1, 2) * (1.0 / math.sqrt(q.shape[-1]))
            x = x + (scores.softmax(-1) @ x).sum(1, keepdim=True)
        out: Tensor = self.last(x)
        return out


@pytest.mark.slow
def test_weights_with_a_bias_make_up_for_a_number_of_dims(tmp_path: Path) -> None:
    assert {"queries.0", "queries.1"} <= set(check_network(PickedQueries, torch.randn(3, 5, 6), tmp_path).free)


class Borrowed(nn.Module):
    """Networks side by side, whose code is that of one without values."""

    def __init__(self) -> None:
        super().__init__()
        networks = [nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)) for _ in range(3)]
        stacked, _ = torch.func.stack_module_state(networks)
        self.names = list(stacked)
        self.stacked = nn.ParameterList(nn.Parameter(value.detach()) for value in stacked.values())
        self.code = [deepcopy(networks[0]).to("meta")]

    def forward(self, x: Tensor) -> Tensor:
        def run(weights: dict[str, Tensor], x: Tensor) -> Tensor:
            out: Tensor = torch.func.functional_call(self.code[0], weights, (x,))
            return out

        named = dict(zip(self.names, self.stacked, strict=True))
        together: Tensor = torch.func.vmap(run, in_dims=(0, None))(named, x)
        return together.mean(0)


def test_layers_without_values_lend_their_code(tmp_path: Path) -> None:
    free = check_network(Borrowed, torch.randn(3, 4), tmp_path).free
    assert any(space.size == 6 for space in free.values())
