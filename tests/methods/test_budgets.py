"""Budgets are kept, or refused with a figure that can be kept."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.methods.tasks import data_for, perceptron
from topiarist import load, save
from topiarist.data import Data, Part
from topiarist.errors import SettingsError, TopiaristWarning
from topiarist.measurement import Budget, BudgetError
from topiarist.measurement.cost import count_macs
from topiarist.measurement.latency import Latency
from topiarist.methods import (
    Distinctiveness,
    Factorisation,
    FineTuning,
    Genetic,
    GeneticFront,
    Method,
    Outcome,
    published,
    resize,
    resizing,
)
from topiarist.surgery import RemoveUnits, SettleNetwork
from topiarist.surgery.choice.costs import Costs
from topiarist.surgery.edits.kinds import MOST_SETTLING_STEPS
from topiarist.surgery.settling.settler import settle_edits
from topiarist.tracing import Anatomy

METHODS: dict[str, Method] = {
    "distinctiveness": Distinctiveness(),
    "genetic": Genetic(population=20, generations=10),
    "genetic front": GeneticFront(population=20, generations=10),
}


@pytest.fixture
def model() -> nn.Module:
    return perceptron(8, 30, 20, 3)


@pytest.fixture
def data(model: nn.Module) -> Data:
    return data_for(model, 8)


def resized(model: nn.Module, data: Data, method: Method | None = None, **others: Any) -> Outcome:
    budget = {name: others.pop(name) for name in list(others) if name in Budget.model_fields}
    chosen = Distinctiveness() if method is None else method
    return resize(model, data, chosen, budget=Budget(**budget), latency=False, **others)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "limits",
    [
        {"parameters": 300},
        {"macs": 250},
        {"file_kb": 2.0},
        {"memory_kb": 1.2},
        {"parameters": 500, "macs": 200, "file_kb": 2.5, "memory_kb": 1.5},
    ],
)
def test_sizes_are_kept(model: nn.Module, data: Data, tmp_path: Path, method: str, limits: dict[str, Any]) -> None:
    outcome = resized(model, data, METHODS[method], **limits)
    assert outcome.after.parameters <= limits.get("parameters", 10**9)
    assert outcome.after.macs <= limits.get("macs", 10**9)
    assert outcome.after.memory_kb <= limits.get("memory_kb", 10**9)
    for given in (None, data):
        path = save(outcome.model, tmp_path / "small.safetensors", data=given)
        assert path.stat().st_size <= 1024 * limits.get("file_kb", 10**9)
        assert path.stat().st_size == round(1024 * outcome.after.file_kb)
    assert load(tmp_path / "small.safetensors")(data.train.x[:2]).shape == (2, 3)  # type: ignore[union-attr]


@pytest.mark.parametrize("limits", [{"parameters": 300}, {"macs": 250}, {"file_kb": 2.0}, {"memory_kb": 1.2}])
def test_what_is_allowed_is_used(model: nn.Module, data: Data, limits: dict[str, Any]) -> None:
    after = resized(model, data, **limits).after
    (limit,) = limits.values()
    found = getattr(after, next(iter(limits)))
    assert 0.8 * limit < found <= limit


def test_only_the_network_that_a_search_ends_with_is_settled(
    model: nn.Module, data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled = []

    def counting(whole: nn.Module, cut: nn.Module, *others: Any, **named: Any) -> None:
        settled.append(cut)
        settle_edits(whole, cut, *others, **named)

    monkeypatch.setattr(resizing, "settle_edits", counting)
    outcome = resized(model, data, file_kb=2.0)
    assert [id(network) for network in settled] == [id(outcome.model)]
    assert isinstance(outcome.plan.edits[-1], SettleNetwork)
    assert outcome.plan.edits[-1].steps < MOST_SETTLING_STEPS


def test_a_network_that_fits_already_stays(model: nn.Module, data: Data) -> None:
    outcome = resized(model, data, parameters=10**6, file_kb=10**6, macs=10**9)
    assert outcome.plan.edits == () and outcome.after.parameters == outcome.before.parameters


@pytest.mark.parametrize("rounds", [2, 3])
def test_a_budget_can_be_reached_in_rounds(model: nn.Module, data: Data, rounds: int) -> None:
    method = Distinctiveness(rounds=rounds)
    outcome = resized(model, data, method, parameters=200, retraining=FineTuning(epochs=1))
    assert outcome.after.parameters <= 200
    cuts = [edit for edit in outcome.plan if isinstance(edit, RemoveUnits)]
    assert len(cuts) == len(outcome.histories) == rounds


def clock(network: nn.Module, sample: Tensor, **_: Any) -> Latency:
    """A clock that counts operations, and has a constant part as real ones do."""
    return Latency(median_ms=0.1 + count_macs(network, sample) / 10_000, spread_ms=0.0)


class CountingTiming:
    """A table that agrees with the clock above, and was never measured."""

    def __init__(self, model: nn.Module, anatomy: Anatomy, costs: Costs, example: Any, **_: Any) -> None:
        self.costs, self.example, self.observed = costs, example, 0
        self.whole_ms = self.milliseconds({})

    def milliseconds(self, widths: Mapping[str, Any]) -> Any:
        return 0.1 + self.costs.macs(widths) / 10_000

    def observe(self, widths: Mapping[str, int]) -> float:
        self.observed += 1
        return float(self.milliseconds(widths))

    def saved_by_rank(self, name: str, rank: int) -> float:
        (inputs, outputs) = {"hidden0": (8, 30), "hidden1": (30, 20), "output": (20, 3)}[name]
        return (inputs * outputs - rank * (inputs + outputs)) / 10_000

    def time_beside(self, network: nn.Module) -> float:
        return clock(network, self.example).median_ms


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topiarist.measurement.runtimes.time_sample", clock)
    monkeypatch.setattr("topiarist.methods.job.LatencyModel", CountingTiming)


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("method", [*METHODS, "factorisation"])
@pytest.mark.slow
def test_every_method_that_cuts_keeps_a_latency(model: nn.Module, data: Data, method: str) -> None:
    chosen = METHODS.get(method, Factorisation())
    after = resized(model, data, chosen, latency_ms=0.14).after
    assert 100 < after.macs <= 400


@pytest.mark.slow
@pytest.mark.usefixtures("counted")
def test_a_latency_is_kept(model: nn.Module, data: Data) -> None:
    assert 200 < resized(model, data, latency_ms=0.13).after.macs <= 300
    with pytest.raises(BudgetError, match=r"ms per sample, the budget is 0\.1"):
        resized(model, data, latency_ms=0.1)


@pytest.mark.slow
@pytest.mark.usefixtures("counted")
def test_a_latency_near_the_lowest_possible_is_kept(model: nn.Module, data: Data) -> None:
    """The smallest network takes 0.1012 ms."""
    assert resized(model, data, latency_ms=0.102).after.macs <= 20


def test_a_latency_that_is_kept_already_cuts_nothing(model: nn.Module, data: Data) -> None:
    assert resized(model, data, latency_ms=10_000.0).plan.edits == ()


FIGURE = re.compile(r"the nearest network has ([0-9,.]+) (.+?), the budget is")


def nearest(error: BudgetError) -> float:
    found = FIGURE.search(str(error))
    assert found is not None, str(error)
    return float(found[1].replace(",", ""))


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    ["distinctiveness", "genetic", "genetic front"],
)
@pytest.mark.parametrize("name", ["parameters", "macs"])
def test_a_size_that_cannot_be_kept_is_refused_with_one_that_can(
    model: nn.Module, data: Data, name: str, method: str
) -> None:
    with pytest.raises(BudgetError, match="cannot be met") as refused:
        resized(model, data, METHODS[method], **{name: 1})
    figure = int(nearest(refused.value))
    outcome = resized(model, data, METHODS[method], **{name: figure})
    assert getattr(outcome.after, name) <= figure
    if method == "distinctiveness":
        with pytest.raises(BudgetError):
            resized(model, data, METHODS[method], **{name: figure - 1})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "limit", "words"), [("file_kb", 0.5, "KB on disk"), ("memory_kb", 0.05, "KB in memory")]
)
def test_a_size_in_kb_that_cannot_be_kept_is_refused_with_one_that_can(
    model: nn.Module, data: Data, name: str, limit: float, words: str
) -> None:
    with pytest.raises(BudgetError, match=words) as refused:
        resized(model, data, None, **{name: limit})
    figure = nearest(refused.value)
    assert getattr(resized(model, data, None, **{name: figure}).after, name) <= figure


@pytest.mark.slow
def test_a_latency_that_cannot_be_kept_is_refused(model: nn.Module, data: Data) -> None:
    with pytest.raises(BudgetError, match="ms per sample") as refused:
        resized(model, data, latency_ms=1e-6)
    assert 0 < nearest(refused.value) < 100


@pytest.mark.parametrize("settings", [{"multiple_of": 4}, {"spaces": ("hidden1",)}])
def test_a_method_that_cannot_cut_so_far_says_so_too(model: nn.Module, data: Data, settings: dict[str, Any]) -> None:
    with pytest.raises(BudgetError, match=r"the budget is 1$") as refused:
        resized(model, data, Distinctiveness(**settings), parameters=1)
    figure = int(nearest(refused.value))
    assert resized(model, data, Distinctiveness(**settings), parameters=figure).after.parameters <= figure


@pytest.mark.slow
@pytest.mark.parametrize(("rounds", "limits"), [(2, {"file_kb": 0.1}), (4, {"parameters": 1})])
def test_in_rounds_too_a_size_that_cannot_be_kept_is_refused(
    model: nn.Module, data: Data, rounds: int, limits: dict[str, Any]
) -> None:
    with pytest.raises(BudgetError, match="the budget cannot be met"):
        resized(model, data, Distinctiveness(rounds=rounds), retraining=FineTuning(epochs=1), **limits)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_no_more_is_lost_than_is_allowed(model: nn.Module, data: Data, method: str, loss: float) -> None:
    outcome = resized(model, data, METHODS[method], max_drop=loss)
    before, after = outcome.score
    assert after >= before - loss
    assert outcome.after.parameters <= outcome.before.parameters


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    ["distinctiveness", "genetic", "genetic front"],
)
def test_whatever_may_be_lost_a_network_is_found(model: nn.Module, data: Data, method: str) -> None:
    outcome = resized(model, data, METHODS[method], max_drop=0.9)
    assert outcome.after.parameters < outcome.before.parameters


@pytest.mark.slow
def test_the_more_may_be_lost_the_smaller_the_network(model: nn.Module, data: Data) -> None:
    sizes = [resized(model, data, max_drop=loss).after.parameters for loss in (0.01, 0.9)]
    assert sizes[0] > sizes[-1] == 8 + 1 + 1 + 1 + 3 + 3


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"multiple_of": 4}, {"spaces": ("hidden1",)}])
def test_a_method_that_cannot_cut_all_finds_the_smallest_too(
    model: nn.Module, data: Data, settings: dict[str, Any]
) -> None:
    outcome = resized(model, data, Distinctiveness(**settings), max_drop=0.9)
    assert outcome.after.parameters < outcome.before.parameters


@pytest.mark.slow
def test_where_nothing_can_go_the_network_stays_and_is_not_the_argument(model: nn.Module, data: Data) -> None:
    def size(network: nn.Module) -> float:
        return float(sum(parameter.numel() for parameter in network.parameters()))

    outcome = resized(model, data, max_drop=0.0, score=size)
    assert outcome.model is not model and outcome.plan.edits == ()
    assert outcome.after.parameters == outcome.before.parameters
    assert "nothing can be removed" in outcome.reasons[0]


def test_a_size_and_an_allowed_loss_are_both_kept(model: nn.Module, data: Data) -> None:
    outcome = resized(model, data, parameters=400, max_drop=0.3)
    assert outcome.after.parameters <= 400
    assert outcome.score[1] >= outcome.score[0] - 0.3


@pytest.mark.slow
def test_a_size_that_loses_too_much_is_refused_with_one_that_does_not(model: nn.Module, data: Data) -> None:
    with pytest.raises(BudgetError, match="points are lost and 1 are allowed") as refused:
        resized(model, data, parameters=30, max_drop=0.01)
    found = re.search(r"has ([0-9,]+) parameters and ([0-9.]+) KB", str(refused.value))
    assert found is not None
    figure = int(found[1].replace(",", ""))
    outcome = resized(model, data, parameters=figure, max_drop=0.01)
    assert outcome.after.parameters <= figure and outcome.score[1] >= outcome.score[0] - 0.01


@pytest.mark.parametrize(
    "method", [Distinctiveness(angle_degrees=10), Distinctiveness(keep_fraction=0.5), published.Distinctiveness()]
)
def test_a_method_that_decides_where_to_stop_takes_no_budget(model: nn.Module, data: Data, method: Method) -> None:
    with pytest.raises(SettingsError, match="both decide where to stop"):
        resized(model, data, method, parameters=100)


@pytest.mark.slow
def test_without_a_validation_part_a_loss_is_judged_on_the_training_part(model: nn.Module) -> None:
    whole = data_for(model, 8, counts=(60, 1, 20))
    empty = Part(torch.zeros(0, 8), torch.zeros(0, dtype=torch.int64))
    data = Data(name="m", task=whole.task, input_shape=(8,), train=whole.train, validation=empty, test=whole.test)
    with pytest.warns(TopiaristWarning, match="judged on the training part"):
        outcome = resized(model, data, max_drop=0.1)
    assert outcome.score[1] >= outcome.score[0] - 0.1
