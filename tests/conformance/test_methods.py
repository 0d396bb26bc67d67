"""What every method must keep to, through `resize`, on a perceptron, a residual network and an inception network."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.methods.tasks import CASES, State, answers, data_for, network_for, same_state, state_of
from topiarist import load, measure, save
from topiarist.data import Data, Part
from topiarist.measurement import Budget
from topiarist.methods import (
    Distinctiveness,
    Factorisation,
    Genetic,
    GeneticFront,
    Magnitude,
    Method,
    Outcome,
    TrainingMethod,
    resize,
)
from topiarist.models import card_of
from topiarist.surgery import plan_of

METHODS: dict[str, tuple[Method | TrainingMethod, Budget | None]] = {
    "distinctiveness by angle": (Distinctiveness(angle_degrees=45), None),
    "distinctiveness by fraction": (Distinctiveness(keep_fraction=0.5), None),
    "distinctiveness by budget": (Distinctiveness(), Budget(parameters=200)),
    "published distinctiveness": (Distinctiveness(published=True, angle_degrees=45), None),
    "genetic": (Genetic(penalty=40, population=10, generations=3), None),
    "genetic by budget": (Genetic(population=10, generations=3), Budget(parameters=300)),
    "published genetic": (Genetic(published=True, population=10, generations=3), None),
    "genetic front": (GeneticFront(population=10, generations=3), None),
    "magnitude": (Magnitude(sparsity=0.5), None),
    "magnitude by budget": (Magnitude(bits=8), Budget(file_kb=3)),
    "magnitude of units by budget": (Magnitude(units=True), Budget(parameters=200)),
    "magnitude in a pattern": (Magnitude(pattern=(2, 4), score="movement"), None),
    "factorisation": (Factorisation(keep=0.6), None),
    "factorisation by budget": (Factorisation(), Budget(parameters=400)),
}
RENAMES = ["factorisation", "factorisation by budget"]  # a layer becomes two below its name
NETWORKS = ["perceptron", "residual", "inception"]
PAIRS = [(one, other) for one in NETWORKS for other in METHODS]
every = pytest.mark.parametrize(("network", "method"), PAIRS)
with_its_names = pytest.mark.parametrize(("network", "method"), [pair for pair in PAIRS if pair[1] not in RENAMES])


@dataclass(frozen=True)
class Shaped:
    """A network as it was before, as it is now, and what came of it."""

    model: nn.Module
    data: Data
    state: State
    outcome: Outcome


def resized(network: str, method: str) -> Shaped:
    model = network_for(network)
    data, state = data_for(model, *CASES[network][1], counts=(24, 24, 12)), state_of(model)
    chosen, budget = METHODS[method]
    return Shaped(model, data, state, resize(model, data, chosen, budget=budget, seed=3, latency=False))


once = cache(shaped)


def unseen(found: Shaped) -> Tensor:
    assert isinstance(found.data.test, Part)
    return found.data.test.x


@every
def test_the_original_is_untouched(network: str, method: str) -> None:
    found, fresh = once(network, method), network_for(network)
    assert same_state(found.model, found.state) and found.outcome.model is not found.model
    assert card_of(found.model) == card_of(fresh) and plan_of(found.model).edits == ()
    assert [module.training for module in found.model.modules()] == [module.training for module in fresh.modules()]
    own = {parameter.data_ptr() for parameter in found.model.parameters()}
    assert own.isdisjoint(parameter.data_ptr() for parameter in found.outcome.model.parameters())


@every
def test_the_result_is_a_plain_network_of_the_same_class(network: str, method: str) -> None:
    found = once(network, method)
    model, small = found.model, found.outcome.model
    assert type(small) is type(model)
    for module in (*model.modules(), *small.modules()):
        assert not module._forward_hooks and not module._forward_pre_hooks


@with_its_names
def test_modules_keep_their_names_and_kinds_and_none_grows(network: str, method: str) -> None:
    found = once(network, method)
    model, small = found.model, found.outcome.model
    assert [(name, type(module)) for name, module in small.named_modules()] == [
        (name, type(module)) for name, module in model.named_modules()
    ]
    assert list(small.state_dict()) == list(model.state_dict())
    assert all(values.numel() <= found.state[name].numel() for name, values in small.state_dict().items())


@every
def test_the_result_runs_is_no_larger_and_keeps_its_budget(network: str, method: str) -> None:
    found = once(network, method)
    outcome = found.outcome
    given = answers(outcome.model, unseen(found))
    assert given.shape == (12, len(found.data.classes)) and bool(given.isfinite().all())
    assert outcome.after.parameters <= outcome.before.parameters and outcome.after.macs <= outcome.before.macs
    assert outcome.after == measure(outcome.model, found.data, latency=False)
    budget = METHODS[method][1]
    assert budget is None or budget.excess(outcome.after) is None


@every
def test_the_same_seed_gives_the_same_bits(network: str, method: str) -> None:
    first, second = once(network, method).outcome, resized(network, method).outcome
    assert same_state(first.model, state_of(second.model))
    for name in ("plan", "reasons", "score", "units", "before", "after"):
        assert getattr(first, name) == getattr(second, name)


@every
def test_a_file_gives_the_same_bits(network: str, method: str, tmp_path: Path) -> None:
    found = once(network, method)
    small = found.outcome.model
    fresh = network_for(network, seed=7)
    loaded = load(save(small, tmp_path / "small.safetensors", data=found.data), into=fresh)
    assert loaded is fresh and same_state(loaded, state_of(small)) and plan_of(loaded) == plan_of(small)
    assert torch.equal(answers(loaded, unseen(found)), answers(small, unseen(found)))
