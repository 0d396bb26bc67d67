"""Small networks of the kinds that units cross in: attention, recurrence, transposed convolutions, shared weights."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm


class EncoderNetwork(nn.Module):
    """Torch's own transformer encoder, between two linear layers."""

    def __init__(self, width: int = 8, heads: int = 2, hidden: int = 6, depth: int = 2, inputs: int = 4) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, heads, hidden, batch_first=True, activation="gelu")
        self.embed = nn.Linear(inputs, width)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.head(self.encoder(self.embed(x)).mean(dim=1))
        return given


class FusedAttention(nn.Module):
    """Queries, keys and values from one layer; the size of a head is the width by the number of heads."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        each = width // self.heads
        queries, keys, values = self.qkv(x).reshape(batch, tokens, 3, self.heads, each).permute(2, 0, 3, 1, 4).unbind(0)
        logits = queries @ keys.transpose(-2, -1) * 0.5
        mixed = (logits.softmax(dim=-1) @ values).transpose(1, 2).reshape(batch, tokens, width)
        given: Tensor = self.project(mixed)
        return given


class FusedNetwork(nn.Module):
    """A block with fused attention and a perceptron, each behind a norm and beside a shortcut."""

    def __init__(self, width: int = 8, heads: int = 2, hidden: int = 5, inputs: int = 4) -> None:
        super().__init__()
        self.embed = nn.Linear(inputs, width)
        self.first_norm = nn.LayerNorm(width)
        self.attention = FusedAttention(width, heads)
        self.second_norm = nn.LayerNorm(width)
        self.hidden = nn.Linear(width, hidden)
        self.back = nn.Linear(hidden, width)
        self.head = nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        x = x + self.attention(self.first_norm(x))
        x = x + self.back(functional.gelu(self.hidden(self.second_norm(x))))
        given: Tensor = self.head(x.mean(dim=1))
        return given


class EinsumNetwork(nn.Module):
    """Attention as sums over named axes, with parameters of its own and a size of heads that is free of the width."""

    def __init__(self, width: int = 6, heads: int = 2, each: int = 4, inputs: int = 4) -> None:
        super().__init__()
        self.embed = nn.Linear(inputs, width)
        self.queries = nn.Parameter(torch.randn(heads, width, each) / math.sqrt(width))
        self.keys = nn.Parameter(torch.randn(heads, width, each) / math.sqrt(width))
        self.values = nn.Parameter(torch.randn(heads, width, each) / math.sqrt(width))
        self.project = nn.Parameter(torch.randn(heads, each, width) / math.sqrt(heads * each))
        self.head = nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.embed(x))
        queries, keys, values = (
            torch.einsum("btc,hcd->bhtd", x, kernel) for kernel in (self.queries, self.keys, self.values)
        )
        weights = torch.einsum("bhtd,bhsd->bhts", queries, keys).softmax(dim=-1)
        x = x + torch.einsum("bhts,bhsd,hdc->btc", weights, values, self.project)
        given: Tensor = self.head(x.mean(dim=1))
        return given


class RecurrentNetwork(nn.Module):
    """Recurrent layers, read at their last step."""

    def __init__(
        self, kind: type[nn.LSTM | nn.GRU], hidden: int = 5, depth: int = 1, both: bool = False, inputs: int = 4
    ) -> None:
        super().__init__()
        self.embed = nn.Linear(inputs, 6)
        self.recurrent = kind(6, hidden, depth, batch_first=True, bidirectional=both)
        self.head = nn.Linear(hidden * (2 if both else 1), 3)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.recurrent(torch.tanh(self.embed(x)))
        given: Tensor = self.head(states[:, -1])
        return given


class UNet(nn.Module):
    """Down, and up again with transposed convolutions; shortcuts are joined to what comes up."""

    def __init__(self, widths: tuple[int, int, int] = (4, 5, 6)) -> None:
        super().__init__()
        first, second, third = widths
        self.first = nn.Conv2d(2, first, 3, padding=1)
        self.second = nn.Conv2d(first, second, 3, padding=1)
        self.bottom = nn.Conv2d(second, third, 3, padding=1)
        self.up_second = nn.ConvTranspose2d(third, second, 2, stride=2)
        self.join_second = nn.Conv2d(2 * second, second, 3, padding=1)
        self.up_first = nn.ConvTranspose2d(second, first, 2, stride=2)
        self.join_first = nn.Conv2d(2 * first, first, 3, padding=1)
        self.head = nn.Conv2d(first, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = torch.relu(self.first(x))
        second = torch.relu(self.second(functional.max_pool2d(first, 2)))
        bottom = torch.relu(self.bottom(functional.max_pool2d(second, 2)))
        second = torch.relu(self.join_second(torch.cat([self.up_second(bottom), second], dim=1)))
        first = torch.relu(self.join_first(torch.cat([self.up_first(second), first], dim=1)))
        given: Tensor = self.head(first)
        return given


class WeightNormed(nn.Module):
    """Weights as a direction and a length, which torch computes anew on each call."""

    def __init__(self, width: int = 6, hidden: int = 5) -> None:
        super().__init__()
        self.first = weight_norm(nn.Linear(4, width))
        self.second = weight_norm(nn.Linear(width, hidden))
        self.head = nn.Linear(hidden, 2)

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.head(torch.relu(self.second(torch.relu(self.first(x)))))
        return given


class TiedNetwork(nn.Module):
    """A table of words that is also the last layer."""

    def __init__(self, words: int = 11, width: int = 6, hidden: int = 5) -> None:
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.hidden = nn.Linear(width, hidden)
        self.back = nn.Linear(hidden, width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.table.weight

    def forward(self, x: Tensor) -> Tensor:
        x = self.table(x)
        x = x + self.back(torch.relu(self.hidden(x)))
        given: Tensor = self.head(x)
        return given
