"""`resize` without a `Data`: the user's own calibration, score and training are enough, whatever the network takes."""

import json
import math
from collections.abc import Iterable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from tests.methods.tasks import answers, drawn, perceptron, same_state, state_of, widths_of
from topiarist import load, save
from topiarist.errors import DataError, ModelError, SettingsError
from topiarist.measurement import Budget
from topiarist.methods import Distinctiveness, Factorisation, FineTuning, Method, Outcome, published, resize
from topiarist.randomness import isolated

SAMPLES = 90


class TwoInputs(nn.Module):
    """Adds what two layers make of two inputs, and reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(5, 12), nn.Linear(3, 12)
        self.middle, self.head = nn.Linear(12, 10), nn.Linear(10, 2)

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        given: Tensor = self.head(torch.tanh(self.middle(torch.tanh(self.left(one) + self.right(other)))))
        return given


class Named(nn.Module):
    """Answers with tensors by name."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.logits, self.value = nn.Linear(6, 14), nn.Linear(14, 3), nn.Linear(14, 1)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        hidden = torch.tanh(self.hidden(x))
        return {"logits": self.logits(hidden), "value": self.value(hidden)}


@pytest.fixture
def model() -> nn.Module:
    return perceptron(6, 20, 12, 3)


@pytest.fixture
def x() -> Tensor:
    return drawn(SAMPLES, 6)


def two_inputs() -> tuple[nn.Module, Tensor, Tensor]:
    with isolated(0):
        network = TwoInputs().eval()
    return network, drawn(SAMPLES, 5, seed=1), drawn(SAMPLES, 3, seed=2)


def resized(model: nn.Module, calibration: Any, method: Method | None = None, **others: Any) -> Outcome:
    chosen = Distinctiveness() if method is None else method
    return resize(model, None, chosen, calibration=calibration, latency=False, **others)


def check(outcome: Outcome, model: nn.Module) -> None:
    """It is a smaller network of the same class, and its record is plain JSON without a quality."""
    assert type(outcome.model) is type(model) and outcome.model is not model
    assert outcome.after.parameters < outcome.before.parameters and outcome.after.macs < outcome.before.macs
    assert math.isnan(outcome.after.accuracy) and outcome.after.samples == 0
    record = json.loads(json.dumps(outcome.to_json(), allow_nan=False))
    assert record["after"]["accuracy"] is None and record["after"]["parameters"] == outcome.after.parameters


@pytest.mark.parametrize("limits", [{"parameters": 120}, {"macs": 110}, {"memory_kb": 0.5}, {"file_kb": 2.0}])
def test_calibration_inputs_are_enough_for_a_budget(model: nn.Module, x: Tensor, limits: dict[str, Any]) -> None:
    state = state_of(model)
    outcome = resized(model, x, budget=Budget(**limits))
    check(outcome, model)
    assert Budget(**limits).excess(outcome.after) is None and same_state(model, state)
    assert all(math.isnan(score) for score in outcome.score)


@pytest.mark.parametrize(
    "method",
    [
        Distinctiveness(keep_fraction=0.5),
        Distinctiveness(angle_degrees=40),
        Factorisation(keep=0.6),
        published.Distinctiveness(angle_degrees=60),
    ],
)
def test_methods_that_look_at_inputs_alone_need_nothing_else(model: nn.Module, x: Tensor, method: Method) -> None:
    check(resized(model, x, method), model)


def test_a_method_may_be_named(model: nn.Module, x: Tensor) -> None:
    budget = Budget(parameters=120)
    by_name = resize(model, method="distinctiveness", calibration=x, budget=budget, latency=False)
    assert by_name.plan == resize(model, calibration=x, budget=budget, latency=False).plan
    with pytest.raises(SettingsError, match=r"method must be one of distinctiveness, .*; found 'luck'"):
        resize(model, method="luck", calibration=x)


def batches_of(x: Tensor, kind: str) -> Iterable[Any]:
    labels = torch.zeros(len(x), dtype=torch.int64)
    loader: DataLoader[Any] = DataLoader(TensorDataset(x, labels), batch_size=30)
    kinds: dict[str, Iterable[Any]] = {
        "loader": loader,
        "list": list(torch.split(x, 30)),
        "generator": (batch for batch in torch.split(x, 30)),
    }
    return kinds[kind]


@pytest.mark.parametrize("kind", ["loader", "list", "generator"])
def test_calibration_may_be_any_batches(model: nn.Module, x: Tensor, kind: str) -> None:
    expected = resized(model, x, budget=Budget(parameters=120))
    found = resized(model, batches_of(x, kind), budget=Budget(parameters=120))
    assert found.plan.edits == expected.plan.edits
    assert torch.allclose(answers(found.model, x), answers(expected.model, x), atol=1e-4)


@pytest.mark.slow
def test_a_users_score_limits_the_loss(model: nn.Module, x: Tensor) -> None:
    right = answers(model, x).argmax(dim=1)

    def agreement(network: nn.Module) -> float:
        return float((answers(network, x).argmax(dim=1) == right).double().mean())

    little, much = (resized(model, x, score=agreement, budget=Budget(max_drop=drop)) for drop in (0.02, 0.5))
    assert little.score[0] == much.score[0] == 1.0
    assert little.score[1] >= 0.98 and much.score[1] >= 0.5
    assert much.after.parameters < little.after.parameters <= little.before.parameters


def test_a_users_training_comes_after_each_round(model: nn.Module, x: Tensor) -> None:
    seen: list[int] = []
    outcome = resized(
        model,
        x,
        Distinctiveness(rounds=3),
        budget=Budget(parameters=120),
        finetune=lambda network: seen.append(widths_of(network)["hidden0"]),
    )
    assert seen == sorted(seen, reverse=True) and len(set(seen)) == 3
    assert outcome.after.parameters <= 120 and outcome.histories == ()


def given_as(kind: str, one: Tensor, other: Tensor) -> dict[str, Any]:
    """Return calibration data of two inputs, and an example where batches do not tell how many inputs there are."""
    halves = [slice(SAMPLES // 2), slice(SAMPLES // 2, None)]
    loader: DataLoader[Any] = DataLoader(TensorDataset(one, other, torch.zeros(SAMPLES)), batch_size=30)
    kinds: dict[str, dict[str, Any]] = {
        "tuple": {"calibration": (one, other)},
        "mapping": {"calibration": {"one": one, "other": other}},
        "mappings": {"calibration": [{"one": one[some], "other": other[some]} for some in halves]},
        "loader": {"calibration": loader, "example_input": (one[:2], other[:2])},
    }
    return kinds[kind]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tuple", "mapping", "mappings", "loader"])
def test_a_network_of_two_inputs(kind: str) -> None:
    network, one, other = two_inputs()
    outcome = resize(network, budget=Budget(parameters=150), **given_as(kind, one, other))
    check(outcome, network)
    assert outcome.after.parameters <= 150 and list(outcome.units) == ["left", "middle"]
    assert outcome.after.latency_ms is not None and outcome.after.latency_ms > 0
    with torch.no_grad():
        assert outcome.model(one, other).shape == (SAMPLES, 2)


def test_batches_that_do_not_tell_the_inputs_need_an_example() -> None:
    network, one, _ = two_inputs()
    loader: DataLoader[Any] = DataLoader(TensorDataset(one), batch_size=30)
    with pytest.raises(ModelError, match="missing 1 required positional argument: 'other'"):
        resized(network, loader, budget=Budget(parameters=150))


@pytest.mark.parametrize("method", [Distinctiveness(keep_fraction=0.5), Factorisation(keep=0.5)])
def test_a_network_that_answers_with_tensors_by_name(method: Method) -> None:
    with isolated(0):
        network = Named().eval()
    x = drawn(SAMPLES, 6)
    outcome = resized(network, x, method)
    check(outcome, network)
    with torch.no_grad():
        found = outcome.model(x)
    assert {name: tuple(value.shape) for name, value in found.items()} == {
        "logits": (SAMPLES, 3),
        "value": (SAMPLES, 1),
    }


def test_the_network_can_be_saved_and_loaded(model: nn.Module, x: Tensor, tmp_path: Any) -> None:
    outcome = resized(model, x, budget=Budget(parameters=120))
    path = save(outcome.model, tmp_path / "small.safetensors")
    assert path.stat().st_size == round(1024 * outcome.after.file_kb)
    assert same_state(load(path), state_of(outcome.model))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "without data, give calibration inputs, such as a DataLoader"),
        ({"example_input": drawn(2, 6)}, "without data, give calibration inputs"),
        ({"calibration": drawn(9, 6), "budget": Budget(max_drop=0.1)}, "max_drop needs a score to judge by"),
        ({"calibration": drawn(9, 6), "retraining": FineTuning()}, "retraining needs labelled data"),
        ({"calibration": drawn(9, 6), "method": "magnitude"}, "magnitude needs labelled data: give resize a Data"),
        ({"calibration": drawn(9, 6), "method": "surgeon"}, "surgeon needs labelled data: give resize a Data"),
    ],
)
def test_what_is_missing_is_said_in_one_line(model: nn.Module, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said) as refused:
        resize(model, latency=False, **settings)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("method", ["genetic", "genetic-front", "published-genetic"])
def test_searches_need_labelled_samples(model: nn.Module, x: Tensor, method: str) -> None:
    with pytest.raises(DataError, match="needs labelled samples in memory"):
        resize(model, method=method, calibration=x, latency=False)


def test_calibration_without_samples_is_refused(model: nn.Module, x: Tensor) -> None:
    with pytest.raises(DataError, match="the calibration data are empty"):
        resized(model, x[:0], budget=Budget(parameters=120))


class Graph(nn.Module):
    """Sums what edges bring to nodes, then the nodes of each graph."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.head = nn.Linear(5, 16), nn.Linear(16, 2)

    def forward(self, nodes: Tensor, edges: Tensor, graphs: Tensor) -> Tensor:
        hidden = torch.tanh(self.hidden(nodes))
        hidden = hidden.index_add(0, edges[1], hidden[edges[0]])
        given: Tensor = self.head(hidden.new_zeros(3, hidden.shape[1]).index_add(0, graphs, hidden))
        return given


class OneMapping(nn.Module):
    """Reads one mapping, as an argument."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = TwoInputs()

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        given: Tensor = self.inner(batch["one"], batch["other"])
        return given


@pytest.mark.parametrize("kind", ["inputs", "inputs and labels", "a graph", "a mapping"])
def test_batches_alone_tell_what_a_network_is_called_with(kind: str) -> None:
    network, one, other = two_inputs()
    batches: list[tuple[Any, ...]] = [(one[:9], other[:9]), (one[9:], other[9:])]
    if kind == "inputs and labels":
        batches = [(*batch, torch.zeros(len(batch[0]))) for batch in batches]
    if kind == "a graph":
        with isolated(0):
            network = Graph().eval()
        batches = [(drawn(12, 5), torch.randint(12, (2, 30)), torch.arange(12) // 4) for _ in range(2)]
    if kind == "a mapping":
        network, batches = OneMapping().eval(), [({"one": one, "other": other},) for one, other in batches]
    whole = sum(parameter.numel() for parameter in network.parameters())
    small = resize(network, calibration=batches, budget=Budget(parameters=whole // 2), settling=0, latency=False)
    assert small.after.parameters <= whole // 2
    macs = small.before.macs // 2
    outcome = resize(network, calibration=batches, budget=Budget(macs=macs), settling=0, latency=False)
    assert macs // 2 < outcome.after.macs <= macs
    if kind == "inputs":
        given = resize(network, calibration=batches, example_input=batches[0], settling=0, latency=False)
        assert small.before.macs == given.before.macs
