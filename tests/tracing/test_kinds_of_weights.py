"""Weights of every kind, tied, computed, pruned, looked up or chosen: half of every space goes, and survives a file."""

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations, prune, spectral_norm, weight_norm

from tests.tracing.cutting import Case, check_case, making

IMAGES = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
STEPS = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
WORDS = torch.tensor([[1, 2, 3, 0], [4, 0, 2, 2]])


class TiedEmbedding(nn.Module):
    """A table of words that is read at the beginning and at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(7, 6)
        self.hidden = nn.Linear(6, 8)
        self.back = nn.Linear(8, 6)
        self.scores = nn.Linear(6, 7, bias=False)
        self.scores.weight = self.words.weight

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words)
        given: Tensor = self.scores(x + self.back(torch.relu(self.hidden(x))))
        return given


class Picked(nn.Module):
    """Units that are put into another order by a buffer of numbers."""

    def __init__(self, function: str) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 2)
        self.function = function
        self.register_buffer("order", torch.tensor([3, 1, 7, 0, 2, 6, 5, 4]))

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.first(x))
        order = self.get_buffer("order")
        y = y.index_select(-1, order) if self.function == "index_select" else y[..., order]
        given: Tensor = self.second(y)
        return given


class LowRank(nn.Module):
    """A linear layer with an adapter of low rank beside it."""

    def __init__(self, inputs: int, outputs: int, rank: int) -> None:
        super().__init__()
        self.base = nn.Linear(inputs, outputs)
        self.base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, inputs))
        self.up = nn.Parameter(torch.randn(outputs, rank))
        self.rank = rank

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.base(x) + (x @ self.down.T @ self.up.T) * 0.25
        return given


class Experts(nn.Module):
    """A gate that sends each row to its two best experts."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(4, 8)
        self.gate = nn.Linear(8, 3)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 8)) for _ in range(3))
        self.head = nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x).flatten(0, 1)
        weights, chosen = self.gate(x).softmax(-1).topk(2, dim=-1)
        given = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows, places = torch.where(chosen == number)
            given[rows] += weights[rows, places, None] * expert(x[rows])
        result: Tensor = self.head(x + given)
        return result


def pruned() -> nn.Module:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    prune.l1_unstructured(model[0], "weight", amount=0.4)  # type: ignore[no-untyped-call]
    prune.random_unstructured(model[2], "weight", amount=0.2)  # type: ignore[no-untyped-call]
    return model


def wrapped(wrap: Callable[[nn.Module], nn.Module]) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(wrap(nn.Linear(4, 8)), nn.ReLU(), wrap(nn.Linear(8, 6)), nn.ReLU(), nn.Linear(6, 2))


def old(wrap: Callable[[nn.Module], nn.Module]) -> Callable[[nn.Module], nn.Module]:
    """Return a way to compute weights by hooks, which torch is about to give up."""

    def quietly(layer: nn.Module) -> nn.Module:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            return wrap(layer)

    return quietly


CASES: dict[str, Case] = {
    "tied embedding": (TiedEmbedding, WORDS, {"back": 6, "hidden": 8}),
    "bag of words": (
        making(
            lambda net, x: net.head(torch.relu(net.hidden(net.bag(x)))),
            bag=lambda: nn.EmbeddingBag(7, 6),
            hidden=lambda: nn.Linear(6, 8),
            head=lambda: nn.Linear(8, 2),
        ),
        WORDS,
        {"bag": 6, "hidden": 8},
    ),
    "units in another order": (lambda: Picked("index_select"), STEPS, {"first": 8}),
    "units indexed by a buffer": (lambda: Picked("index"), STEPS, {"first": 8}),
    "sum of products": (
        making(
            lambda net, x: torch.einsum("btd,od->bto", torch.relu(torch.einsum("bti,id->btd", x, net.a)), net.b),
            a=lambda: nn.Parameter(torch.randn(4, 8)),
            b=lambda: nn.Parameter(torch.randn(2, 8)),
        ),
        STEPS,
        {"a": 8},
    ),
    "convolution of raw weights": (
        making(
            lambda net, x: functional.conv2d(torch.relu(functional.conv2d(x, net.a, net.bias, padding=1)), net.b),
            a=lambda: nn.Parameter(torch.randn(8, 3, 3, 3)),
            bias=lambda: nn.Parameter(torch.randn(8)),
            b=lambda: nn.Parameter(torch.randn(2, 8, 1, 1)),
        ),
        IMAGES,
        {"a": 8},
    ),
    "pruned": (pruned, STEPS, {"0": 8}),
    "weight norm": (
        wrapped(parametrizations.weight_norm),
        STEPS,
        {"0": 8, "2": 6},
    ),
    "spectral norm": (
        wrapped(parametrizations.spectral_norm),
        STEPS,
        {"0": 8, "2": 6},
    ),
    "old weight norm": (wrapped(old(weight_norm)), STEPS, {"0": 8, "2": 6}),
    "old spectral norm": (wrapped(old(spectral_norm)), STEPS, {"0": 8, "2": 6}),
    "low rank": (
        lambda: nn.Sequential(LowRank(4, 8, 2), nn.ReLU(), LowRank(8, 6, 4), nn.ReLU(), nn.Linear(6, 2)),
        STEPS,
        {"0.base": 8, "0.down": 2, "2.base": 6, "2.down": 4},
    ),
    "experts": (Experts, STEPS, {"stem": 8, **{f"experts.{number}.0": 6 for number in range(3)}}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_half_of_every_space_can_go(name: str, tmp_path: Path) -> None:
    check_case(CASES[name], tmp_path)
