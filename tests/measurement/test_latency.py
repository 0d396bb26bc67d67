import time
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from topiarist.errors import ModelError, SettingsError
from topiarist.measurement.latency import Latency, in_turn, is_stable, time_sample
from topiarist.models import mlp


class Counting(nn.Module):
    """Notes the threads and the mode of every call, and sleeps."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self.seconds = seconds
        self.calls: list[tuple[int, bool, bool]] = []

    def forward(self, x: Tensor) -> Tensor:
        self.calls.append((torch.get_num_threads(), self.training, torch.is_grad_enabled()))
        time.sleep(self.seconds)
        return x


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_set_and_restored(threads: int) -> None:
    before, model = torch.get_num_threads(), Counting()
    latency = time_sample(model, torch.ones(1, 2), repeats=7, threads=threads)
    assert torch.get_num_threads() == before and model.training
    assert set(model.calls) == {(threads, False, False)}
    assert latency.median_ms > 0 and latency.spread_ms >= 0


def test_threads_are_restored_after_an_error() -> None:
    before = torch.get_num_threads()
    with pytest.raises(ModelError):
        time_sample(mlp([3, 2]), torch.ones(1, 2), threads=before + 1)
    assert torch.get_num_threads() == before


@pytest.mark.slow
def test_a_slow_network_is_timed_a_few_times() -> None:
    model = Counting(seconds=0.1)
    time_sample(model, torch.ones(1, 2))
    assert 6 <= len(model.calls) <= 8


def test_fewer_repeats_are_obeyed() -> None:
    model = Counting(seconds=0.05)
    latency = time_sample(model, torch.ones(1, 2), repeats=1)
    assert len(model.calls) == 2 and latency.spread_ms == 0


def test_stable_means_a_narrow_range_or_many_repeats() -> None:
    assert is_stable([1.0] * 25)
    assert not is_stable([1.0, 2.0, 3.0] * 9)
    assert is_stable([1.0, 1.01, 1.02] * 9)


def test_what_is_timed_in_turn_counts_by_its_fastest_round() -> None:
    rounds = {"one": iter([3.0, 1.0, 2.0]), "other": iter([4.0, 5.0, 4.5])}
    timers = {name: partial(lambda times: Latency(next(times), 0.0), times) for name, times in rounds.items()}
    assert {name: found.median_ms for name, found in in_turn(timers, rounds=3).items()} == {"one": 1.0, "other": 4.0}


def test_settings_make_sense() -> None:
    with pytest.raises(SettingsError, match="repeats must be at least 1; found 0"):
        time_sample(mlp([2, 2]), torch.ones(1, 2), repeats=0)
    with pytest.raises(SettingsError, match="threads must be at least 1; found 0"):
        time_sample(mlp([2, 2]), torch.ones(1, 2), threads=0)
