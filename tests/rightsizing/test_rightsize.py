"""From data and a budget to a smaller network: always the same, never by the test part, whatever the network is."""

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy
import pandas
import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from tests.rightsizing.tasks import blobs, same_weights, shrunk, small_network, weights_of, without_times
from topiarist.data import Data, Part
from topiarist.errors import ModelError, SettingsError, TopiaristWarning
from topiarist.measurement import Budget, measure
from topiarist.methods.registry import rightsizing_methods
from topiarist.models import card_of
from topiarist.models.evaluation import count_parameters
from topiarist.randomness import array_generator
from topiarist.rightsizing import (
    EFFORTS,
    Backbone,
    FewSamplesError,
    Rightsizing,
    RightsizingRecord,
    UnreachableError,
    rightsize,
)
from topiarist.rightsizing.judging import check_metric
from topiarist.rightsizing.stages import network_digest
from topiarist.tasks import TaskKind
from topiarist.training import TrainConfig, train

METHODS = rightsizing_methods()
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_plan")]


@pytest.fixture(scope="module")
def found(small_plan: None) -> Rightsizing:
    return shrunk(blobs(), seed=3)


@pytest.fixture(scope="module")
def trained() -> nn.Module:
    network = small_network()
    train(network, blobs(), TrainConfig(epochs=10, learning_rate=0.01))
    return network.train()


def parts_of(data: Data) -> list[Part]:
    return [part for part in (data.train, data.validation, data.test) if isinstance(part, Part)]


def with_other_test_part(data: Data) -> Data:
    """Return the same task, with other samples and other labels in its test part alone, and in its source."""
    assert data.source is not None and data.split is not None and data.preprocessing is not None
    rows = data.split.test
    features, labels = numpy.array(data.source.features), numpy.array(data.source.labels)
    features[rows] = -5 * features[rows][::-1] + 1
    labels[rows] = numpy.roll(labels[rows], 1)
    source = replace(data.source, features=features, labels=labels)
    return Data.of_parts(source, data.split, data.preprocessing, notes=data.notes, rule=data.rule)


def test_the_same_seed_gives_the_same_record_and_weights(found: Rightsizing) -> None:
    state = torch.random.get_rng_state()
    again = shrunk(blobs(), seed=3)
    assert torch.equal(torch.random.get_rng_state(), state)  # and nothing is drawn from what is the user's
    assert without_times(again.record.to_json()) == without_times(found.record.to_json())
    for name, network in found.networks.items():
        assert same_weights(weights_of(network), weights_of(again.networks[name]))


def test_the_network_is_smaller_and_a_plain_one(found: Rightsizing) -> None:
    assert found.status in ("proven", "unproven")
    assert count_parameters(found.model) * 4 <= count_parameters(found.baseline)
    assert found.model is found.networks[found.record.verdict.chosen] and not found.model.training
    assert {type(module) for module in found.model.modules()} <= {type(module) for module in found.baseline.modules()}
    assert card_of(found.model).preprocessing is not None
    assert found.sentence == found.record.verdict.sentence


def test_the_record_tells_what_the_network_is(found: Rightsizing) -> None:
    for told in found.record.networks:
        measured = measure(found.networks[told.id], found.data, part="validation", latency=False)
        same = ("parameters", "macs", "file_kb", "nonzero")
        assert [getattr(told, name) for name in same] == [getattr(measured, name) for name in same]
        assert told.validation_score == measured.accuracy
    after = measure(found.model, found.data, latency=False).accuracy
    assert found.record.test is not None and found.record.test.after["accuracy"] == pytest.approx(after)
    assert numpy.sum(found.record.confusion.after) == len(found.data.test)


def test_the_test_part_decides_nothing(found: Rightsizing) -> None:
    data = blobs()
    other = shrunk(with_other_test_part(data), seed=3)
    assert other.record.test != found.record.test
    one, two = (without_times(record.to_json()) for record in (other.record, found.record))
    for name in ("decision", "networks", "plan", "data", "settings", "nearest"):
        assert one[name] == two[name]
    for name in ("status", "chosen", "why", "power", "samples", "samples_needed"):
        assert one["verdict"][name] == two["verdict"][name]
    assert same_weights(weights_of(other.model), weights_of(found.model))


def test_too_few_samples_prove_nothing_and_it_says_how_many_would() -> None:
    verdict = shrunk(blobs(60, apart=6.0), max_drop=0.06).record.verdict
    assert (verdict.status, verdict.power, verdict.samples) == ("unproven", 0.0, 48)
    assert verdict.samples_needed is not None and verdict.samples_needed > 48
    assert "over 48 samples, not proven within 6 points (p = " in verdict.sentence
    assert f"; the power was 0 %, {verdict.samples_needed:,} samples would make it 80 %)" in verdict.sentence


def test_enough_samples_prove_it() -> None:
    found = shrunk(blobs(600, apart=6.0), max_drop=0.03)
    assert found.status == "proven"
    (*_, last) = [each for each in found.record.decision.rungs if each.verdict == "proven"]
    assert last.network == found.record.verdict.chosen and last.p <= 0.05 and last.low > -0.03


def test_labels_that_have_nothing_to_do_with_the_samples() -> None:
    found = shrunk(blobs(90, apart=0.0))
    assert found.status == "no better than guessing" and found.model is found.baseline
    assert all(rung.verdict in ("rejected", "no better than guessing") for rung in found.record.decision.rungs)


@pytest.mark.filterwarnings("ignore::topiarist.TopiaristWarning")  # of what was decided for columns
def test_noise_in_thousands_of_texts_is_no_better_than_guessing() -> None:
    random = array_generator(0, "noise in texts")
    table = pandas.DataFrame({"code": [f"c{code}" for code in random.integers(0, 1_400, 4_000)]})
    data = Data.from_arrays(table, random.permutation(4_000) % 2, scaling="auto")
    assert data.preprocessing is not None and data.preprocessing.columns[0].encoding == "effect"
    found = rightsize(data, effort="quick", methods=("distinctiveness",))
    assert found.status == "no better than guessing"
    references = {each.name: each.score for each in found.record.references}
    assert all(score is not None and score < 0.53 for score in references.values())  # over 3,200 rows


def test_a_trained_network_is_the_baseline_as_it_is_and_stays_untouched(trained: nn.Module) -> None:
    before, card = weights_of(trained), card_of(trained)
    found = shrunk(blobs(), trained)
    assert found.record.settings.trained_before and found.record.plan.design == "held out"
    assert same_weights(weights_of(found.baseline), before) and found.baseline is not trained
    assert same_weights(weights_of(trained), before) and trained.training and card_of(trained) == card
    assert all(weight.requires_grad and weight.grad is None for weight in trained.parameters())
    judged = sum(rung.samples for rung in found.record.decision.rungs[:1])
    assert judged == len(found.data.validation)


def test_a_network_that_knows_nothing_is_trained() -> None:
    given = small_network(7)
    before = weights_of(given)
    found = shrunk(blobs(), given)
    assert not found.record.settings.trained_before and found.record.plan.design == "refitted"
    assert same_weights(weights_of(given), before) and not same_weights(weights_of(found.baseline), before)


def test_a_backbone_is_where_every_baseline_starts(small_plan: None) -> None:
    given = small_network(7, classes=5)
    before = weights_of(given)
    found = shrunk(blobs(), Backbone(given, "other.safetensors"))
    digest = network_digest(given)[:12]
    assert found.record.settings.base == f"other.safetensors: mlp 4-32-16-5, SHA-256 {digest}"
    assert found.record.plan.design == "refitted" and not found.record.settings.trained_before
    assert same_weights(weights_of(given), before)  # it stays untouched, and all that starts from it learns
    assert not torch.equal(weights_of(found.baseline)["hidden0.weight"], before["hidden0.weight"])
    one, other = (weights_of(Backbone(given, "it").start(3, seed)) for seed in (0, 1))
    assert torch.equal(one["hidden0.weight"], before["hidden0.weight"])
    assert not torch.equal(one["output.weight"], other["output.weight"])
    with pytest.raises(SettingsError, match="the last layer of a backbone is yet to be trained"):
        shrunk(blobs(), Backbone(given, "it"), trained=True)
    with pytest.raises(ModelError, match="it has no layers below its last one"):
        Backbone(nn.Linear(4, 3), "it").start(3, 0)


def streamed() -> Data:
    train, validation, test = (TensorDataset(part.x, part.y) for part in parts_of(blobs()))
    return Data.from_datasets(train=train, validation=validation, test=test, classes=("a", "b", "c"))


CASES: dict[str, tuple[Callable[[], Data], Callable[[], nn.Module] | None]] = {
    "sigmoid": (blobs, lambda: small_network(activation="sigmoid")),
    "two classes": (lambda: blobs(120, 2), lambda: small_network(classes=2)),
    "no test part": (lambda: blobs(test_fraction=0), small_network),
    "datasets": (streamed, small_network),
    "no network": (lambda: blobs(90), None),
    "groups": (lambda: blobs(groups=numpy.arange(180) // 3 % 20), small_network),
}


@pytest.mark.parametrize("case", CASES)
def test_whatever_the_task_and_the_network(case: str) -> None:
    make, model = CASES[case]
    data = make()
    found = shrunk(data, model, max_drop=0.9)
    assert found.status == "proven" and len(found.record.decision.rungs) == 2
    assert count_parameters(found.model) * 8 <= count_parameters(found.baseline)
    x = parts_of(found.data)[0].x[:5]
    assert found.model(x).shape == (5, len(data.classes))
    assert (found.record.test is None) == (len(data.test) == 0)
    assert model is None or type(found.model) is type(model())


def test_all_methods_make_candidates_and_on_progress_is_told() -> None:
    told: list[tuple[float, str]] = []
    found = shrunk(blobs(90), methods=METHODS, max_drop=0.9, on_progress=lambda share, what: told.append((share, what)))
    made = {network.method for network in found.record.networks if network.ratio == 4}
    assert made == set(METHODS)
    assert all(note.startswith("a linear model is as good") for note in found.record.plan.notes)
    assert found.record.decision.rungs[0].chosen_by_fold != ()
    shares = [share for share, _ in told]
    assert numpy.diff(shares).min() > -1e-9 and (shares[0], shares[-1]) == (0.0, 1.0)
    assert all(any(method in what for _, what in told) for method in METHODS)


@pytest.mark.parametrize(
    ("budget", "figure"),
    [
        (Budget(file_kb=1.9), "file_kb"),
        (Budget(parameters=100), "parameters"),
        (Budget(parameters=300, macs=90), "macs"),
    ],
)
def test_a_budget_is_kept(budget: Budget, figure: str) -> None:
    found = shrunk(blobs(), budget=budget, max_drop=0.9)
    measured = measure(found.model, found.data, latency=False)
    assert budget.excess(measured) is None
    limit = budget.file_kb or getattr(budget, figure)
    assert 0.7 * limit < getattr(measured, figure) <= limit  # no smaller than need be


@pytest.mark.parametrize(
    ("budget", "has"),
    [
        (Budget(file_kb=0.5), "KB on disk, the budget is 0.5"),
        (Budget(parameters=2), "parameters, the budget is 2"),
        (Budget(latency_ms=1e-7), "ms per sample, the budget is 1e-07"),
    ],
)
def test_a_budget_that_cannot_be_met_names_the_nearest(budget: Budget, has: str) -> None:
    with pytest.raises(UnreachableError, match="No network was found that fits the budget") as refused:
        shrunk(blobs(), budget=budget, max_drop=0.9)
    error = refused.value
    assert 1 <= len(error.nearest) <= 3 and all(has in line and "; it loses " in line for line in error.nearest)
    assert error.record.verdict.status == "unreachable"
    assert [f"{near.id}: {near.text}" for near in error.record.nearest] == list(error.nearest)


def test_a_loss_that_is_too_large_names_what_was_lost() -> None:
    with pytest.raises(UnreachableError) as refused:
        shrunk(blobs(apart=1.5), budget=Budget(parameters=24), max_drop=0.001)
    assert any("parameters" not in line and "points, 0.1 points may be lost" in line for line in refused.value.nearest)


def test_large_networks_of_rare_classes_are_judged_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EFFORTS, "quick", replace(EFFORTS["quick"], work=1e6))
    x = array_generator(0, "rare").normal(size=(60, 4))
    found = shrunk(Data.from_arrays(x, [2] * 5 + [0, 1] * 27 + [0], scaling="zscore"))
    assert found.record.plan.design == "refitted"
    (said,) = found.record.plan.left_out
    assert said.startswith("for the work that ") and found.record.notes[0] == said


def test_rows_are_left_out_where_nothing_else_is_left_to_leave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EFFORTS, "quick", replace(EFFORTS["quick"], work=1e6))
    data = blobs(1200, apart=6.0)
    found = shrunk(data, max_drop=0.05)
    assert found.record.data.training == 500 and found.record.plan.design == "held out"
    rows, _ = found.record.plan.left_out
    assert rows == f"500 of {len(data.train)} training samples are trained on, drawn by the seed"
    assert len(found.data.validation) == len(data.validation) and len(found.data.test) == len(data.test)


def test_a_time_limit_ends_the_search_and_says_what_it_cost() -> None:
    found = shrunk(blobs(), time_limit=0.01)
    assert found.status == "unchanged" and found.record.networks[0].id == found.record.verdict.chosen
    said = "the time limit of 0.01 s ended the work after 0 of at most 2 sizes"
    assert found.record.plan.cut_short == said and said in found.record.notes


def test_too_few_samples_to_judge_by_are_refused_in_one_line() -> None:
    x = array_generator(0, "few").normal(size=(40, 4))
    with pytest.warns(TopiaristWarning, match="class '2' has 1 sample"):
        data = Data.from_arrays(x, [2] + [0, 1] * 19 + [0], test_fraction=0, scaling="zscore")
    with pytest.raises(FewSamplesError, match="there are too few to judge by"):
        shrunk(data)
    with pytest.raises(FewSamplesError, match="there are too few to judge by"):
        shrunk(blobs(groups=numpy.arange(180) // 3 % 3))


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_test_part_of_one_sample_is_no_metric_that_is_not_defined(kind: TaskKind) -> None:
    x = array_generator(0, "one").normal(size=(12, 3))
    y = numpy.arange(12) % 2 if kind == "classes" else x[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)  # of classes that are not in every part
        data = Data.from_arrays(x, y, task=kind, scaling="auto", test_fraction=0.05, validation_fraction=0.05)
    assert len(data.test) == 1
    check_metric(data, margin=0.02, alpha=0.05)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"methods": ("luck",)}, "methods must be one of distinctiveness, .*; found 'luck'"),
        ({"methods": ()}, "methods must name at least one of"),
        ({"effort": "none"}, "effort must be one of quick, normal, thorough; found 'none'"),
        ({"objective": "beauty"}, "objective must be one of parameters, macs, file, latency; found 'beauty'"),
        ({"time_limit": 0}, "time_limit must be above 0 seconds; found 0"),
        ({"max_drop": 0.0}, "max_drop must lie between 0 and 1; found 0.0"),
        ({"max_drop": 1.0}, "max_drop must lie between 0 and 1; found 1.0"),
        ({"budget": Budget(max_drop=0.0)}, "a max_drop of 0 cannot be proven"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        shrunk(blobs(), **settings)


def test_the_loss_that_a_budget_allows_takes_the_place_of_the_drop() -> None:
    assert shrunk(blobs(60), budget=Budget(max_drop=0.3)).record.settings.max_drop == 0.3


def test_a_record_goes_through_json_and_back(found: Rightsizing) -> None:
    written = json.loads(json.dumps(found.record.to_json(), allow_nan=False))
    again = RightsizingRecord.model_validate(written)
    assert again == found.record and again.to_json() == written
    assert written["version"] == again.version == 4
    assert again.chosen.id == again.verdict.chosen and again.notes == again.plan.notes


def test_a_record_says_with_how_many_threads_networks_were_trained(found: Rightsizing) -> None:
    assert found.record.versions.threads == 1  # a small network: more are no faster
