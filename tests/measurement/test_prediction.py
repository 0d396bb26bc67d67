"""The time of a whole network, predicted from its layers; with a clock that counts instead of waiting."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import nn

from topiarist.measurement.cost import count_macs
from topiarist.measurement.tables.layer_times import LayerTimes
from topiarist.measurement.tables.prediction import LatencyModel, skeleton
from topiarist.measurement.tables.torch_layers import Point
from topiarist.surgery.choice.costs import Costs
from topiarist.tracing import anatomy

PER_PRODUCT, PER_ELEMENT, FIXED = 1e-6, 1e-5, 0.05  # milliseconds


class ProductTimer:
    """Layers that take as long as they have multiplications."""

    def seconds(self, points: Sequence[Point]) -> list[float]:
        return [self._products(*point) * PER_PRODUCT / 1000 for point in points]

    def _products(self, geometry: Any, inputs: int, outputs: int) -> float:
        places = geometry.size[0] * (1 if geometry.kind == "linear" else geometry.size[1])
        kernel = 9 if geometry.kind == "convolution" else 1
        return float(inputs * outputs // geometry.groups_at(outputs) * places * kernel)


def true_ms(network: nn.Module, x: torch.Tensor) -> float:
    """What the clock says: layers, a time per element of convolutions, and a fixed time."""
    elements = 64 * sum(each.out_channels for each in network.modules() if isinstance(each, nn.Conv2d))
    return PER_PRODUCT * count_macs(network, x) + PER_ELEMENT * elements + FIXED


@pytest.fixture
def model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 24, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(24, 32, 3, padding=1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )


@pytest.fixture
def timed(model: nn.Module, monkeypatch: pytest.MonkeyPatch) -> LatencyModel:
    x = torch.zeros(2, 3, 8, 8)
    home = "topiarist.measurement.tables.prediction"
    monkeypatch.setattr(f"{home}.network_call", lambda network, example, **_: true_ms(network, example))
    monkeypatch.setattr(f"{home}.time_together", lambda calls, **_: list(calls))
    found = anatomy(model, x)
    return LatencyModel(model, found, Costs(model, found), x[:1], table=LayerTimes(ProductTimer()))


def test_the_whole_network_takes_what_was_measured(model: nn.Module, timed: LatencyModel) -> None:
    assert timed.milliseconds({}) == pytest.approx(true_ms(model, torch.zeros(1, 3, 8, 8)))
    assert timed.whole_ms == timed.observed[0][1]


@pytest.mark.parametrize("widths", [{"0": 5}, {"0": 9, "2": 7, "4": 30}, {"4": 11}, {"0": 16, "2": 8, "4": 8}])
def test_other_widths_take_what_a_network_of_these_widths_takes(timed: LatencyModel, widths: dict[str, int]) -> None:
    cut = skeleton(timed.model, timed.anatomy, widths)
    assert cut is not None
    truth = true_ms(cut, torch.zeros(1, 3, 8, 8))
    assert timed.milliseconds(widths) == pytest.approx(truth, rel=0.05)
    assert timed.observe(widths) == pytest.approx(truth)
    assert timed.milliseconds(widths) == pytest.approx(truth)


def test_many_widths_at_once_are_those_one_by_one(timed: LatencyModel) -> None:
    several = timed.milliseconds({"0": torch.arange(1, 17).numpy(), "2": 10})
    assert several.tolist() == pytest.approx([float(timed.milliseconds({"0": w, "2": 10})) for w in range(1, 17)])


def test_a_busy_machine_is_corrected_for(timed: LatencyModel, monkeypatch: pytest.MonkeyPatch) -> None:
    calm = true_ms(skeleton(timed.model, timed.anatomy, {"2": 3}) or timed.model, torch.zeros(1, 3, 8, 8))
    monkeypatch.setattr(
        "topiarist.measurement.tables.prediction.time_together", lambda calls, **_: [2 * call for call in calls]
    )
    assert timed.observe({"2": 3}) == pytest.approx(calm)
    assert timed.time_beside(timed.model) == pytest.approx(timed.whole_ms)


def test_a_rank_saves_what_two_thin_layers_save(timed: LatencyModel) -> None:
    whole, thin = 24 * 32 * 64 * 9, 24 * 4 * 64 * 9 + 4 * 32 * 64 * 9  # the fake knows no kernel of one position
    assert timed.saved_by_rank("4", 4) == pytest.approx(PER_PRODUCT * (whole - thin), rel=0.35)
    assert timed.saved_by_rank("4", 4) > timed.saved_by_rank("4", 12)
    assert timed.saved_by_rank("nowhere", 4) == 0.0


def test_the_network_is_left_as_it_was(model: nn.Module, timed: LatencyModel) -> None:
    assert model.training
    assert [each.out_channels for each in model.children() if isinstance(each, nn.Conv2d)] == [16, 24, 32]
    assert timed.model is model
