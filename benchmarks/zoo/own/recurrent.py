"""Recurrent networks: torch's layers, cells in loops, and mixtures with convolutions and attention."""
# ruff: noqa: D102
# mypy: disable-error-code="no-any-return"

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.zoo.catalogue import Made, words
from benchmarks.zoo.own.collected import CATALOGUE


class LastStep(nn.Module):
    """A recurrent layer whose last step is classified."""

    def __init__(self, recurrent: nn.LSTM | nn.GRU | nn.RNN, classes: int = 4) -> None:
        super().__init__()
        self.recurrent = recurrent
        directions = 2 if recurrent.bidirectional else 1
        self.classify = nn.Linear(directions * recurrent.hidden_size, classes)

    def forward(self, x: Tensor) -> Tensor:
        outputs, _ = self.recurrent(x)
        return self.classify(outputs[:, -1])


@CATALOGUE.add
def lstm_two_layers() -> Made:
    """Return a classifier of sequences with an LSTM of two layers."""
    return LastStep(nn.LSTM(6, 32, num_layers=2, batch_first=True, dropout=0.1)), torch.randn(3, 7, 6)


@CATALOGUE.add
def lstm_bidirectional() -> Made:
    """Return a classifier of sequences with a bidirectional LSTM of two layers."""
    return LastStep(nn.LSTM(6, 24, num_layers=2, batch_first=True, bidirectional=True)), torch.randn(3, 7, 6)


@CATALOGUE.add
def rnn_tanh() -> Made:
    """Return a classifier of sequences with Elman's network."""
    return LastStep(nn.RNN(6, 32, batch_first=True)), torch.randn(3, 7, 6)


class Tagger(nn.Module):
    """A tag for each word: embedding, bidirectional GRU, two linear layers."""

    def __init__(self, vocabulary: int = 50, width: int = 20, hidden: int = 24, tags: int = 6) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=0)
        self.gru = nn.GRU(width, hidden, batch_first=True, bidirectional=True)
        self.hidden2tag = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.Tanh(), nn.Linear(hidden, tags))

    def forward(self, sentence: Tensor) -> Tensor:
        return functional.log_softmax(self.hidden2tag(self.gru(self.embedding(sentence))[0]), dim=-1)


@CATALOGUE.add
def gru_tagger() -> Made:
    """Return a tagger of words with a GRU."""
    return Tagger(), words(2, 8, 50)


class HiddenState(nn.Module):
    """A GRU whose final hidden states of all layers are joined, sequence first."""

    def __init__(self, inputs: int = 5, hidden: int = 20, classes: int = 3) -> None:
        super().__init__()
        self.gru = nn.GRU(inputs, hidden, num_layers=2)
        self.out = nn.Linear(2 * hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        _, state = self.gru(x.transpose(0, 1))
        return self.out(torch.cat((state[0], state[1]), dim=1))


@CATALOGUE.add
def gru_hidden_state() -> Made:
    """Return a classifier of the hidden states of a GRU."""
    return HiddenState(), torch.randn(3, 7, 5)


class CellLoop(nn.Module):
    """Two `nn.LSTMCell` in a loop, with states made of zeros, which goes on to predict its own input."""

    def __init__(self, hidden: int = 32, ahead: int = 3) -> None:
        super().__init__()
        self.hidden, self.ahead = hidden, ahead
        self.first = nn.LSTMCell(1, hidden)
        self.second = nn.LSTMCell(hidden, hidden)
        self.linear = nn.Linear(hidden, 1)

    def forward(self, x: Tensor) -> Tensor:
        zeros = [torch.zeros(x.size(0), self.hidden) for _ in range(4)]
        h1, c1, h2, c2 = zeros
        outputs: list[Tensor] = []
        for step in range(x.size(1) + self.ahead):
            value = x[:, step : step + 1] if step < x.size(1) else outputs[-1]
            h1, c1 = self.first(value, (h1, c1))
            h2, c2 = self.second(h1, (h2, c2))
            outputs.append(self.linear(h2))
        return torch.cat(outputs, dim=1)


@CATALOGUE.add
def lstm_cell_loop() -> Made:
    """Return a network that continues a curve with LSTM cells."""
    return CellLoop(), torch.randn(3, 6)


class OwnGatedCell(nn.Module):
    """A gated recurrent cell written out, with one matrix for two gates."""

    def __init__(self, inputs: int = 5, hidden: int = 24, classes: int = 3) -> None:
        super().__init__()
        self.gates = nn.Linear(inputs + hidden, 2 * hidden)
        self.candidate = nn.Linear(inputs + hidden, hidden)
        self.out = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[0], self.candidate.out_features)
        for step in x.unbind(dim=1):
            reset, update = self.gates(torch.cat([step, h], 1)).sigmoid().chunk(2, 1)
            proposed = torch.tanh(self.candidate(torch.cat([step, reset * h], 1)))
            h = (1 - update) * h + update * proposed
        return self.out(h)


@CATALOGUE.add
def own_gated_cell() -> Made:
    """Return a recurrent network with a cell of its own."""
    return OwnGatedCell(), torch.randn(3, 6, 5)


class AttentiveDecoder(nn.Module):
    """Sequence to sequence with additive attention (Bahdanau et al., 2015)."""

    def __init__(self, vocabulary: int = 30, width: int = 16, hidden: int = 24) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.encoder = nn.GRU(width, hidden, batch_first=True)
        self.cell = nn.GRUCell(width + hidden, hidden)
        self.query, self.key, self.energy = nn.Linear(hidden, 20), nn.Linear(hidden, 20), nn.Linear(20, 1)
        self.out = nn.Linear(2 * hidden, vocabulary)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory, last = self.encoder(self.embed(source))
        keys, state, answers = self.key(memory), last.squeeze(0), []
        for word in self.embed(target).unbind(1):
            scores = self.energy(torch.tanh(self.query(state)[:, None] + keys)).squeeze(-1)
            context = torch.bmm(scores.softmax(1)[:, None], memory)[:, 0]
            state = self.cell(torch.cat((word, context), 1), state)
            answers.append(self.out(torch.cat((state, context), 1)))
        return torch.stack(answers, dim=1)


@CATALOGUE.add
def attentive_decoder() -> Made:
    """Return a recurrent translator with additive attention."""
    return AttentiveDecoder(), (words(2, 6, 30), words(2, 4, 30))


class TextReader(nn.Module):
    """Convolutions, then a bidirectional LSTM over the columns (Shi et al., CRNN, 2015)."""

    def __init__(self, letters: int = 12, hidden: int = 24) -> None:
        super().__init__()
        self.cnn = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d((2, 1)),
        )
        self.rnn = nn.LSTM(32 * 4, hidden, bidirectional=True)
        self.fc = nn.Linear(2 * hidden, letters)

    def forward(self, image: Tensor) -> Tensor:
        features = self.cnn(image)
        batch, channels, height, width = features.shape
        columns = features.permute(3, 0, 1, 2).reshape(width, batch, channels * height)
        return self.fc(self.rnn(columns)[0]).log_softmax(2)


@CATALOGUE.add
def text_reader() -> Made:
    """Return a reader of text lines: convolutions and an LSTM."""
    return TextReader(), torch.randn(2, 1, 16, 20)


class ConvolutionalMemory(nn.Module):
    """A convolutional LSTM (Shi et al., 2015) over frames."""

    def __init__(self, hidden: int = 16) -> None:
        super().__init__()
        self.hidden = hidden
        self.gates = nn.Conv2d(1 + hidden, 4 * hidden, 3, padding=1)
        self.out = nn.Conv2d(hidden, 1, 1)

    def forward(self, frames: Tensor) -> Tensor:
        batch, steps, _, height, width = frames.shape
        h = torch.zeros(batch, self.hidden, height, width)
        c = torch.zeros_like(h)
        for step in range(steps):
            joined = self.gates(torch.cat([frames[:, step], h], dim=1))
            i, f, o, g = torch.split(joined, self.hidden, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return self.out(h)


@CATALOGUE.add
def convolutional_lstm() -> Made:
    """Return a convolutional LSTM that predicts the next frame."""
    return ConvolutionalMemory(), torch.randn(2, 4, 1, 8, 8)
