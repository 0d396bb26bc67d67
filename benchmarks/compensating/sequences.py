"""Transformers and an LSTM that classify: a small ViT, a BERT-shaped encoder of text, and an LSTM over rows."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class Attention(nn.Module):
    """Attention with layers of their own for queries, keys and values; there are as many heads as the layers hold."""

    def __init__(self, width: int, heads: int) -> None:
        """Make attention of `heads` heads of `width // heads` dims."""
        super().__init__()
        self.each = width // heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.project = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return what each token gathers from all."""
        queries, keys, values = (
            layer(x).unflatten(-1, (-1, self.each)).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        logits = queries @ keys.transpose(-2, -1) / math.sqrt(self.each)
        mixed: Tensor = self.project((logits.softmax(-1) @ values).transpose(1, 2).flatten(2))
        return mixed


class Perceptron(nn.Module):
    """The perceptron of a layer."""

    def __init__(self, width: int, hidden: int) -> None:
        """Make it `hidden` wide."""
        super().__init__()
        self.hidden, self.back = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return what it adds to each token."""
        added: Tensor = self.back(functional.gelu(self.hidden(x)))
        return added


class Layer(nn.Module):
    """Attention and a perceptron, each beside a shortcut; norms before them (ViT) or behind the sums (BERT)."""

    def __init__(self, width: int, heads: int, hidden: int, *, norms_first: bool) -> None:
        """Make a layer."""
        super().__init__()
        self.norms_first = norms_first
        self.attention, self.perceptron = Attention(width, heads), Perceptron(width, hidden)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the changed tokens."""
        if self.norms_first:
            x = x + self.attention(self.norm1(x))
            changed: Tensor = x + self.perceptron(self.norm2(x))
        else:
            x = self.norm1(x + self.attention(x))
            changed = self.norm2(x + self.perceptron(x))
        return changed


class SmallViT(nn.Module):
    """A vision transformer over patches, with a class token."""

    def __init__(self, width: int = 64, depth: int = 3, heads: int = 4, patch: int = 4, side: int = 28) -> None:
        """Make it for grey images of `side` × `side` pixels and ten classes."""
        super().__init__()
        self.patches = nn.Conv2d(1, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(0.02 * torch.randn(1, (side // patch) ** 2 + 1, width))
        self.layers = nn.Sequential(*(Layer(width, heads, 2 * width, norms_first=True) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.places
        logits: Tensor = self.head(self.norm(self.layers(x))[:, 0])
        return logits


class SmallBert(nn.Module):
    """An encoder shaped as BERT is: embeddings with a norm, norms behind the sums, a pooled first token."""

    def __init__(
        self, words: int, length: int, width: int = 64, depth: int = 3, heads: int = 4, classes: int = 4
    ) -> None:
        """Make it for sentences of at most `length` words."""
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.Sequential(*(Layer(width, heads, 4 * width, norms_first=False) for _ in range(depth)))
        self.pool, self.head = nn.Linear(width, width), nn.Linear(width, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.layers(self.norm(self.words(tokens) + self.places(places)))
        logits: Tensor = self.head(torch.tanh(self.pool(x[:, 0])))
        return logits


class RowLSTM(nn.Module):
    """An LSTM that reads an image row by row and answers after the last."""

    def __init__(self, hidden: int = 64, depth: int = 1) -> None:
        """Make it for rows of 28 pixels and ten classes."""
        super().__init__()
        self.lstm = nn.LSTM(28, hidden, depth, batch_first=True)
        self.head = nn.Linear(hidden, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        states, _ = self.lstm(x.flatten(1, 2))
        logits: Tensor = self.head(states[:, -1])
        return logits
