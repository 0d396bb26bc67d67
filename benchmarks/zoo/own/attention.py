"""Attention as people write it: torch's modules, fused projections, einsum, queries of its own."""
# ruff: noqa: D102
# mypy: disable-error-code="no-any-return,no-untyped-call"

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.zoo.catalogue import Made, words
from benchmarks.zoo.own.collected import CATALOGUE


class EncoderClassifier(nn.Module):
    """A classifier of sequences with `nn.TransformerEncoder` and learned positions."""

    def __init__(self, inputs: int = 7, width: int = 32, length: int = 12, classes: int = 5) -> None:
        super().__init__()
        self.embedding = nn.Linear(inputs, width)
        self.positions = nn.Parameter(torch.randn(1, length, width) * 0.1)
        layer = nn.TransformerEncoderLayer(width, nhead=4, dim_feedforward=64, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embedding(x) + self.positions[:, : x.size(1)]
        return self.head(self.encoder(x).mean(dim=1))


@CATALOGUE.add
def transformer_encoder() -> Made:
    """Return a classifier of sequences with `nn.TransformerEncoder`."""
    return EncoderClassifier(), torch.randn(3, 9, 7)


class SinePositions(nn.Module):
    """Sines and cosines of the position, added to a sequence (length, batch, width)."""

    table: Tensor

    def __init__(self, width: int, longest: int = 50) -> None:
        super().__init__()
        position = torch.arange(longest).unsqueeze(1)
        rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        table = torch.zeros(longest, 1, width)
        table[:, 0, 0::2] = torch.sin(position * rate)
        table[:, 0, 1::2] = torch.cos(position * rate)
        self.register_buffer("table", table)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.size(0)]


class Translator(nn.Module):
    """`nn.Transformer` with word embeddings, sequence first, as in torch's tutorial."""

    def __init__(self, vocabulary: int = 40, width: int = 32) -> None:
        super().__init__()
        self.width = width
        self.source = nn.Embedding(vocabulary, width)
        self.target = nn.Embedding(vocabulary, width)
        self.positions = SinePositions(width)
        self.transformer = nn.Transformer(width, 4, 1, 2, 64, dropout=0.1)
        self.generator = nn.Linear(width, vocabulary)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        read = self.positions(self.source(source.t()) * math.sqrt(self.width))
        written = self.positions(self.target(target.t()) * math.sqrt(self.width))
        mask = nn.Transformer.generate_square_subsequent_mask(written.size(0))
        return self.generator(self.transformer(read, written, tgt_mask=mask)).transpose(0, 1)


@CATALOGUE.add
def translator() -> Made:
    """Return a translator with `nn.Transformer`."""
    return Translator(), (words(2, 8, 40), words(2, 6, 40))


class Captioner(nn.Module):
    """A convolutional encoder whose cells an `nn.TransformerDecoder` attends to."""

    def __init__(self, vocabulary: int = 30, width: int = 24) -> None:
        super().__init__()
        self.see = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, width, 3, 2, 1), nn.ReLU())
        self.word = nn.Embedding(vocabulary, width)
        layer = nn.TransformerDecoderLayer(width, 3, 48, batch_first=True, norm_first=True)
        self.decoder = nn.TransformerDecoder(layer, 2, norm=nn.LayerNorm(width))
        self.out = nn.Linear(width, vocabulary)

    def forward(self, image: Tensor, caption: Tensor) -> Tensor:
        cells = self.see(image).flatten(2).permute(0, 2, 1)
        causal = torch.triu(torch.ones(caption.size(1), caption.size(1), dtype=torch.bool), diagonal=1)
        return self.out(self.decoder(self.word(caption), cells, tgt_mask=causal))


@CATALOGUE.add
def captioner() -> Made:
    """Return a network that describes images with `nn.TransformerDecoder`."""
    return Captioner(), (torch.randn(2, 3, 16, 16), words(2, 5, 30))


class MultiheadBlock(nn.Module):
    """`nn.MultiheadAttention` in a block with norms before, and a class token."""

    def __init__(self, width: int = 32, heads: int = 4, classes: int = 5) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, kernel_size=4, stride=4)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.head = nn.Linear(width, classes)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1)
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        x = x + self.mlp(self.norm2(x))
        return self.head(x[:, 0])


@CATALOGUE.add
def multihead_attention() -> Made:
    """Return a vision transformer of one block with `nn.MultiheadAttention`."""
    return MultiheadBlock(), torch.randn(3, 3, 16, 16)


class FusedAttention(nn.Module):
    """Attention with one projection for queries, keys and values; the head's width is an attribute."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.num_heads = heads
        self.head_dim = width // heads
        self.scale = self.head_dim**-0.5
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        qkv = self.qkv(self.norm(x)).reshape(b, n, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        weights = ((q * self.scale) @ k.transpose(-2, -1)).softmax(dim=-1)
        return x + self.proj((weights @ v).transpose(1, 2).reshape(b, n, -1))


class FusedAttentionByWidth(FusedAttention):
    """The same; the head's width is computed from the width of the input."""

    def forward(self, x: Tensor) -> Tensor:
        b, n, c = x.shape
        qkv = self.qkv(self.norm(x)).reshape(b, n, 3, self.num_heads, c // self.num_heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        weights = (q @ k.transpose(-2, -1)) * self.scale
        x = x + self.proj((weights.softmax(dim=-1) @ v).transpose(1, 2).reshape(b, n, c))
        return x


def attention_stack(kind: type[FusedAttention]) -> nn.Module:
    """Return two blocks of a kind of attention between linear layers."""
    return nn.Sequential(nn.Linear(5, 24), kind(24, 3), kind(24, 3), nn.LayerNorm(24), nn.Linear(24, 4))


@CATALOGUE.add
def fused_qkv_head_dim() -> Made:
    """Return fused attention with an attribute for the head's width."""
    return attention_stack(FusedAttention), torch.randn(3, 6, 5)


@CATALOGUE.add
def fused_qkv_divided() -> Made:
    """Return fused attention that divides the input's width by the number of heads."""
    return attention_stack(FusedAttentionByWidth), torch.randn(3, 6, 5)


class EinsumAttention(nn.Module):
    """Attention with raw parameters and einsum, as the Mesh TensorFlow code of T5 does."""

    def __init__(self, inputs: int = 5, width: int = 24, heads: int = 4, size: int = 6, classes: int = 3) -> None:
        super().__init__()
        self.embed = nn.Linear(inputs, width)
        self.query = nn.Parameter(torch.randn(width, heads, size) / width**0.5)
        self.key = nn.Parameter(torch.randn(width, heads, size) / width**0.5)
        self.value = nn.Parameter(torch.randn(width, heads, size) / width**0.5)
        self.output = nn.Parameter(torch.randn(heads, size, width) / (heads * size) ** 0.5)
        self.classify = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        q = torch.einsum("bnd,dhk->bhnk", x, self.query)
        k = torch.einsum("bnd,dhk->bhnk", x, self.key)
        v = torch.einsum("bnd,dhk->bhnk", x, self.value)
        weights = torch.einsum("bhnk,bhmk->bhnm", q, k).softmax(-1)
        mixed = torch.einsum("bhnm,bhmk->bhnk", weights, v)
        x = x + torch.einsum("bhnk,hkd->bnd", mixed, self.output)
        return self.classify(x).mean(1)


@CATALOGUE.add
def einsum_attention() -> Made:
    """Return attention written with einsum."""
    return EinsumAttention(), torch.randn(3, 7, 5)


class Perceiver(nn.Module):
    """Learned queries that attend to a long input, with separate projections and torch's fused kernel."""

    def __init__(self, inputs: int = 6, queries: int = 4, width: int = 32, heads: int = 4, classes: int = 5) -> None:
        super().__init__()
        self.heads = heads
        self.latents = nn.Parameter(torch.randn(queries, width))
        self.to_q = nn.Linear(width, width, bias=False)
        self.to_kv = nn.Linear(inputs, 2 * width, bias=False)
        self.to_out = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))
        self.head = nn.Linear(width, classes)

    def split_heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        latents = self.latents.unsqueeze(0).repeat(x.size(0), 1, 1)
        keys, values = self.to_kv(x).chunk(2, dim=-1)
        q, k, v = map(self.split_heads, (self.to_q(latents), keys, values))
        mixed = functional.scaled_dot_product_attention(q, k, v)
        latents = latents + self.to_out(mixed.transpose(1, 2).flatten(2))
        latents = latents + self.mlp(self.norm(latents))
        return self.head(latents.mean(dim=1))


@CATALOGUE.add
def perceiver() -> Made:
    """Return cross attention from learned queries."""
    return Perceiver(), torch.randn(3, 11, 6)


class NonLocal(nn.Module):
    """A convolutional network with attention between pixels (Wang et al., Non-local neural networks, 2018)."""

    def __init__(self, width: int = 24, inner: int = 12, classes: int = 5) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True))
        self.theta = nn.Conv2d(width, inner, 1)
        self.phi = nn.Conv2d(width, inner, 1)
        self.g = nn.Conv2d(width, inner, 1)
        self.back = nn.Conv2d(inner, width, 1)
        self.gamma = nn.Parameter(torch.zeros(1))
        self.fc = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        batch, _, height, width = x.size()
        theta = self.theta(x).view(batch, -1, height * width).permute(0, 2, 1)
        phi = self.phi(x).view(batch, -1, height * width)
        g = self.g(x).view(batch, -1, height * width)
        weights = torch.softmax(torch.bmm(theta, phi), dim=-1)
        y = torch.bmm(g, weights.permute(0, 2, 1)).view(batch, -1, height, width)
        return self.fc((x + self.gamma * self.back(y)).mean([2, 3]))


@CATALOGUE.add
def non_local() -> Made:
    """Return a convolutional network with attention between pixels."""
    return NonLocal(), torch.randn(3, 3, 8, 8)
