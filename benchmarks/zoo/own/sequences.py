"""Sequences without recurrence: dilated convolutions, mixers, spectra, state spaces."""
# ruff: noqa: D102
# mypy: disable-error-code="no-any-return"

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from benchmarks.zoo.catalogue import Made, words
from benchmarks.zoo.own.collected import CATALOGUE


class TemporalBlock(nn.Module):
    """Two causal convolutions with weight norm and a shortcut (Bai et al., TCN, 2018)."""

    def __init__(self, inputs: int, outputs: int, dilation: int, kernel: int = 3) -> None:
        super().__init__()
        self.padding = (kernel - 1) * dilation
        self.conv1 = weight_norm(nn.Conv1d(inputs, outputs, kernel, dilation=dilation))
        self.conv2 = weight_norm(nn.Conv1d(outputs, outputs, kernel, dilation=dilation))
        self.downsample = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else None

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.conv1(functional.pad(x, (self.padding, 0))))
        y = torch.relu(self.conv2(functional.pad(y, (self.padding, 0))))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class TemporalNetwork(nn.Module):
    """A stack of temporal blocks whose last step is classified."""

    def __init__(self, classes: int = 4) -> None:
        super().__init__()
        self.network = nn.Sequential(TemporalBlock(3, 16, 1), TemporalBlock(16, 16, 2), TemporalBlock(16, 24, 4))
        self.linear = nn.Linear(24, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.network(x)[:, :, -1])


@CATALOGUE.add
def tcn_weight_norm() -> Made:
    """Return a temporal convolutional network with weight norm (a parametrization)."""
    return TemporalNetwork(), torch.randn(3, 3, 14)


class Wave(nn.Module):
    """Gated dilated convolutions with residual and skip connections (van den Oord et al., WaveNet, 2016)."""

    def __init__(self, levels: int = 16, residual: int = 16, skip: int = 24, layers: int = 3) -> None:
        super().__init__()
        self.levels = levels
        self.start = nn.Conv1d(levels, residual, 1)
        self.filters = nn.ModuleList(nn.Conv1d(residual, 20, 2, dilation=2**layer) for layer in range(layers))
        self.gates = nn.ModuleList(nn.Conv1d(residual, 20, 2, dilation=2**layer) for layer in range(layers))
        self.residuals = nn.ModuleList(nn.Conv1d(20, residual, 1) for _ in range(layers))
        self.skips = nn.ModuleList(nn.Conv1d(20, skip, 1) for _ in range(layers))
        self.end = nn.Sequential(nn.ReLU(), nn.Conv1d(skip, skip, 1), nn.ReLU(), nn.Conv1d(skip, levels, 1))

    def forward(self, samples: Tensor) -> Tensor:
        x = self.start(functional.one_hot(samples, self.levels).float().transpose(1, 2))
        skipped: Tensor | None = None
        for filters, gates, residual, skip in zip(self.filters, self.gates, self.residuals, self.skips, strict=True):
            gated = torch.tanh(filters(x)) * torch.sigmoid(gates(x))
            given = skip(gated)
            skipped = given if skipped is None else skipped[..., -given.size(-1) :] + given
            x = x[..., -gated.size(-1) :] + residual(gated)
        return self.end(skipped)


@CATALOGUE.add
def wavenet() -> Made:
    """Return gated dilated convolutions with skips."""
    return Wave(), words(2, 16, 16)


class MixerBlock(nn.Module):
    """A perceptron across tokens, then one across channels (Tolstikhin et al., 2021)."""

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.token_mix = nn.Sequential(nn.Linear(tokens, 20), nn.GELU(), nn.Linear(20, tokens))
        self.channel_mix = nn.Sequential(nn.Linear(width, 48), nn.GELU(), nn.Linear(48, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.token_mix(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channel_mix(self.norm2(x))


class Mixer(nn.Module):
    """An MLP-Mixer whose patches are cut by reshaping."""

    def __init__(self, size: int = 16, patch: int = 4, width: int = 24, classes: int = 5) -> None:
        super().__init__()
        self.patch = patch
        tokens = (size // patch) ** 2
        self.embed = nn.Linear(3 * patch * patch, width)
        self.blocks = nn.Sequential(MixerBlock(tokens, width), MixerBlock(tokens, width))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        b, c, h, w = x.shape
        p = self.patch
        x = x.reshape(b, c, h // p, p, w // p, p).permute(0, 2, 4, 3, 5, 1).reshape(b, (h // p) * (w // p), p * p * c)
        return self.head(self.norm(self.blocks(self.embed(x))).mean(dim=1))


@CATALOGUE.add
def mlp_mixer() -> Made:
    """Return an MLP-Mixer."""
    return Mixer(), torch.randn(3, 3, 16, 16)


class FourierMixer(nn.Module):
    """Tokens mixed by a Fourier transform (Lee-Thorp et al., FNet, 2021)."""

    def __init__(self, vocabulary: int = 40, width: int = 24, classes: int = 4) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.ffn = nn.Sequential(nn.Linear(width, 48), nn.GELU(), nn.Linear(48, width))
        self.head = nn.Linear(width, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        x = self.norm1(x + torch.fft.fft(x, dim=1).real)
        x = self.norm2(x + self.ffn(x))
        return self.head(x[:, 0])


@CATALOGUE.add
def fourier_mixer() -> Made:
    """Return tokens mixed by a Fourier transform."""
    return FourierMixer(), words(3, 8, 40)


class StateSpace(nn.Module):
    """A selective state space in plain torch: steps, gates and a depthwise convolution in the manner of Mamba."""

    def __init__(self, inputs: int = 6, width: int = 16, inner: int = 32, state: int = 4, classes: int = 3) -> None:
        super().__init__()
        self.inner, self.state = inner, state
        self.embed = nn.Linear(inputs, width)
        self.in_proj = nn.Linear(width, 2 * inner, bias=False)
        self.conv1d = nn.Conv1d(inner, inner, 3, padding=2, groups=inner)
        self.x_proj = nn.Linear(inner, 2 * state + 1, bias=False)
        self.dt_proj = nn.Linear(1, inner)
        self.log_a = nn.Parameter(torch.log(torch.arange(1, state + 1) + torch.rand(inner, state)))
        self.d = nn.Parameter(torch.ones(inner))
        self.out_proj = nn.Linear(inner, width, bias=False)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        length = x.size(1)
        inner, gate = self.in_proj(x).chunk(2, dim=-1)
        inner = functional.silu(self.conv1d(inner.transpose(1, 2))[..., :length].transpose(1, 2))
        step, b, c = self.x_proj(inner).split([1, self.state, self.state], dim=-1)
        step = functional.softplus(self.dt_proj(step))
        decay = torch.exp(step.unsqueeze(-1) * -torch.exp(self.log_a))
        driven = step.unsqueeze(-1) * b.unsqueeze(2) * inner.unsqueeze(-1)
        h, outputs = torch.zeros(x.size(0), self.inner, self.state), []
        for t in range(length):
            h = decay[:, t] * h + driven[:, t]
            outputs.append((h * c[:, t].unsqueeze(1)).sum(-1))
        y = (torch.stack(outputs, 1) + inner * self.d) * functional.silu(gate)
        return self.head((x + self.out_proj(y)).mean(1))


@CATALOGUE.add
def state_space() -> Made:
    """Return a selective state space written with loops."""
    return StateSpace(), torch.randn(2, 7, 6)


class SentenceConvolutions(nn.Module):
    """Convolutions of three widths over words, pooled by their maximum (Kim, 2014)."""

    def __init__(self, vocabulary: int = 50, width: int = 20, filters: int = 16, classes: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.convs = nn.ModuleList(nn.Conv2d(1, filters, (size, width)) for size in (2, 3, 4))
        self.fc = nn.Linear(3 * filters, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embedding(x).unsqueeze(1)
        maps = [torch.relu(conv(x)).squeeze(3) for conv in self.convs]
        return self.fc(torch.cat([functional.max_pool1d(each, each.size(2)).squeeze(2) for each in maps], 1))


@CATALOGUE.add
def sentence_convolutions() -> Made:
    """Return convolutions over words whose kernels span the embedding."""
    return SentenceConvolutions(), words(3, 9, 50)


class DepthwiseSpeech(nn.Module):
    """Depthwise-separable convolutions over a spectrogram, and statistics over time (an x-vector)."""

    def __init__(self, bands: int = 20, width: int = 32, classes: int = 6) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv1d(bands, width, 5, padding=2), nn.BatchNorm1d(width), nn.ReLU())
        self.separable = nn.Sequential(
            nn.Conv1d(width, width, 7, padding=3, groups=width), nn.Conv1d(width, 40, 1), nn.BatchNorm1d(40), nn.ReLU()
        )
        self.embedding, self.out = nn.Linear(80, 24), nn.Linear(24, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.separable(self.first(x))
        pooled = torch.cat((x.mean(dim=-1), x.std(dim=-1)), dim=1)
        return self.out(torch.relu(self.embedding(pooled)))


@CATALOGUE.add
def speech_statistics() -> Made:
    """Return a recogniser of speakers with statistics over time."""
    return DepthwiseSpeech(), torch.randn(3, 20, 16)
