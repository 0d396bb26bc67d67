"""Language models and their parts: tied embedding, fused projections, rotary positions, adapters, experts."""
# ruff: noqa: D102
# mypy: disable-error-code="no-any-return"

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.zoo.catalogue import Made, words
from benchmarks.zoo.own.collected import CATALOGUE

VOCABULARY = 40


class CausalAttention(nn.Module):
    """Masked attention that splits one projection by an attribute, as in nanoGPT."""

    mask: Tensor

    def __init__(self, n_embd: int, n_head: int, block_size: int) -> None:
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.n_head, self.n_embd = n_head, n_embd
        self.register_buffer("mask", torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size))

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(b, t, self.n_head, c // self.n_head).transpose(1, 2)
        q = q.view(b, t, self.n_head, c // self.n_head).transpose(1, 2)
        v = v.view(b, t, self.n_head, c // self.n_head).transpose(1, 2)
        weights = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        weights = weights.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        y = (functional.softmax(weights, dim=-1) @ v).transpose(1, 2).contiguous().view(b, t, c)
        return self.c_proj(y)


class SmallGPT(nn.Module):
    """A language model whose last layer is its embedding."""

    def __init__(self, width: int = 32, heads: int = 4, layers: int = 2, block_size: int = 16) -> None:
        super().__init__()
        self.wte = nn.Embedding(VOCABULARY, width)
        self.wpe = nn.Embedding(block_size, width)
        self.ln_1 = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.ln_2 = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.attn = nn.ModuleList(CausalAttention(width, heads, block_size) for _ in range(layers))
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(layers)
        )
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, VOCABULARY, bias=False)
        self.wte.weight = self.lm_head.weight

    def forward(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(tokens.size(1), device=tokens.device)
        x = self.wte(tokens) + self.wpe(positions)
        for ln_1, attn, ln_2, mlp in zip(self.ln_1, self.attn, self.ln_2, self.mlp, strict=True):
            x = x + attn(ln_1(x))
            x = x + mlp(ln_2(x))
        return self.lm_head(self.ln_f(x))


@CATALOGUE.add
def small_gpt() -> Made:
    """Return a language model in the manner of nanoGPT."""
    return SmallGPT(), words(2, 9, VOCABULARY)


class TiedFeedForward(nn.Module):
    """A bag of words predictor with a tied embedding."""

    def __init__(self, width: int = 24, hidden: int = 40) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens).mean(dim=1)
        x = x + self.down(functional.gelu(self.up(x)))
        return functional.linear(x, self.embedding.weight)


@CATALOGUE.add
def tied_embedding() -> Made:
    """Return a network whose embedding is also its last layer."""
    return TiedFeedForward(), words(3, 6, VOCABULARY)


class RootMeanSquareNorm(nn.Module):
    """RMSNorm as Llama's code has it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def rotate(x: Tensor, angles: Tensor) -> Tensor:
    """Turn pairs of numbers (first half, second half) by an angle for each position."""
    first, second = x.chunk(2, dim=-1)
    cosine, sine = angles.cos(), angles.sin()
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


class RotaryBlock(nn.Module):
    """Grouped-query attention with rotary positions, then SwiGLU."""

    frequencies: Tensor

    def __init__(self, width: int = 32, heads: int = 4, groups: int = 2, head_dim: int = 8, hidden: int = 48) -> None:
        super().__init__()
        self.heads, self.groups, self.head_dim = heads, groups, head_dim
        self.wq = nn.Linear(width, heads * head_dim, bias=False)
        self.wk = nn.Linear(width, groups * head_dim, bias=False)
        self.wv = nn.Linear(width, groups * head_dim, bias=False)
        self.wo = nn.Linear(heads * head_dim, width, bias=False)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)
        self.attention_norm, self.ffn_norm = RootMeanSquareNorm(width), RootMeanSquareNorm(width)
        self.register_buffer("frequencies", 1 / 100 ** (torch.arange(0, head_dim, 2) / head_dim))

    def repeated(self, x: Tensor) -> Tensor:
        b, groups, n, d = x.shape
        times = self.heads // self.groups
        return x[:, :, None].expand(b, groups, times, n, d).reshape(b, groups * times, n, d)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        y = self.attention_norm(x)
        angles = torch.arange(n)[:, None] * self.frequencies
        q = rotate(self.wq(y).view(b, n, self.heads, self.head_dim).transpose(1, 2), angles)
        k = rotate(self.wk(y).view(b, n, self.groups, self.head_dim).transpose(1, 2), angles)
        v = self.wv(y).view(b, n, self.groups, self.head_dim).transpose(1, 2)
        z = functional.scaled_dot_product_attention(q, self.repeated(k), self.repeated(v), is_causal=True)
        x = x + self.wo(z.transpose(1, 2).reshape(b, n, self.heads * self.head_dim))
        y = self.ffn_norm(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


@CATALOGUE.add
def rotary_grouped_query() -> Made:
    """Return a language model with grouped queries, rotary positions, SwiGLU and RMSNorm."""
    blocks = [RotaryBlock(), RotaryBlock()]
    model = nn.Sequential(nn.Embedding(VOCABULARY, 32), *blocks, RootMeanSquareNorm(32), nn.Linear(32, VOCABULARY))
    return model, words(2, 7, VOCABULARY)


class LowRank(nn.Module):
    """A linear layer with a low-rank addition (Hu et al., LoRA, 2021)."""

    def __init__(self, base: nn.Linear, rank: int = 4, alpha: float = 8) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.randn(rank, base.in_features) * 0.1)
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scaling = alpha / rank

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + (x @ self.lora_a.T @ self.lora_b.T) * self.scaling


@CATALOGUE.add
def lora() -> Made:
    """Return a perceptron all of whose layers but the last have low-rank additions."""
    layers = [LowRank(nn.Linear(10, 48)), nn.ReLU(), LowRank(nn.Linear(48, 32)), nn.ReLU(), nn.Linear(32, 4)]
    return nn.Sequential(*layers), torch.randn(3, 10)


class Experts(nn.Module):
    """Four experts; each token goes to the best two of a router, and experts run on their own tokens only."""

    def __init__(self, width: int, hidden: int, experts: int = 4, chosen: int = 2) -> None:
        super().__init__()
        self.chosen = chosen
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, hidden), nn.SiLU(), nn.Linear(hidden, width)) for _ in range(experts)
        )

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.reshape(-1, x.size(-1))
        weights, picks = torch.topk(self.router(tokens).softmax(dim=-1), self.chosen, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        result = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            rows, places = torch.where(picks == number)
            if rows.numel() == 0:
                continue
            result[rows] += weights[rows, places, None] * expert(tokens[rows])
        return result.view_as(x)


class ExpertModel(nn.Module):
    """A classifier of sequences with experts between residual connections."""

    def __init__(self, inputs: int = 6, width: int = 24, classes: int = 5) -> None:
        super().__init__()
        self.embed = nn.Linear(inputs, width)
        self.norm = nn.LayerNorm(width)
        self.experts = Experts(width, hidden=40)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        return self.head((x + self.experts(self.norm(x))).mean(dim=1))


@CATALOGUE.add
def mixture_of_experts() -> Made:
    """Return a mixture of experts with top-2 routing."""
    return ExpertModel(), torch.randn(3, 8, 6)


class SoftExperts(nn.Module):
    """All experts at once: their weights are stacked in one parameter each, and a softmax weighs the answers."""

    def __init__(self, inputs: int = 8, hidden: int = 20, classes: int = 3, experts: int = 4) -> None:
        super().__init__()
        self.gate = nn.Linear(inputs, experts)
        self.first = nn.Parameter(torch.randn(experts, inputs, hidden) / inputs**0.5)
        self.second = nn.Parameter(torch.randn(experts, hidden, classes) / hidden**0.5)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(torch.einsum("bi,eih->beh", x, self.first))
        answers = torch.einsum("beh,eho->beo", hidden, self.second)
        return (self.gate(x).softmax(-1).unsqueeze(-1) * answers).sum(1)


@CATALOGUE.add
def soft_experts() -> Made:
    """Return a mixture of experts whose weights are stacked."""
    return SoftExperts(), torch.randn(3, 8)
