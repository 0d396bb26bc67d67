"""Widths within a latency, over tables that are written down rather than measured."""

from collections.abc import Mapping
from typing import Any

import numpy
import pytest
import torch
from torch import nn

from topiarist.surgery.calibration import batches_for
from topiarist.surgery.choice.allotment import LimitError, Losses, lost_shares
from topiarist.surgery.choice.costs import Costs
from topiarist.surgery.choice.relaxation import thinned
from topiarist.tracing import anatomy


class StepTiming:
    """Time by blocks of units; `truth` is what a clock would say, times what is predicted."""

    def __init__(self, full: Mapping[str, int], block: int, truth: float = 1.0) -> None:
        self.full, self.block, self.truth, self.observed = full, block, truth, 0
        self.correction = 1.0

    @property
    def whole_ms(self) -> float:
        return float(self.truth * self._plain({}))

    def _plain(self, widths: Mapping[str, Any]) -> Any:
        blocks = {name: -(-numpy.asarray(width) // self.block) for name, width in {**self.full, **widths}.items()}
        return 1.0 + sum(blocks.values()) * self.block / 16

    def milliseconds(self, widths: Mapping[str, Any]) -> Any:
        return self.correction * self._plain(widths)

    def observe(self, widths: Mapping[str, int]) -> float:
        self.observed += 1
        self.correction = self.truth
        return float(self.truth * self._plain(widths))

    def saved_by_rank(self, name: str, rank: int) -> float:
        return 0.0

    def time_beside(self, network: nn.Module) -> float:
        return 1.0


def losses_of(block: int, truth: float = 1.0, multiple_of: int = 1) -> Losses:
    torch.manual_seed(0)  # noqa: TID251  # the network's first weights
    model = nn.Sequential(nn.Linear(6, 48), nn.Tanh(), nn.Linear(48, 40), nn.Tanh(), nn.Linear(40, 3))
    x = torch.randn(100, 6, generator=torch.Generator().manual_seed(0))
    found = anatomy(model, x[:2])
    costs = Costs(model, found)
    costs.timing = StepTiming(costs.widths, block, truth)
    return Losses(costs, lost_shares(model, found, batches_for(x, model, x[:2])), multiple_of)


@pytest.mark.parametrize("block", [8, 16])
@pytest.mark.parametrize("share", [0.5, 0.6, 0.8])
def test_steps_in_the_table_give_multiples(block: int, share: float) -> None:
    losses = losses_of(block)
    limit = share * float(losses.costs.latency_ms({}))
    widths = losses.within(latency_ms=limit)
    assert all(width % block == 0 for width in widths.values())
    assert losses.costs.latency_ms(widths) <= limit
    wider = [{**widths, name: width + 1} for name, width in widths.items() if width < losses.costs.widths[name]]
    assert all(losses.costs.latency_ms(each) > limit for each in wider)


def test_without_steps_any_width_is_taken() -> None:
    losses = losses_of(1)
    widths = losses.within(latency_ms=0.53 * float(losses.costs.latency_ms({})))
    assert any(width % 4 for width in widths.values())


def test_a_latency_that_is_kept_leaves_all_units() -> None:
    losses = losses_of(8)
    assert losses.within(latency_ms=100.0) == losses.costs.widths


def test_sizes_are_kept_beside_a_latency() -> None:
    losses = losses_of(8)
    limit = 0.7 * float(losses.costs.latency_ms({}))
    widths = losses.within(latency_ms=limit, parameters=900)
    assert losses.costs.parameters(widths) <= 900
    assert losses.costs.latency_ms(widths) <= limit


def test_a_latency_that_cannot_be_kept_is_one_line() -> None:
    with pytest.raises(LimitError, match=r"^a budget of 0\.5 milliseconds per sample cannot be met: 2 are the fewest"):
        losses_of(8).within(latency_ms=0.5)


@pytest.mark.parametrize("truth", [0.8, 1.0, 1.3])
def test_a_prediction_that_is_off_is_corrected_before_the_network_is_made(truth: float) -> None:
    losses = losses_of(1, truth)
    timing = losses.costs.timing
    assert isinstance(timing, StepTiming)
    limit = 0.6 * timing.whole_ms
    widths = losses.measured_within({"latency_ms": limit})
    assert 0.93 * limit <= timing.truth * timing._plain(widths) <= limit
    assert timing.observed <= 5


def test_few_of_many_widths_are_compared() -> None:
    possible = list(range(1, 2049))
    some = thinned(possible)
    assert len(some) <= 130
    assert some[0] == 1 and some[-1] == 2048
    assert all(width % 16 == 0 for width in some[1:])
    assert thinned([1, 2, 3]) == [1, 2, 3]
