"""What comes of what can go wrong: a clear error, or a defined network, and never a broken one."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.methods.surgeon.evolutions import (
    as_ours,
    as_published,
    best_of,
    digits,
    evolution_for,
    lineage_of,
    network,
    part_of,
    same_weights,
    unstackable,
)
from tests.methods.tasks import CASES, answers, data_for, network_for
from topiarist import Data, TrainConfig, load, models, save, train
from topiarist.data import Part
from topiarist.errors import DataError, SettingsError, TopiaristError, TopiaristWarning
from topiarist.measurement import Budget, BudgetError
from topiarist.methods import FineTuning, Outcome, published, resize
from topiarist.methods.surgeon import Surgeon, surgeon
from topiarist.methods.surgeon.evolution import evolve
from topiarist.methods.surgeon.surgeon import SurgeonMethod
from topiarist.models import card_of
from topiarist.models.copying import copied
from topiarist.models.evaluation import count_parameters
from topiarist.parallel import InProcess, open_pool
from topiarist.randomness import generator
from topiarist.surgery import plan_of
from topiarist.tasks import Classification
from topiarist.training.stretches import steps_per_epoch, train_stretch

Make = Callable[..., SurgeonMethod]
SURGEONS: dict[str, Make] = {"published": as_published, "ours": as_ours}
both = pytest.mark.parametrize("kind", SURGEONS)


def resized(model: nn.Module, data: Data, method: SurgeonMethod, **others: Any) -> Outcome:
    return resize(model, data, method, latency=False, **others)


def is_finite(model: nn.Module) -> bool:
    return all(bool(tensor.isfinite().all()) for tensor in model.state_dict().values())


def with_rate(kind: str, epochs: int, rate: float, **others: Any) -> SurgeonMethod:
    """Return either surgeon with stochastic gradient descent."""
    training = TrainConfig(epochs=epochs, batch_size=16, learning_rate=rate, optimizer="sgd", **others)
    chosen = published.Surgeon if kind == "published" else Surgeon
    return chosen(training=training, interval=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    ["published", "ours"],
)
def test_a_learning_rate_of_10_leaves_a_network_that_is_whole(kind: str) -> None:
    outcome = resized(network(10), digits(), with_rate(kind, 3, 10.0))
    assert is_finite(outcome.model)
    best = best_of(lineage_of(outcome))
    assert best.accuracy == outcome.score[1] and not math.isnan(outcome.score[1])


@both
def test_a_training_that_diverges_at_once_gives_the_network_as_it_was(kind: str) -> None:
    model = network(10)
    with pytest.warns(TopiaristWarning, match="the training diverged after epoch 0: the network of that epoch is kept"):
        outcome = resized(model, digits(), with_rate(kind, 4, 1e30))
    assert same_weights(outcome.model, model)
    assert not outcome.plan and outcome.score[0] == outcome.score[1]
    assert "diverged" in outcome.reasons[-1]
    assert best_of(lineage_of(outcome)).number == 0


@both
def test_the_network_as_it_was_is_a_copy(kind: str) -> None:
    model = network(10)
    with pytest.warns(TopiaristWarning, match="the training diverged"):
        outcome = resized(model, digits(), with_rate(kind, 4, 1e30))
    assert outcome.model is not model
    assert card_of(model).classes is None


def diverging(kind: str) -> tuple[nn.Module, SurgeonMethod, Outcome, float]:
    """Train with so large a decay that weights grow with every step, until they are no numbers any more.

    Give the network, how it was trained, what came of it, and the epoch that is said to be the last that was good.
    """
    model, method = network(10, 10, 10), with_rate(kind, 12, 1e-6, weight_decay=2.5e6)
    if kind == "ours":
        method = method.model_copy(update={"kinds": ()})
    with pytest.warns(TopiaristWarning, match=r"the training diverged after epoch [\d.]+: the network of that") as said:
        outcome = resized(model, digits(), method)
    assert str(said[0].message) == outcome.reasons[-1]
    return model, method, outcome, float(outcome.reasons[-1].split("epoch ")[1].split(":")[0])


@pytest.mark.slow
@both
def test_a_training_that_diverges_later_gives_the_last_network_that_was_good(kind: str) -> None:
    model, method, outcome, epoch = diverging(kind)
    assert is_finite(outcome.model) and not same_weights(outcome.model, model)
    assert 0 < epoch < 12
    if kind == "ours":
        plain, config = copied(model), method.usual_training
        steps = round(epoch * steps_per_epoch(model, digits(), config))
        train_stretch(plain, digits(), config, done=0, steps=steps)
        assert same_weights(outcome.model, plain)
    else:
        assert any(node.accuracy is None for node in lineage_of(outcome).nodes)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        "published",
        "ours",
    ],
)
def test_the_record_of_a_training_that_diverged_is_that_of_the_network_that_is_kept(kind: str) -> None:
    _, _, outcome, epoch = diverging(kind)
    best = best_of(lineage_of(outcome))
    assert best.ends == pytest.approx(epoch, abs=1e-4)
    assert best.accuracy == outcome.score[1]


def test_a_budget_below_the_smallest_network_is_an_error_that_names_it() -> None:
    with pytest.raises(BudgetError, match="the nearest network has 85 parameters, the budget is 20"):
        resized(network(10), digits(), as_ours(), budget=Budget(parameters=20))


@pytest.mark.slow
def test_a_budget_is_kept_from_the_start_to_the_end() -> None:
    outcome = resized(network(20, 12), digits(), as_ours(10, search=3.0, aim="better"), budget=Budget(parameters=800))
    assert count_parameters(outcome.model) <= 800
    lineage = lineage_of(outcome)
    kept = {number for decision in lineage.decisions for number in decision.kept} | {0}
    assert all(lineage.nodes[number].parameters <= 800 for number in kept)


@pytest.mark.slow
def test_more_loss_than_is_allowed_is_an_error() -> None:
    trained, data = network(10), digits()
    train(trained, data, TrainConfig(epochs=20, learning_rate=0.01))
    method = with_rate("ours", 3, 3.0)
    with pytest.raises(BudgetError, match="points are lost and 1 are allowed"):
        resized(trained, data, method, budget=Budget(max_drop=0.01))


@pytest.mark.slow
@both
def test_data_of_one_class_are_learned(kind: str) -> None:
    data = digits()
    parts: dict[str, Any] = {
        name: Part(part_of(data, name).x, part_of(data, name).y * 0 + 3) for name in ("train", "validation", "test")
    }
    outcome = resized(network(6), replace(data, **parts), SURGEONS[kind](3))
    assert outcome.score[1] == 1.0 and outcome.after.accuracy == 1.0
    only: dict[str, Any] = {name: Part(part.x, part.y * 0) for name, part in parts.items()}
    alone = models.mlp([64, 6, 1], "relu", generator=generator(0, "weights"))
    assert resized(alone, replace(data, task=Classification(("three",)), **only), SURGEONS[kind](3)).score == (1.0, 1.0)


@both
def test_a_network_without_hidden_layers_is_only_trained(kind: str) -> None:
    model, method = network(), SURGEONS[kind](4)
    outcome = resized(model, digits(), method, seed=5)
    assert not outcome.plan and outcome.score[1] > 0.3
    if kind == "ours":
        plain = copied(model)
        train(plain, digits(), method.usual_training.model_copy(update={"seed": 5}))
        assert same_weights(outcome.model, plain)


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [(), (10,)])
def test_a_network_of_which_all_edits_were_tried_is_kept(hidden: tuple[int, ...]) -> None:
    """A training that diverges reaches no accuracy: all edits are drawn, and there are few."""
    with pytest.warns(TopiaristWarning, match="the training diverged after epoch 1: "):
        outcome = resized(network(*hidden), digits(), with_rate("published", 12, 1e-6, weight_decay=1e7))
    assert not outcome.plan and is_finite(outcome.model)
    assert best_of(lineage_of(outcome)).accuracy == outcome.score[1]


@both
def test_without_kinds_or_decisions_the_network_is_trained_as_train_does(kind: str) -> None:
    model = network(10, 8)
    method = as_ours(6, kinds=()) if kind == "ours" else as_published(3, interval=3)
    outcome = resized(model, digits(), method, seed=2)
    plain = copied(model)
    train(plain, digits(), method.usual_training.model_copy(update={"seed": 2}))
    assert same_weights(outcome.model, plain)


@pytest.mark.slow
@both
@pytest.mark.parametrize("count", [5])
def test_a_validation_part_of_few_samples_is_enough(kind: str, count: int) -> None:
    outcome = resized(network(10), digits(200, count), SURGEONS[kind](3))
    assert is_finite(outcome.model) and best_of(lineage_of(outcome)).ends == 3
    assert outcome.score[1] * count == pytest.approx(round(outcome.score[1] * count))


@both
def test_no_validation_part_is_one_clear_error(kind: str) -> None:
    with pytest.raises(DataError, match="the surgeon chooses by a validation part"):
        resized(network(10), digits(200, 0), SURGEONS[kind](3))


@both
def test_no_epochs_change_nothing(kind: str) -> None:
    model = network(10)
    outcome = resized(model, digits(), SURGEONS[kind](0))
    assert same_weights(outcome.model, model) and outcome.model is not model
    assert not outcome.plan and outcome.score[0] == outcome.score[1]
    assert [node.fate for node in lineage_of(outcome).nodes] == ["best"]


@both
def test_one_epoch_and_one_batch_are_a_training(kind: str) -> None:
    outcome = resized(network(10), digits(8, 20), SURGEONS[kind](1))
    assert is_finite(outcome.model) and best_of(lineage_of(outcome)).ends == 1


SURGEONS_OF_TWO: dict[str, Callable[[TrainConfig], SurgeonMethod]] = {
    "published": lambda config: published.Surgeon(training=config, interval=5),
    "ours": lambda config: Surgeon(training=config, interval=5, search=5.0),
}


@pytest.mark.slow
def test_two_workers_change_no_result() -> None:
    """One cluster for both strategies: it takes its time to start."""
    model, config = network(10, 8), TrainConfig(epochs=10, batch_size=16, learning_rate=0.01, seed=1)
    alone = {kind: evolution_for(model, digits(), config, seed=1)[0] for kind in SURGEONS}
    with open_pool(alone["ours"].setup, workers=2) as pool:
        together = {kind: replace(evolution_for(model, digits(), config, seed=1)[0], pool=pool) for kind in SURGEONS}
        for kind in SURGEONS:
            method = SURGEONS_OF_TWO[kind](config)
            one, other = (
                evolve(method.strategy(each[kind], Budget()), each[kind], None, None) for each in (alone, together)
            )
            assert same_weights(one.model, other.model) and plan_of(one.model) == plan_of(other.model)
            assert torch.equal(one.probabilities, other.probabilities) and one.memory.keys() == other.memory.keys()
            assert alone[kind].lineage == together[kind].lineage
            assert len(alone[kind].lineage.nodes) > 2


@pytest.mark.slow
@both
def test_as_many_workers_are_started_as_are_asked_for(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    @contextmanager
    def start(shared: Any, *, workers: int) -> Iterator[Any]:
        asked.append(workers)
        yield InProcess(shared)

    monkeypatch.setattr(surgeon, "open_pool", start)
    resized(network(4), digits(), SURGEONS[kind](1).model_copy(update={"workers": 3}))
    resized(network(4), digits(), SURGEONS[kind](1))
    assert asked == [3, 1]


@both
def test_training_again_belongs_to_the_settings(kind: str) -> None:
    with pytest.raises(SettingsError, match=r"give them as (Published)?Surgeon\(training=…\)"):
        resized(network(10), digits(), SURGEONS[kind](1), retraining=FineTuning(epochs=1))
    with pytest.raises(SettingsError, match=r"give them as (Published)?Surgeon\(training=…\)"):
        resized(network(10), digits(), SURGEONS[kind](1), finetune=lambda model: None)


@pytest.mark.parametrize("others", [{"early_stopping": 3}, {"schedule": "performance"}, {"until_epoch": 2}])
def test_what_does_not_go_with_stretches_is_refused(others: dict[str, Any]) -> None:
    with pytest.raises(TopiaristError, match="cannot be combined with the surgeon"):
        Surgeon(training=TrainConfig(epochs=5, **others))


def vgg() -> nn.Module:
    return models.vgg(0, 0, 1, 1, input_shape=(1, 8, 8), classes=10, generator=generator(0, "weights"))


def known(name: str) -> tuple[nn.Module, Data]:
    model = network_for(name)
    return model, data_for(model, *CASES[name][1], counts=(32, 30, 20))


NETWORKS: dict[str, Callable[[], tuple[nn.Module, Data]]] = {
    "vgg": lambda: (vgg(), digits(32, 20, 20, images=True)),
    "residual": partial(known, "residual"),
    "inception": partial(known, "inception"),
    "other activations": lambda: (unstackable(10, 8), digits(64, 20, 20)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
@both
def test_networks_of_any_kind_come_out_whole(kind: str, name: str, tmp_path: Path) -> None:
    model, data = NETWORKS[name]()
    state = {key: value.clone() for key, value in model.state_dict().items()}
    method = as_published(2, batch_size=4) if kind == "published" else as_ours(6, batch_size=4, search=3.0)
    outcome = resized(model, data, method)
    assert best_of(lineage_of(outcome)).ends == method.usual_training.epochs
    assert len(lineage_of(outcome).decisions) > 0
    assert is_finite(outcome.model)
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())
    loaded = load(save(outcome.model, tmp_path / "network.safetensors"), into=NETWORKS[name]()[0])
    x = part_of(data, "test").x
    assert same_weights(loaded, outcome.model)
    torch.testing.assert_close(answers(loaded, x), answers(outcome.model, x), rtol=1e-6, atol=1e-6)
    assert plan_of(loaded) == plan_of(outcome.model) == outcome.plan
    assert card_of(loaded).classes == data.classes
