"""Recurrent layers over long sequences: a few steps are followed, and show what all of them would."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from tests.tracing.cutting import assert_same, computed, halves, without
from topiarist import anatomy, surgery
from topiarist.errors import ModelError
from topiarist.randomness import isolated
from topiarist.surgery.choice.costs import Costs
from topiarist.tracing import recurrences
from topiarist.tracing.operation import Operation
from topiarist.tracing.tracer import Tracer


class Reader(nn.Module):
    """Reads sequences, as they are or packed, in the lengths that it is told."""

    def __init__(self, memory: nn.LSTM | nn.GRU | nn.RNN, outputs: int, packed: bool) -> None:
        super().__init__()
        self.stem = nn.Linear(4, 8)
        self.memory, self.packed = memory, packed
        self.head = nn.Linear(outputs, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.stem(x))
        lengths = torch.arange(y.shape[1], 0, -1)[: len(y)]
        given, _ = self.memory(pack_padded_sequence(y, lengths, batch_first=True) if self.packed else y)
        states: Tensor = self.head(given.data if self.packed else given)
        return states


def with_lstm(packed: bool = False) -> nn.Module:
    return Reader(nn.LSTM(8, 6, batch_first=True), 6, packed)


READERS: dict[str, Callable[[], nn.Module]] = {
    "lstm": with_lstm,
    "packed lstm": lambda: with_lstm(packed=True),
    "gru of two layers in both directions": lambda: Reader(
        nn.GRU(8, 6, num_layers=2, bidirectional=True, batch_first=True), 12, False
    ),
    "packed gru": lambda: Reader(nn.GRU(8, 6, batch_first=True), 6, True),
    "rnn": lambda: Reader(nn.RNN(8, 6, batch_first=True), 6, False),
    "relu rnn with dropout": lambda: Reader(
        nn.RNN(8, 6, num_layers=2, nonlinearity="relu", dropout=0.5, batch_first=True), 6, False
    ),
    "lstm with a projection": lambda: Reader(nn.LSTM(8, 6, proj_size=4, batch_first=True), 4, False),
}


def made(make: Callable[[], nn.Module]) -> nn.Module:
    with isolated(3):
        return make().double().eval()


def sequences(steps: int) -> Tensor:
    return torch.randn(2, steps, 4, generator=torch.Generator().manual_seed(steps), dtype=torch.float64)


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count the operations that tracing sees."""
    seen: Counter[str] = Counter()
    follow = Tracer.follow

    def counting(self: Tracer, operation: Operation) -> None:
        seen[operation.name] += 1
        follow(self, operation)

    with monkeypatch.context() as patch:
        patch.setattr(Tracer, "follow", counting)
        yield seen


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_a_thousand_steps_are_traced_and_proven_as_ten_are(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, seen, found = made(READERS[name]), [], []
    for steps in (10, 1000):
        with counted(monkeypatch) as operations:
            found.append(anatomy(model, sequences(steps)))
            surgery.remove(model, sequences(steps), units=halves(found[-1]), anatomy=found[-1])
        seen.append(operations)
    assert seen[0] == seen[1]
    assert str(found[0]) == str(found[1])
    assert "memory" in found[0].free


@pytest.mark.parametrize("name", READERS)
def test_a_few_steps_show_what_all_of_them_do(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = made(READERS[name]), sequences(11)
    short = anatomy(model, x)
    monkeypatch.setattr(recurrences, "FUNCTIONS", frozenset())
    whole = anatomy(model, x)
    assert str(short) == str(whole)
    assert short.calls.keys() == whole.calls.keys()
    assert all(short.calls[layer].shape == whole.calls[layer].shape for layer in whole.calls)
    for space in whole.spaces.values():
        assert (short.spaces[space.name].units == space.units).all()
    for halved in ([], ["memory"], list(whole.free)):
        widths = {space: whole.free[space].size // 2 for space in halved}
        assert Costs(model, short).macs(widths) == Costs(model, whole).macs(widths) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_a_cut_equals_the_network_that_runs_step_by_step_without_the_units(name: str) -> None:
    model, x = made(READERS[name]), sequences(11)
    found = anatomy(model, x)
    units = halves(found)
    cut = surgery.remove(model, x, units=units, anatomy=found)
    assert_same(computed(cut, x), without(model, x, found, units))


def test_the_proof_of_a_long_sequence_finds_a_number_of_units_in_the_code() -> None:
    class Counting(Reader):
        def forward(self, x: Tensor) -> Tensor:
            states = self.memory(torch.relu(self.stem(x)))[0]
            given: Tensor = self.head(states * torch.arange(states.shape[2]).to(states))
            return given

    model = made(lambda: Counting(nn.LSTM(8, 6, batch_first=True), 6, False))
    found = anatomy(model, sequences(50))
    with pytest.raises(ModelError, match="memory"):
        surgery.remove(model, sequences(50), units={"memory": [0, 1]}, anatomy=found)


def test_steps_that_are_units_are_followed_one_by_one() -> None:
    class Positions(Reader):
        def __init__(self) -> None:
            super().__init__(nn.LSTM(4, 6, batch_first=True), 6, False)
            self.positions = nn.Parameter(torch.randn(12, 4))

        def forward(self, x: Tensor) -> Tensor:
            states = self.memory(self.positions[None].expand(len(x), -1, -1))[0]
            given: Tensor = self.head(states) + x.mean()
            return given

    found = anatomy(made(Positions), sequences(5))
    assert found["positions"].size == 12
    assert "picked one by one" in str(found["positions"].reason)
