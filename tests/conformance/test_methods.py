"""What every registered method must keep to, through `resize`, on a perceptron, a residual and an inception network."""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.methods.tasks import CASES, State, answers, data_for, network_for, same_state, state_of
from topiarist import load, measure, save
from topiarist.data import Data, Part
from topiarist.errors import SettingsError
from topiarist.measurement import Budget
from topiarist.methods import Method, Outcome, find_method, registered, resize
from topiarist.methods.job import Limits, make_job
from topiarist.models import card_of
from topiarist.study.treatment import Treatment, treatment
from topiarist.surgery import plan_of
from topiarist.training import TrainConfig


@dataclass(frozen=True)
class Case:
    """Settings of a method that make it quick, and what it must keep to."""

    settings: dict[str, Any] = field(default_factory=dict)
    budget: Budget | None = None


QUICK = {"population": 10, "generations": 3}
SHORT = {"training": {"epochs": 10, "batch_size": 12, "learning_rate": 0.01}, "interval": 1}
PAPER = {"training": {"epochs": 3, "batch_size": 12, "learning_rate": 0.01}, "interval": 1, "batches": 1}

# Each registered method by its name, with settings for these tests; a new one gets a line here.
SETTINGS: dict[str, dict[str, Case]] = {
    "distinctiveness": {
        "by angle": Case({"angle_degrees": 45}),
        "by fraction": Case({"keep_fraction": 0.5}),
        "by budget": Case({}, Budget(parameters=200)),
    },
    "genetic": {
        "by penalty": Case({"penalty": 40, **QUICK}),
        "by budget": Case(QUICK, Budget(parameters=300)),
    },
    "genetic-front": {"by its knee": Case(QUICK)},
    "factorisation": {
        "by share": Case({"keep": 0.6}),
        "by budget": Case({}, Budget(parameters=400)),
        "after a removal": Case({"remove_first": True}, Budget(parameters=250)),
    },
    "magnitude": {
        "by sparsity": Case({"sparsity": 0.5}),
        "by budget": Case({"bits": 8}, Budget(file_kb=3)),
        "of units by budget": Case({"units": True}, Budget(parameters=200)),
        "in a pattern": Case({"pattern": (2, 4), "score": "movement"}),
    },
    "surgeon": {
        "removing": Case({**SHORT, "kinds": ("remove", "factorise"), "aim": "smaller"}),
        "by budget": Case({**SHORT, "kinds": ("remove",)}, Budget(parameters=200)),
    },
    "published-distinctiveness": {"by angle": Case({"angle_degrees": 45})},
    "published-genetic": {"by size": Case({"penalty": 10, **QUICK})},
    "published-magnitude": {"by sparsity": Case({"sparsity": 0.5})},
    "published-surgeon": {"briefly": Case(PAPER)},
}
RENAMES = {"factorisation", "surgeon", "published-surgeon"}  # a layer may become two below its name
GROWS = {"published-surgeon"}  # its edits widen and deepen too
NETWORKS = ["perceptron", "residual", "inception"]
ALL = [(network, name, case) for network in NETWORKS for name in registered() for case in SETTINGS.get(name, {})]
each_name = pytest.mark.parametrize("name", registered())
every = pytest.mark.parametrize(("network", "name", "case"), ALL)
with_its_names = pytest.mark.parametrize(("network", "name", "case"), [each for each in ALL if each[1] not in RENAMES])


@dataclass(frozen=True)
class Resized:
    """A network as it was before, as it is now, and what came of it."""

    model: nn.Module
    data: Data
    state: State
    outcome: Outcome
    progress: list[float]


def method_of(name: str, case: str) -> Method:
    return find_method(name)(**SETTINGS[name][case].settings)


@pytest.fixture(autouse=True)
def _short_published_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """The paper prunes over 400 epochs: some are enough to see that it keeps to its promises."""
    monkeypatch.setattr("topiarist.methods.published.magnitude.TRAINING", TrainConfig(epochs=8, learning_rate=0.001))


def resized(network: str, name: str, case: str) -> Resized:
    model = network_for(network)
    data, state = data_for(model, *CASES[network][1], counts=(24, 24, 12)), state_of(model)
    progress: list[float] = []
    budget = SETTINGS[name][case].budget
    outcome = resize(
        model, data, method_of(name, case), budget=budget, seed=3, latency=False, on_progress=progress.append
    )
    return Resized(model, data, state, outcome, progress)


once = cache(resized)


def unseen(found: Resized) -> Tensor:
    assert isinstance(found.data.test, Part)
    return found.data.test.x


@each_name
def test_a_method_has_settings_for_these_tests(name: str) -> None:
    assert SETTINGS.get(name), f"give '{name}' a line in SETTINGS, so that it is tested as all others are"


@pytest.mark.slow
@every
def test_the_original_is_untouched(network: str, name: str, case: str) -> None:
    found, fresh = once(network, name, case), network_for(network)
    assert same_state(found.model, found.state) and found.outcome.model is not found.model
    assert card_of(found.model) == card_of(fresh) and plan_of(found.model).edits == ()
    assert [module.training for module in found.model.modules()] == [module.training for module in fresh.modules()]
    own = {parameter.data_ptr() for parameter in found.model.parameters()}
    assert own.isdisjoint(parameter.data_ptr() for parameter in found.outcome.model.parameters())


@pytest.mark.slow
@every
def test_the_result_is_a_plain_network_of_the_same_class(network: str, name: str, case: str) -> None:
    found = once(network, name, case)
    model, small = found.model, found.outcome.model
    assert type(small) is type(model)
    for module in (*model.modules(), *small.modules()):
        assert not module._forward_hooks and not module._forward_pre_hooks


@pytest.mark.slow
@with_its_names
def test_modules_keep_their_names_and_kinds_and_none_grows(network: str, name: str, case: str) -> None:
    found = once(network, name, case)
    model, small = found.model, found.outcome.model
    assert [(path, type(module)) for path, module in small.named_modules()] == [
        (path, type(module)) for path, module in model.named_modules()
    ]
    assert list(small.state_dict()) == list(model.state_dict())
    assert all(values.numel() <= found.state[path].numel() for path, values in small.state_dict().items())


@pytest.mark.slow
@every
def test_the_result_runs_is_no_larger_and_keeps_its_budget(network: str, name: str, case: str) -> None:
    found = once(network, name, case)
    outcome = found.outcome
    given = answers(outcome.model, unseen(found))
    assert given.shape == (12, len(found.data.classes)) and bool(given.isfinite().all())
    if name not in GROWS:
        assert outcome.after.parameters <= outcome.before.parameters and outcome.after.macs <= outcome.before.macs
    assert outcome.after == measure(outcome.model, found.data, latency=False)
    budget = SETTINGS[name][case].budget
    assert budget is None or budget.excess(outcome.after) is None


@pytest.mark.slow
@every
def test_reasons_and_record_say_what_was_done(network: str, name: str, case: str) -> None:
    outcome = once(network, name, case).outcome
    assert outcome.reasons and all(reason and "\n" not in reason for reason in outcome.reasons)
    assert outcome.plan.edits == plan_of(outcome.model).edits
    assert (outcome.lineage is not None) == find_method(name).traits.resumes


@pytest.mark.slow
@every
def test_the_same_seed_gives_the_same_bits(network: str, name: str, case: str) -> None:
    first, second = once(network, name, case).outcome, resized(network, name, case).outcome
    assert same_state(first.model, state_of(second.model))
    for attribute in ("plan", "reasons", "score", "units", "before", "after", "lineage"):
        assert getattr(first, attribute) == getattr(second, attribute)


@pytest.mark.slow
@every
def test_a_file_gives_the_same_bits(network: str, name: str, case: str, tmp_path: Path) -> None:
    found = once(network, name, case)
    small = found.outcome.model
    fresh = network_for(network, seed=7)
    loaded = load(save(small, tmp_path / "small.safetensors", data=found.data), into=fresh)
    assert loaded is fresh and same_state(loaded, state_of(small)) and plan_of(loaded) == plan_of(small)
    assert torch.equal(answers(loaded, unseen(found)), answers(small, unseen(found)))


@pytest.mark.slow
@every
def test_progress_goes_from_0_to_1_and_never_falls(network: str, name: str, case: str) -> None:
    progress = once(network, name, case).progress
    assert (progress[0], progress[-1]) == (0.0, 1.0)
    assert progress == sorted(progress)


@pytest.mark.slow
@each_name
def test_a_checkpoint_is_honoured_or_refused(name: str, tmp_path: Path) -> None:
    model, checkpoint = network_for("perceptron"), tmp_path / "checkpoint"
    data, seen = data_for(model, 5, counts=(24, 24, 12)), list[bool]()
    case = next(iter(SETTINGS[name]))

    def run() -> Outcome:
        return resize(
            model,
            data,
            method_of(name, case),
            seed=3,
            latency=False,
            checkpoint=checkpoint,
            on_progress=lambda share: seen.append(checkpoint.exists()),
        )

    if find_method(name).traits.resumes:
        assert same_state(run().model, state_of(once("perceptron", name, case).outcome.model))
        assert any(seen) and not checkpoint.exists()
    else:
        with pytest.raises(SettingsError, match=f"{name} writes no checkpoint: leave checkpoint out"):
            run()
        assert not seen and not checkpoint.exists()


@pytest.mark.parametrize("name", [name for name, method in registered().items() if method.traits.in_rightsizing])
def test_a_rightsizing_asks_for_a_network_within_limits(name: str) -> None:
    model = network_for("perceptron")
    job = make_job(model, data_for(model, 5, counts=(24, 24, 12)))
    limits: Limits = {"parameters": 60, "macs": 50}
    resizing = find_method(name).candidate(job, limits, TrainConfig(epochs=20))
    assert resizing.method.name == name and resizing.budget == Budget(parameters=60, macs=50)
    assert not resizing.method.has_own_target
    resizing.check(job)


@pytest.mark.parametrize(("name", "case"), [(name, case) for name in registered() for case in SETTINGS.get(name, {})])
def test_a_study_declares_it_as_one_flat_table(name: str, case: str) -> None:
    given = SETTINGS[name][case]
    table = {"name": name, **given.settings}
    table |= {} if given.budget is None else {"budget": given.budget.model_dump(exclude_defaults=True)}
    made = treatment(**table)
    assert made.method is not None and made.method.name == name
    written = made.model_dump(mode="json", exclude_defaults=True)
    assert written["name"] == name and set(written) <= {"name", "budget", "retraining", *find_method(name).model_fields}
    assert treatment(**written) == made and isinstance(made, Treatment)


@each_name
def test_an_unknown_setting_is_one_line(name: str) -> None:
    with pytest.raises(SettingsError, match="luck: there is no such setting; found 3") as refused:
        find_method(name)(**{"luck": 3})
    assert isinstance(refused.value, ValueError) and "\n" not in str(refused.value)
