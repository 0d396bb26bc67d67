"""Branches: what an optimizer remembers follows the weights through an edit, whatever trains the network."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.methods.surgeon.evolutions import digits, network, part_of, same_weights, unstackable
from tests.methods.tasks import CASES, data_for, network_for
from topiarist import Data, TrainConfig, train
from topiarist.methods.surgeon.branches import Branch, BranchTraining, TrainingSetup, edited, evaluated, train_branch
from topiarist.models.copying import copied
from topiarist.models.evaluation import numbers_of, placed
from topiarist.randomness import isolated
from topiarist.surgery import (
    DeepenNetwork,
    Edit,
    FactoriseLayer,
    FoldLayer,
    GrowSpace,
    ProjectSpace,
    RemoveUnits,
    WidenSpace,
)
from topiarist.surgery.transplant import FRESH
from topiarist.training.preparation import stack_key
from topiarist.training.stretches import steps_per_epoch

Memory = dict[str, dict[str, Tensor]]
OPTIMIZERS: dict[str, dict[str, Any]] = {"adam": {}, "sgd": {"momentum": 0.9}}
SQUARES = {"square", "exp_avg_sq", "square_avg"}  # what is never negative, as engines call it


def convolutional() -> Any:
    with isolated(0):
        return nn.Sequential(
            nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(96, 7), nn.ReLU(),
            nn.Linear(7, 10),
        )  # fmt: skip


# by engine: the network, its data, a hidden layer and the one that reads it
Case = tuple[nn.Module, Data, str, str]


def case_of(engine: str) -> Case:
    if engine == "stacked":
        return network(8, 7), digits(), "hidden0", "hidden1"
    if engine == "autograd":
        return unstackable(8, 7), digits(), "hidden0", "hidden1"
    return convolutional(), digits(images=True), "4", "6"


ENGINES = ["stacked", "autograd", "convolutions"]


def settings(optimizer: str, **others: Any) -> TrainConfig:
    return TrainConfig(
        epochs=6, batch_size=16, learning_rate=0.003, optimizer=optimizer, **OPTIMIZERS[optimizer], **others
    )


def trained(model: nn.Module, data: Data, config: TrainConfig, steps: int = 30) -> tuple[Branch, TrainingSetup]:
    setup = TrainingSetup(data, config)
    return train_branch(BranchTraining(branch=Branch(model=model), steps=steps), setup), setup


def with_edits(branch: Branch, data: Data, *edits: Edit) -> Branch:
    part = part_of(data, "train")
    return edited(branch, edits, placed(part.x[:2], numbers_of(branch.model)), part.x)


def memory_of(branch: Branch) -> Memory:
    return {name: dict(known) for name, known in branch.memory.items()}


def test_these_networks_are_trained_by_both_engines() -> None:
    stacked = {name: stack_key(*case_of(name)[:2], settings("adam")) is not None for name in ENGINES}
    assert stacked == {"stacked": True, "autograd": False, "convolutions": False}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("engine", ENGINES)
def test_units_that_stay_keep_what_is_remembered_of_them(engine: str, optimizer: str) -> None:
    model, data, layer, reader = case_of(engine)
    branch, _ = trained(model, data, settings(optimizer))
    old = memory_of(branch)
    new = memory_of(with_edits(branch, data, RemoveUnits(units={layer: (1, 4)}, refit=True)))
    units = len(branch.model.get_parameter(f"{layer}.bias"))
    kept = torch.tensor([unit for unit in range(units) if unit not in (1, 4)])
    assert new.keys() == old.keys()
    checked = 0
    for name, known in old.items():
        assert new[name].keys() == known.keys()
        for key, value in known.items():
            if value.ndim and name.startswith(f"{layer}."):
                value = value[kept]
            elif value.ndim and name == f"{reader}.weight":
                value = value[:, kept]
            assert torch.equal(new[name][key], value), (name, key)
            checked += int(bool(value.any()))
    assert checked >= len(old)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("engine", ENGINES)
def test_growth_leaves_memory_alone_and_gives_fresh_units_a_share_of_the_usual(engine: str, optimizer: str) -> None:
    model, data, layer, reader = case_of(engine)
    branch, _ = trained(model, data, settings(optimizer))
    old = memory_of(branch)
    new = memory_of(with_edits(branch, data, GrowSpace(space=layer, by=5, seed=1)))
    for name, known in old.items():
        for key, value in known.items():
            given = new[name][key]
            if name not in (f"{layer}.weight", f"{layer}.bias", f"{reader}.weight") or not value.ndim:
                assert torch.equal(given, value), (name, key)
                continue
            axis = 1 if name == f"{reader}.weight" else 0
            before, fresh = torch.split(given, [value.shape[axis], 5], dim=axis)
            assert torch.equal(before, value), (name, key)
            usual = FRESH * value.mean() if key in SQUARES else value.new_zeros(())
            torch.testing.assert_close(fresh, usual.expand(fresh.shape))
            assert key not in SQUARES or bool((fresh > 0).all())


@pytest.mark.parametrize("engine", ENGINES)
def test_copies_remember_what_their_originals_do(engine: str) -> None:
    model, data, layer, _ = case_of(engine)
    branch, _ = trained(model, data, settings("adam"))
    wider = with_edits(branch, data, WidenSpace(space=layer, by=4, seed=2, even=True))
    rows = branch.model.get_parameter(f"{layer}.weight")
    for number, row in enumerate(wider.model.get_parameter(f"{layer}.weight")):
        (origin,) = [unit for unit in range(len(rows)) if torch.equal(rows[unit], row)]
        for key, value in branch.memory[f"{layer}.weight"].items():
            if value.ndim:
                assert torch.equal(wider.memory[f"{layer}.weight"][key][number], value[origin])


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("engine", ENGINES)
def test_after_an_edit_that_changes_nothing_training_goes_on_as_if_there_was_none(engine: str, optimizer: str) -> None:
    model, data, _, _ = case_of(engine)
    config = settings(optimizer)
    half, setup = trained(copied(model), data, config, 25)
    whole, _ = trained(copied(model), data, config, 60)
    nothings: list[Sequence[Edit]] = [(), (RemoveUnits(units={}),)]
    for edits in nothings:
        same = train_branch(BranchTraining(branch=with_edits(half, data, *edits), steps=35), setup)
        assert same_weights(same.model, whole.model)
        assert same.steps == whole.steps == 60
        for name, known in whole.memory.items():
            assert all(torch.equal(same.memory[name][key], value) for key, value in known.items())


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_branches_in_stretches_are_trained_as_train_does(engine: str) -> None:
    model, data, _, _ = case_of(engine)
    config = settings("adam", schedule="cosine")
    whole = copied(model)
    train(whole, data, config)
    branch, setup = Branch(model=copied(model)), TrainingSetup(data, config)
    for epochs in (1, 2, 3):
        branch = train_branch(
            BranchTraining(branch=with_edits(branch, data), steps=epochs * steps_per_epoch(model, data, config)), setup
        )
    assert same_weights(branch.model, whole)


def test_forgetting_goes_anotherstrategy() -> None:
    model, data, _, _ = case_of("stacked")
    half, setup = trained(model, data, settings("adam"))
    one = train_branch(BranchTraining(branch=with_edits(half, data), steps=5), setup)
    other = train_branch(BranchTraining(branch=replace(half, memory={}), steps=5), setup)
    assert not same_weights(one.model, other.model)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_new_layer_begins_gently(engine: str, optimizer: str) -> None:
    model, data, layer, _ = case_of(engine)
    config = settings(optimizer)
    branch, setup = trained(model, data, config)
    deeper = with_edits(branch, data, DeepenNetwork(after=layer))
    added = [name for name, _ in deeper.model.named_parameters() if "deeper" in name]
    assert len(added) == 2
    for name, known in branch.memory.items():
        (kept,) = [other for other in deeper.memory if other.endswith(name) and other not in added]
        assert all(torch.equal(deeper.memory[kept][key], value) for key, value in known.items())
    for name in added:
        for key, value in deeper.memory.get(name, {}).items():
            assert value.shape == deeper.model.get_parameter(name).shape
            assert bool((value > 0).all()) if key in SQUARES else not value.any()
    after = train_branch(BranchTraining(branch=deeper, steps=1), setup)
    for name in added:
        step = (after.model.get_parameter(name) - deeper.model.get_parameter(name)).detach()
        assert bool(step.any()) and float(step.abs().max()) < 4 * config.learning_rate
    longer = train_branch(BranchTraining(branch=deeper, steps=60), setup)
    assert longer.loss < 1.5 * branch.loss and longer.accuracy > branch.accuracy - 0.1


EDITS: dict[str, tuple[Edit, ...]] = {
    "fold": (FoldLayer(layer="hidden0", linearise=True, refit=True),),
    "project": (ProjectSpace(space="hidden0", to=3),),
    "factorise": (FactoriseLayer(layer="hidden0", rank=2),),
    "several": (
        GrowSpace(space="hidden0", by=3, seed=0),
        RemoveUnits(units={"hidden0": (0, 2)}),
        DeepenNetwork(after="hidden1"),
        WidenSpace(space="hidden1", by=2, seed=1),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("kind", EDITS)
@pytest.mark.parametrize("engine", ["stacked", "autograd"])
def test_training_goes_on_after_any_edit(engine: str, kind: str, optimizer: str) -> None:
    model, data, _, _ = case_of(engine)
    branch, setup = trained(model, data, settings(optimizer))
    changed = with_edits(branch, data, *EDITS[kind])
    shapes = {name: parameter.shape for name, parameter in changed.model.named_parameters()}
    for name, known in changed.memory.items():
        assert all(value.shape in (shapes[name], ()) and bool(value.isfinite().all()) for value in known.values())
    after = train_branch(BranchTraining(branch=changed, steps=60), setup)
    assert after.steps == branch.steps + 60 and math.isfinite(after.loss)
    assert after.memory.keys() == shapes.keys()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_training_goes_on_where_an_edit_changes_what_trains_the_network(optimizer: str) -> None:
    """Without its first activation, the network is one that can be in a stack."""
    data, config, model = digits(), settings(optimizer), network(8, 7)
    model.activation0 = nn.Hardswish()
    branch, setup = trained(model, data, config)
    folded = with_edits(branch, data, FoldLayer(layer="hidden0", linearise=True))
    assert stack_key(branch.model, data, config) is None
    assert stack_key(folded.model, data, config) is not None
    assert train_branch(BranchTraining(branch=folded, steps=10), setup).accuracy > 0


@pytest.mark.parametrize("edit", [GrowSpace(space="hidden0", by=2, seed=0), WidenSpace(space="hidden0", by=2, seed=0)])
@pytest.mark.parametrize("engine", ["stacked", "autograd"])
def test_a_layer_of_one_unit_can_grow(engine: str, edit: Edit) -> None:
    data = digits()
    branch, setup = trained(network(1) if engine == "stacked" else unstackable(1), data, settings("adam"))
    wider = with_edits(branch, data, edit)
    for name, known in wider.memory.items():
        shape = wider.model.get_parameter(name).shape
        assert all(value.shape == shape for key, value in known.items() if key != "step"), name
    assert train_branch(BranchTraining(branch=wider, steps=10), setup).accuracy > 0


@pytest.mark.parametrize("name", ["residual", "inception", "gated", "shared layer"])
def test_memory_follows_through_networks_of_any_kind(name: str) -> None:
    model = network_for(name)
    data = data_for(model, *CASES[name][1], counts=(48, 20, 20))
    branch, setup = trained(model, data, settings("adam"), 6)
    space = {"residual": "first", "inception": "narrow_reduce", "gated": "gate.squeeze", "shared layer": "stem"}[name]
    if name == "shared layer":
        same = train_branch(BranchTraining(branch=with_edits(branch, data), steps=6), setup)
        whole, _ = trained(model, data, settings("adam"), 12)
        assert same_weights(same.model, whole.model)
        return
    grown = with_edits(branch, data, GrowSpace(space=space, by=2, seed=0), RemoveUnits(units={space: (0,)}))
    kept = branch.memory[f"{space}.weight"]["mean"][1:]
    assert torch.equal(grown.memory[f"{space}.weight"]["mean"][: len(kept)], kept)
    assert train_branch(BranchTraining(branch=grown, steps=6), setup).accuracy > 0


def test_a_frozen_part_has_no_memory_and_stays_as_it_is() -> None:
    model = network(8, 7)
    model.hidden0.requires_grad_(False)
    data = digits()
    branch, setup = trained(model, data, settings("adam"))
    assert "hidden0.weight" not in branch.memory and "hidden1.weight" in branch.memory
    wider = with_edits(branch, data, WidenSpace(space="hidden1", by=2, seed=0))
    after = train_branch(BranchTraining(branch=wider, steps=5), setup)
    assert torch.equal(after.model.get_parameter("hidden0.weight"), model.hidden0.weight)


def test_a_judgement_is_of_the_held_out_part() -> None:
    data = digits()
    branch, _ = trained(network(8), data, settings("adam"))
    part = part_of(data, "validation")
    with torch.no_grad():
        probabilities = branch.model(part.x).softmax(1)
    assert branch.accuracy == pytest.approx(float((probabilities.argmax(1) == part.y).double().mean()))
    torch.testing.assert_close(branch.probabilities[0], probabilities[torch.arange(len(part)), part.y])
    assert branch.value == pytest.approx(float(branch.probabilities.double().mean()))


def test_the_numbers_of_one_that_diverged_are_none() -> None:
    data = digits()
    model = network(8)
    with torch.no_grad():
        model.output.weight[0, 0] = torch.nan
    found = evaluated(Branch(model=model, loss=0.0), data)
    assert found.accuracy != found.accuracy and bool(found.probabilities.isnan().all())
    assert found.probabilities.shape == (1, len(data.validation))


def test_practice_leaves_the_branch_that_it_began_with_alone() -> None:
    data = digits()
    branch, setup = trained(network(8), data, settings("adam"))
    state, memory = (
        copied(branch.model),
        {name: {key: value.clone() for key, value in known.items()} for name, known in branch.memory.items()},
    )
    train_branch(BranchTraining(branch=branch, steps=5), setup)
    assert same_weights(branch.model, state)
    assert all(
        torch.equal(branch.memory[name][key], value) for name, known in memory.items() for key, value in known.items()
    )
