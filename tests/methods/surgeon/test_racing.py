"""Races: who goes on, when races are run, and when they end."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.methods.surgeon.evolutions import (
    as_ours,
    best_of,
    digits,
    evolution_for,
    line_of,
    lineage_of,
    network,
    same_weights,
)
from topiarist import TrainConfig, models, train
from topiarist.evolution.lineage import Lineage
from topiarist.measurement import Budget
from topiarist.methods import Outcome, resize
from topiarist.methods.surgeon.branches import Branch
from topiarist.methods.surgeon.racing import RacingStrategy
from topiarist.methods.surgeon.surgeon import looked_at

LARGE = digits(1000, 250, 200)


def racing(*hidden: int, epochs: int = 20, **settings: Any) -> RacingStrategy:
    evolution, _ = evolution_for(network(*hidden), digits(), TrainConfig(epochs=epochs, batch_size=16))
    known: dict[str, Any] = {"price": 0.001, "kinds": (), "interval": 2, "patience": 2, "allowance": 1000}
    samples = looked_at(evolution.job.whole, digits(), 0)
    return RacingStrategy(evolution=evolution, samples=samples, fits=lambda model: True, **(known | settings))


def runners(race: RacingStrategy, *probabilities: Tensor, units: Sequence[int] = (4, 5, 6)) -> list[Branch]:
    """Return branches of growing size, the first unchanged, with their probabilities at one look or more."""
    found: list[Branch] = []
    for given, width in zip(probabilities, units, strict=False):
        branch = race.evolution.begin()
        number = len(race.evolution.lineage.nodes) - 1
        race.evolution.lineage.update(number, kind="grow" if found else "identity")
        found.append(replace(branch, model=network(width), node=number, probabilities=given))
    return found


def noisy(mean: float, *, looks: int = 1, seed: int = 0) -> Tensor:
    return mean + 0.1 * torch.randn(looks, 200, generator=torch.Generator().manual_seed(seed))


def test_who_is_clearly_worse_leaves_the_race() -> None:
    race = racing(4)
    good, bad = runners(race, noisy(0.7), noisy(0.5, seed=1))
    assert race.unbeaten([bad, good], least=0.0) == [good]
    assert race.evolution.lineage.nodes[bad.node].fate == "dropped"
    assert "clearly worse" in race.evolution.lineage.nodes[bad.node].reason


def test_before_the_end_it_takes_a_point() -> None:
    race = racing(4)
    base = noisy(0.7)
    slower = base - 0.005
    one, other = runners(race, base, slower, units=(4, 4))
    assert len(race.unbeaten([one, other], least=0.01)) == 2
    assert len(race.unbeaten([one, other], least=0.0)) == 1


def test_who_diverged_leaves_the_race() -> None:
    race = racing(4)
    good, gone = runners(race, noisy(0.4), torch.full((1, 200), torch.nan))
    assert race.unbeaten([gone, good], least=0.01) == [good]
    assert race.evolution.lineage.nodes[gone.node].reason.endswith("it diverged")


def test_what_wavers_from_look_to_look_is_not_clear() -> None:
    race = racing(4)
    base = noisy(0.7, looks=3)
    one, other = runners(race, base, base - torch.tensor([[0.0], [0.1], [-0.04]]), units=(4, 4))
    assert len(race.unbeaten([one, other], least=0.0)) == 2
    one, other = runners(race, base, base - 0.02, units=(4, 4))
    assert len(race.unbeaten([one, other], least=0.0)) == 1


def test_the_doubt_is_that_of_the_best_changed_network() -> None:
    race = racing(4)
    same, first, second = runners(race, noisy(0.704), noisy(0.7, seed=1), noisy(0.702, seed=2))
    left = race.unbeaten([first, second, same], least=0.0)
    assert len(left) == 3 and [race.score(each) for each in left] == sorted(map(race.score, left), reverse=True)
    best = max((first, second), key=race.score)
    assert race.winner(left) is best
    assert {race.evolution.lineage.nodes[each.node].fate for each in left if each is not best} == {"dropped"}
    assert race.winner([same]) is same


def test_size_has_its_price() -> None:
    race = racing(4, price=0.1)
    one, twice = runners(race, noisy(0.7), noisy(0.7), units=(4, 8))
    assert race.score(one) - race.score(twice) == pytest.approx(0.1, abs=0.02)


@cache
def evolved(*hidden: int, seed: int = 0, **settings: Any) -> Outcome:
    return resize(network(*hidden), LARGE, as_ours(20, **settings), seed=seed, latency=False)


def kinds_by_epoch(lineage: Lineage) -> list[tuple[str, float]]:
    return [(node.kind, node.begins / lineage.epochs) for node in lineage.nodes]


@pytest.mark.slow
def test_a_network_that_is_too_small_grows_and_is_not_cut_again() -> None:
    outcome = evolved(4)
    lineage = lineage_of(outcome)
    assert outcome.units["hidden0"][1] > 8
    assert outcome.after.accuracy > 0.85
    kinds = [node.kind for node in line_of(lineage, best_of(lineage).number)]
    assert "grow" in kinds and "remove" not in kinds


SHRINKING = ("renew", "remove", "fold", "factorise")


@pytest.mark.slow
def test_a_network_that_is_too_large_becomes_smaller() -> None:
    outcome = evolved(200, 100, kinds=SHRINKING)
    assert outcome.after.parameters < 0.7 * outcome.before.parameters
    assert outcome.after.accuracy > 0.9


@pytest.mark.slow
def test_networks_change_in_kind_early_and_lose_units_late() -> None:
    for outcome in (evolved(4), evolved(200, 100, kinds=SHRINKING)):
        for kind, share in kinds_by_epoch(lineage_of(outcome)):
            if kind == "grow":
                assert share == 0
            elif kind in ("renew", "fold"):
                assert share < 0.3
            elif kind == "remove":
                assert 0.4 <= share < 0.6


@pytest.mark.slow
def test_every_decision_keeps_one_network_and_says_why() -> None:
    for outcome in (evolved(4), evolved(200, 100)):
        lineage = lineage_of(outcome)
        assert lineage.decisions
        for number, decision in enumerate(lineage.decisions, 1):
            (kept,) = decision.kept
            assert decision.number == number and kept in decision.candidates and decision.reason
        assert len(outcome.reasons) == len(lineage.decisions)


@pytest.mark.slow
def test_no_candidate_is_above_the_budget() -> None:
    budget = Budget(parameters=600)
    outcome = resize(network(4), LARGE, as_ours(20), budget=budget, latency=False)
    for node in lineage_of(outcome).nodes:
        if node.parameters > 600:
            assert node.fate == "dropped" and node.begins == node.ends and "above the budget" in node.reason
    assert outcome.after.parameters <= 600


@pytest.mark.slow
def test_without_an_allowance_nothing_is_tried() -> None:
    lineage = lineage_of(evolved(4, search=0.0))
    assert {node.kind for node in lineage.nodes} <= {"start", "identity", "remove"}


@pytest.mark.slow
def test_what_losers_take_is_kept_within_the_allowance() -> None:
    for search in (0.05, 0.2):
        outcome = evolved(200, 100, search=search, aim="smaller", kinds=SHRINKING)
        lineage = lineage_of(outcome)
        losers = [node.ends - node.begins for node in lineage.nodes if node.fate == "dropped"]
        assert sum(losers) <= search * lineage.epochs + 1e-9


@pytest.mark.slow
def test_after_some_decisions_without_a_change_no_more_are_made() -> None:
    lineage = lineage_of(evolved(16, kinds=("deepen",), patience=1))
    assert len(lineage.decisions) == 1


def test_a_topology_that_comes_back_ends_the_phase() -> None:
    race = racing(4)
    race.first()
    race.seen = [(("hidden0", 4),), (("hidden0", 8),)]
    node = replace(race.evolution.lineage.nodes[0], kind="fold", widths=(("hidden0", 4),))
    assert list(race.endings(node, "early")) == ["this topology was there before: this was the last early decision"]
    assert race.closed == {"early"}


def test_what_was_added_is_not_taken_away() -> None:
    race = racing(4, kinds=("deepen", "fold", "remove", "factorise"))
    race.first()
    assert race.due("late") == ["remove", "factorise"]
    node = replace(race.evolution.lineage.nodes[0], kind="deepen", widths=(("hidden0", 4), ("hidden0_deeper", 4)))
    assert list(race.endings(node, "early")) == ["what was added will not be taken away"]
    assert race.due("late") == ["remove"] and race.due("early") == ["deepen"]
    assert race.grown == ["hidden0", "hidden0_deeper"]


def test_what_a_race_remembers_goes_through_json() -> None:
    race = racing(4, kinds=("grow", "remove"))
    (branch,) = race.first()
    race.cycle([branch])
    again = racing(4, kinds=("grow", "remove"))
    again.load(json.loads(json.dumps(race.state())))
    assert again.state() == race.state()
    assert (again.seen, again.closed, again.next_decision) == (race.seen, race.closed, race.next_decision)


def test_decisions_are_an_interval_apart() -> None:
    method = as_ours(60, batch_size=200, interval=25, kinds=("deepen", "remove"))
    lineage = lineage_of(resize(network(4), LARGE, method, latency=False))
    assert [decision.epoch for decision in lineage.decisions] == [6, 31]


@pytest.mark.slow
def test_removals_cost_no_steps_and_need_no_allowance() -> None:
    lineage = lineage_of(evolved(200, 100, search=0.0))
    assert "remove" in {node.kind for node in line_of(lineage, best_of(lineage).number)}


@pytest.mark.slow
def test_no_network_is_left_open() -> None:
    budget = Budget(parameters=600)
    some = resize(network(4), LARGE, as_ours(20), budget=budget, latency=False)
    for outcome in (some, evolved(4), evolved(200, 100)):
        assert "running" not in {node.fate for node in lineage_of(outcome).nodes}
    assert any("above the budget" in node.reason for node in lineage_of(some).nodes)


class Deciding(nn.Module):
    """A network whose code looks at values."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = network(6)

    def forward(self, x: Tensor) -> Tensor:
        answers: Tensor = self.inner(x)
        return answers + 1 if float(x.sum()) < -1e9 else answers


@pytest.mark.slow
def test_a_network_whose_code_looks_at_values_is_edited() -> None:
    outcome = resize(Deciding(), digits(), as_ours(10), latency=False)
    assert len(outcome.model.get_parameter("inner.hidden0.weight")) != 6
    assert isinstance(outcome.model, Deciding)


@pytest.mark.slow
def test_norms_that_rest_go_on_resting() -> None:
    def made() -> nn.Module:
        model = models.mlp([64, 8, 10], batch_norm=True).train()
        for module in model.modules():
            if isinstance(module, nn.BatchNorm1d):
                module.eval()
        return model

    outcome = resize(made(), digits(), as_ours(10, kinds=()), latency=False)
    plain = made()
    train(plain, digits(), as_ours(10).usual_training)
    assert same_weights(outcome.model, plain)


@pytest.mark.slow
def test_a_larger_aim_for_size_gives_smaller_networks() -> None:
    sizes = [evolved(200, 100, aim=aim, kinds=SHRINKING).after.parameters for aim in ("better", "smaller")]
    assert sizes[1] < sizes[0]
