"""`resize`: what comes out is what was decided, can be replayed and saved, and the user's own pieces are used."""

import json
from copy import deepcopy
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.methods.tasks import CASES, answers, data_for, network_for, percentage, perceptron, same_state, state_of
from topiarist import load, measure, save
from topiarist.data import Data, Part
from topiarist.errors import DataError, SettingsError, TopiaristError
from topiarist.measurement import Budget
from topiarist.methods import Distinctiveness, FineTuning, Genetic, Method, Outcome, published, resize
from topiarist.models import card_of
from topiarist.surgery import Plan, apply, plan_of, remove
from topiarist.tasks import Classification

METHODS: dict[str, Method] = {
    "angle": Distinctiveness(angle_degrees=40),
    "keep": Distinctiveness(keep_fraction=0.5),
    "published": published.Distinctiveness(angle_degrees=45),
    "genetic": Genetic(penalty=60, population=20, generations=8),
}
HALF = Distinctiveness(keep_fraction=0.5)


@pytest.fixture
def model() -> nn.Module:
    return perceptron(6, 12, 8, 3)


@pytest.fixture
def data(model: nn.Module) -> Data:
    return data_for(model, 6)


def inputs(data: Data) -> Tensor:
    assert isinstance(data.train, Part)
    return data.train.x


@pytest.mark.parametrize("method", METHODS)
def test_an_outcome_says_what_was_and_what_is(model: nn.Module, data: Data, method: str) -> None:
    outcome = resize(model, data, METHODS[method], latency=False)
    assert outcome.before == measure(model, replace(data), latency=False)
    assert outcome.after == measure(outcome.model, data, latency=False)
    assert list(outcome.units) == ["hidden0", "hidden1"]
    for name, (before, after) in outcome.units.items():
        assert (len(model.get_submodule(name).weight), len(outcome.model.get_submodule(name).weight)) == (before, after)  # type: ignore[arg-type]
    assert isinstance(data.validation, Part)
    expected = [percentage(network, data.validation) / 100 for network in (model, outcome.model)]
    assert list(outcome.score) == pytest.approx(expected)
    assert outcome.reasons and all(isinstance(reason, str) and "\n" not in reason for reason in outcome.reasons)
    assert outcome.histories == ()


def test_an_outcome_as_json_is_complete(model: nn.Module, data: Data) -> None:
    outcome = resize(model, data, HALF, retraining=FineTuning(epochs=1))
    record = json.loads(json.dumps(outcome.to_json(), allow_nan=False))
    assert {"before", "after", "units", "score", "plan", "reasons"} <= set(record)
    assert record["before"] == outcome.before.to_json() and record["after"] == outcome.after.to_json()
    assert record["units"]["hidden0"] == {"before": 12, "after": 6}
    assert record["score"] == {"before": outcome.score[0], "after": outcome.score[1]}
    assert Plan.from_record(record["plan"]) == outcome.plan
    assert record["reasons"] == list(outcome.reasons)
    assert outcome.after.latency_ms is not None and outcome.after.latency_ms > 0


def test_an_outcome_as_json_has_all_but_the_network(model: nn.Module, data: Data) -> None:
    outcome = resize(model, data, HALF, retraining=FineTuning(epochs=1), latency=False)
    known = {name for name, value in vars(Outcome).items() if isinstance(value, property | cached_property)}
    assert set(outcome.to_json()) == {field.name for field in fields(Outcome)} - {"model", "job"} | known


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["perceptron", "residual"])
def test_the_plan_replayed_on_the_original_gives_the_network(name: str, method: str) -> None:
    model = network_for(name)
    data = data_for(model, *CASES[name][1], counts=(40, 30, 10))
    outcome = resize(model, data, METHODS[method], latency=False)
    again = apply(outcome.plan, model, inputs(data)[:2], calibration=inputs(data))
    known = apply(outcome.plan, model)
    read = apply(Plan.from_json(outcome.plan.to_json()), model, calibration=inputs(data))
    assert same_state(known, state_of(outcome.model))
    for network in (again, read):  # refitted anew, all readers at once: the same to within rounding
        torch.testing.assert_close(network.state_dict(), outcome.model.state_dict(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_saved_network_answers_the_same(model: nn.Module, data: Data, tmp_path: Path, method: str) -> None:
    outcome = resize(model, data, METHODS[method], latency=False)
    loaded = load(save(outcome.model, tmp_path / "small.safetensors"))
    assert torch.equal(answers(loaded, inputs(data)), answers(outcome.model, inputs(data)))
    assert plan_of(loaded) == plan_of(outcome.model)
    assert card_of(loaded).classes == data.classes


@pytest.mark.slow
def test_a_users_score_decides(model: nn.Module, data: Data) -> None:
    seen: list[nn.Module] = []

    def score(network: nn.Module) -> float:
        assert not network.training and not torch.is_grad_enabled()
        seen.append(network)
        return -float(len(network.hidden0.weight))  # type: ignore[arg-type, union-attr]

    outcome = resize(model, data, Distinctiveness(), budget=Budget(max_drop=0.0), score=score, latency=False)
    assert outcome.score == (-12.0, -float(outcome.units["hidden0"][1]))
    assert outcome.after.parameters == 6 + 1 + 1 + 1 + 3 + 3  # nothing is lost, however small it is
    assert seen[0] is model


def test_a_users_training_is_used(model: nn.Module, data: Data) -> None:
    given: list[nn.Module] = []

    def finetune(network: nn.Module) -> None:
        given.append(network)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.fill_(0.25)

    state = state_of(model)
    outcome = resize(model, data, HALF, finetune=finetune, latency=False)
    assert given == [outcome.model] and same_state(model, state)
    assert all(bool((parameter == 0.25).all()) for parameter in outcome.model.parameters())


def test_a_users_calibration_is_used(model: nn.Module, data: Data) -> None:
    """Training inputs of which one never varies; in the calibration it does."""
    flat = replace(data, train=Part(inputs(data) * 0.0, data.train.y))  # type: ignore[union-attr]
    x = inputs(data)
    expected = resize(model, data, HALF, latency=False)
    for calibration in (x, [x[:30], x[30:]], [(x[:30], None), (x[30:], None)]):
        outcome = resize(model, flat, HALF, calibration=calibration, latency=False)
        assert outcome.plan == expected.plan
        assert torch.allclose(answers(outcome.model, x), answers(expected.model, x), atol=1e-4)


def test_a_users_calibration_may_be_a_generator(model: nn.Module, data: Data) -> None:
    batches = (part for part in torch.split(inputs(data), 30))
    outcome = resize(model, data, HALF, calibration=batches, latency=False)
    assert outcome.plan == resize(model, data, HALF, latency=False).plan


def streamed(data: Data) -> Data:
    parts: list[Any] = [
        list(zip(part.x, part.y.tolist(), strict=True))  # type: ignore[union-attr]
        for part in (data.train, data.validation, data.test)
    ]
    return Data.from_datasets(train=parts[0], validation=parts[1], test=parts[2], classes=data.classes)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"retraining": FineTuning(epochs=1)}])
def test_samples_may_be_read_batch_by_batch(model: nn.Module, data: Data, settings: dict[str, Any]) -> None:
    memory, stream = (resize(model, given, HALF, latency=False, **settings) for given in (data, streamed(data)))
    assert stream.plan == memory.plan
    assert (stream.before.accuracy, stream.score[0]) == (memory.before.accuracy, memory.score[0])
    if not settings:
        assert same_state(stream.model, state_of(memory.model))
        budget = Budget(max_drop=0.1)
        assert resize(model, streamed(data), Distinctiveness(), budget=budget, latency=False).score[1] >= 0.0


def test_pixels_in_bytes_are_read_as_numbers() -> None:
    model = network_for("convolutions").float()
    data = data_for(model, 3, 6, 6, counts=(30, 20, 10))
    bytes_of = {
        name: Part((40 * part.x + 128).clamp(0, 255).to(torch.uint8), part.y)  # type: ignore[union-attr]
        for name, part in (("train", data.train), ("validation", data.validation), ("test", data.test))
    }
    for method in (HALF, METHODS["genetic"]):
        outcome = resize(model, replace(data, **bytes_of), method, latency=False)  # type: ignore[arg-type]
        assert outcome.after.parameters <= outcome.before.parameters


@pytest.mark.parametrize("retraining", [None, FineTuning(epochs=1)])
def test_frozen_layers_stay_frozen(model: nn.Module, data: Data, retraining: FineTuning | None) -> None:
    model.get_submodule("hidden0").requires_grad_(False)
    outcome = resize(model, data, HALF, retraining=retraining, latency=False)
    assert [p.requires_grad for p in outcome.model.parameters()] == [p.requires_grad for p in model.parameters()]
    edit = outcome.plan.edits[0]
    kept = [unit for unit in range(12) if unit not in edit.units["hidden0"]]  # type: ignore[union-attr]
    assert torch.equal(outcome.model.hidden0.weight, model.hidden0.weight[kept])  # type: ignore[union-attr, arg-type, index]


def test_a_network_that_was_cut_before_remembers_both_cuts(model: nn.Module, data: Data, tmp_path: Path) -> None:
    before = remove(model, inputs(data)[:2], units={"hidden0": [0, 5], "hidden1": [2]}, calibration=inputs(data))
    outcome = resize(before, data, HALF, latency=False)
    assert outcome.units == {"hidden0": (10, 5), "hidden1": (7, 4)}
    assert plan_of(outcome.model).edits == (*plan_of(before).edits, *outcome.plan.edits)
    assert [edit.kind for edit in outcome.plan] == ["remove", "settle"]
    assert same_state(apply(outcome.plan, before), state_of(outcome.model))
    loaded = load(save(outcome.model, tmp_path / "twice.safetensors"))
    assert torch.equal(answers(loaded, inputs(data)), answers(outcome.model, inputs(data)))
    whole = apply(plan_of(outcome.model), model)
    assert torch.allclose(answers(whole, inputs(data)), answers(outcome.model, inputs(data)))


def test_a_network_that_is_training_is_cut_as_one_that_is_not(model: nn.Module, data: Data) -> None:
    busy = deepcopy(model).train()
    still, moving = (resize(network, data, HALF, latency=False) for network in (model, busy))
    assert same_state(still.model, state_of(moving.model)) and busy.training and moving.model.training


@pytest.mark.slow
def test_the_argument_keeps_its_weights_its_card_and_its_plan(model: nn.Module, data: Data) -> None:
    state, card, plan = state_of(model), card_of(model), plan_of(model)
    for method in METHODS.values():
        outcome = resize(model, data, method, latency=False)
        assert outcome.model is not model
    resize(model, data, Distinctiveness(), budget=Budget(max_drop=0.0), latency=False)
    assert same_state(model, state) and card_of(model) == card and plan_of(model) == plan


@pytest.mark.parametrize(
    ("method", "others", "said"),
    [
        (HALF, {"retraining": FineTuning(), "finetune": len}, "both train the cut network"),
        (Distinctiveness(keep_fraction=0.5, rounds=2), {}, "rounds above 1 need training"),
        (HALF, {"budget": Budget(parameters=10)}, "both decide where to stop"),
    ],
)
def test_what_does_not_go_together_is_refused(
    model: nn.Module, data: Data, method: Method, others: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        resize(model, data, method, latency=False, **others)


def test_data_without_training_samples_is_refused(model: nn.Module, data: Data) -> None:
    empty = Part(torch.zeros(0, 6), torch.zeros(0, dtype=torch.int64))
    with pytest.raises(DataError, match=r"no training samples|no samples"):
        resize(model, replace(data, train=empty, validation=empty), HALF, latency=False)


@pytest.mark.parametrize("kind", ["no test samples", "other classes"])
def test_data_that_cannot_be_measured_are_refused_before_any_work(model: nn.Module, data: Data, kind: str) -> None:
    empty = Part(torch.zeros(0, 6), torch.zeros(0, dtype=torch.int64))
    given = replace(data, test=empty) if kind == "no test samples" else replace(data, task=Classification(("a", "b")))
    worked: list[nn.Module] = []
    with pytest.raises(TopiaristError):
        resize(model, given, HALF, finetune=worked.append, latency=False)
    assert not worked
