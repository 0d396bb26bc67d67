"""What is proposed to a network, by what its activations and its weights tell."""

from typing import Any

import pytest
import torch
from torch import nn

from tests.methods.surgeon.evolutions import digits, evolution_for, network, part_of
from topiarist import TrainConfig, train
from topiarist.methods.surgeon.evolution import EditCandidate
from topiarist.methods.surgeon.proposals import GROWING, KINDS, Kind, Proposals
from topiarist.models.evaluation import count_parameters
from topiarist.surgery import (
    DeepenNetwork,
    FactoriseLayer,
    FoldLayer,
    GrowSpace,
    Plan,
    RemoveUnits,
    apply,
    recommend,
    widen,
)

SAMPLES = part_of(digits(), "train")


def proposals(
    model: nn.Module, *, stuck: bool = False, tolerance: float = 0.0005, needed_whole: tuple[str, ...] = ()
) -> Proposals:
    evolution, _ = evolution_for(model, digits(), TrainConfig(epochs=10))
    advice = recommend(model, SAMPLES.x[:2], calibration=SAMPLES.x, labels=SAMPLES.y)
    return Proposals(evolution, evolution.begin(), advice, 1, tolerance, stuck, needed_whole)


def only(found: Proposals, kind: Kind) -> EditCandidate:
    (candidate,) = found.of(kind)
    return candidate


@torch.no_grad()
def with_dead_units(*hidden: int, dead: int) -> Any:
    model = network(*hidden)
    model.hidden0.bias[:dead] = -100.0
    return model


def trained(model: Any, epochs: int = 15) -> Any:
    train(model, digits(), TrainConfig(epochs=epochs, learning_rate=0.01))
    return model


def test_many_dead_units_are_renewed() -> None:
    model = with_dead_units(8, dead=4)
    *grown, removed = only(proposals(model), "renew").edits
    assert sum(edit.by for edit in grown if isinstance(edit, GrowSpace)) == 4
    assert removed == RemoveUnits(units={"hidden0": (0, 1, 2, 3)})


def test_one_dead_unit_of_eight_is_let_be() -> None:
    assert not list(proposals(with_dead_units(8, dead=1)).of("renew"))


def roomy(*more: int) -> Any:
    """Return a trained network whose first space has many copies of few units."""
    model = widen(trained(network(6, *more)), SAMPLES.x[:2], space="hidden0", by=42, generator=torch.Generator())
    return model


def test_copies_are_not_needed() -> None:
    found = proposals(roomy())
    candidate = only(found, "remove")
    (edit,) = candidate.edits
    assert isinstance(edit, RemoveUnits) and edit.refit
    assert len(edit.units["hidden0"]) >= 42
    small = apply(Plan(candidate.edits), found.branch.model, SAMPLES.x[:2], calibration=SAMPLES.x)
    assert count_parameters(small) < 0.2 * count_parameters(found.branch.model)
    with torch.no_grad():
        wanted, got = found.branch.model(SAMPLES.x), small(SAMPLES.x)
    assert float((got - wanted).square().mean() / wanted.var()) < 0.005


def test_what_won_by_its_width_keeps_it() -> None:
    assert not list(proposals(roomy(), needed_whole=("hidden0",)).of("remove"))


def removed(model: nn.Module, tolerance: float) -> int:
    edits = [edit for candidate in proposals(model, tolerance=tolerance).of("remove") for edit in candidate.edits]
    return sum(len(units) for edit in edits if isinstance(edit, RemoveUnits) for units in edit.units.values())


def test_more_units_go_where_more_may_be_lost() -> None:
    model = trained(network(32))
    assert removed(model, 0.0005) < removed(model, 0.05) < 32


def test_the_only_hidden_layer_is_never_folded() -> None:
    assert not list(proposals(roomy()).of("fold"))


def test_a_layer_whose_activation_does_nothing_is_folded() -> None:
    found = proposals(linear_in_the_middle())
    (edit,) = only(found, "fold").edits
    assert edit == FoldLayer(layer="hidden1", linearise=True, refit=True)


@torch.no_grad()
def linear_in_the_middle() -> Any:
    """Return a network whose second activation sees positive numbers only, and whose spaces have room."""
    model = network(64, 64)
    model.hidden1.bias[:] = 100.0
    for layer in (model.hidden0, model.hidden1):
        layer.weight[8:] = layer.weight[:8].repeat(7, 1)
        layer.bias[8:] = layer.bias[:8].repeat(7)
    return model


def test_layers_are_added_only_where_nothing_else_helped() -> None:
    (edit,) = only(proposals(roomy(), stuck=True), "deepen").edits
    assert edit == DeepenNetwork(after="hidden0")
    assert not list(proposals(roomy(), stuck=False).of("deepen"))


def test_a_layer_of_low_rank_is_factorised() -> None:
    model = network(64, 64)
    with torch.no_grad():
        model.hidden1.weight.copy_(torch.randn(64, 3) @ torch.randn(3, 64))
    (edit,) = only(proposals(model), "factorise").edits
    assert isinstance(edit, FactoriseLayer) and edit.layer == "hidden1" and edit.rank >= 3
    assert not list(proposals(network(64, 64)).of("factorise"))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in GROWING])
def test_a_network_without_hidden_layers_is_left_as_it_is(kind: Kind) -> None:
    assert not list(proposals(network(), stuck=True).of(kind))
