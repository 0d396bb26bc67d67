"""The race of widths: what is raced, from which weights, by which score, and what becomes of a trained start."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.methods.surgeon.evolutions import as_ours, best_of, digits, evolution_for, lineage_of, network, part_of
from topiarist import TrainConfig, models, train
from topiarist.measurement import Budget
from topiarist.methods import Outcome, resize
from topiarist.methods.surgeon.wider_networks import forgotten, groups_of, more, redraw
from topiarist.methods.surgeon.widths import LOOKS, Entrant, WidthRace, held_out_losses
from topiarist.randomness import generator
from topiarist.surgery import layers
from topiarist.surgery.choice.costs import Costs
from topiarist.tracing import anatomy

DATA = digits(1000, 250, 200)
X = part_of(DATA, "train").x[:2]


def raced(model: nn.Module, **settings: Any) -> Outcome:
    """Return what comes out right after the race: any accuracy will do."""
    return resize(model, DATA, as_ours(20, stop_at=1e-9, **settings), latency=False)


def race_of(model: nn.Module) -> WidthRace:
    evolution, _ = evolution_for(model, DATA, TrainConfig(epochs=20, batch_size=16, learning_rate=0.003))
    return WidthRace(evolution=evolution, price=0.01, most=8, fits=lambda model: True)


def weight_of(model: nn.Module, layer: str) -> Tensor:
    return layers.weight_of(model.get_submodule(layer))


def test_a_network_that_is_too_small_grows_before_the_first_epoch() -> None:
    outcome = raced(network(4))
    assert outcome.units["hidden0"] == (4, 32)
    decision = lineage_of(outcome).decisions[0]
    assert decision.epoch == 0 and "8 × 'hidden0'" in decision.reason


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 2, 4])
def test_growth_has_a_limit(most: int) -> None:
    assert raced(network(4), max_growth=most).units["hidden0"] == (4, 4 * most)


def test_a_high_price_prevents_growth() -> None:
    outcome = raced(network(16), aim=0.2)
    assert outcome.units["hidden0"] == (16, 16)
    assert lineage_of(outcome).decisions[0].reason.startswith("leave as it is (after ")


def test_the_budget_prevents_growth() -> None:
    outcome = resize(network(4), DATA, as_ours(20, stop_at=1e-9), budget=Budget(parameters=700), latency=False)
    assert outcome.units["hidden0"] == (4, 8)  # 610 parameters; 16 units would have 1,210
    left = [node for node in lineage_of(outcome).nodes if "above the budget" in node.reason]
    assert left and all(node.parameters > 700 and node.fate == "dropped" for node in left)


@pytest.mark.slow
def test_every_network_of_the_race_is_in_the_lineage() -> None:
    lineage = lineage_of(raced(network(4)))
    assert [node.widths for node in lineage.nodes[1:]] == [(("hidden0", width),) for width in (4, 8, 16, 32)]
    assert all(len(node.points) == len(LOOKS) for node in lineage.nodes[1:] if node.fate == "dropped")
    assert best_of(lineage).widths == (("hidden0", 32),)


@pytest.mark.slow
def test_a_trained_network_grows_by_fresh_units_that_change_nothing() -> None:
    model = network(4)
    train(model, DATA, TrainConfig(epochs=30, learning_rate=0.01))
    race = race_of(model)
    start = race.evolution.begin()
    found = race.evolution.anatomy_of(start)
    assert found is not None
    winner = race.run(start, found)
    assert winner.steps == 0 and weight_of(winner.model, "hidden0").shape[0] > 4
    x = part_of(DATA, "test").x.double()
    torch.testing.assert_close(winner.model.double()(x), model.double()(x))
    assert [node.fate for node in race.evolution.lineage.nodes].count("dropped") == len(race.tried) - 1


@pytest.mark.slow
def test_the_winner_of_untrained_networks_goes_on() -> None:
    race = race_of(network(4))
    start = race.evolution.begin()
    found = race.evolution.anatomy_of(start)
    assert found is not None
    assert race.run(start, found).steps == race.length == 63


def test_what_diverges_is_never_better() -> None:
    race = race_of(network(4))
    branch = race.evolution.begin()
    gone = Entrant(branch=branch, factors={"hidden0": 1}, losses=(torch.full((5,), torch.nan),))
    assert race.score(gone) == float("inf")


def groups(model: nn.Module, inputs: int) -> list[tuple[str, ...]]:
    found = anatomy(model, torch.zeros(2, inputs))
    return groups_of(Costs(model, found), model, found)


def test_layers_that_cost_little_come_first() -> None:
    assert groups(models.mlp([640, 10, 10, 10, 10]), 640) == [("hidden1", "hidden2"), ("hidden0", "hidden1", "hidden2")]
    assert groups(models.mlp([64, 10, 10]), 64) == [("hidden0",)]


def test_what_a_wider_network_costs_more() -> None:
    model = models.mlp([640, 10, 10, 10])
    costs = Costs(model, anatomy(model, torch.zeros(2, 640)))
    wider = models.mlp([640, 10, 40, 10])
    sizes = [sum(parameter.numel() for parameter in each.parameters()) for each in (model, wider)]
    assert more(costs, {"hidden1": 4}) >= sizes[1] / sizes[0] - 1
    assert more(costs, {"hidden1": 1}) == 0


@pytest.mark.slow
def test_the_first_spaces_grow_only_while_that_is_nearly_free() -> None:
    lineage = lineage_of(raced(network(8, 8), max_growth=64))
    costs = Costs(network(8, 8), anatomy(network(8, 8), X))
    only_inner = [dict(node.widths) for node in lineage.nodes if dict(node.widths)["hidden0"] == 8]
    assert all(more(costs, {"hidden1": widths["hidden1"] // 8}) <= 0.25 for widths in only_inner)


@pytest.mark.slow
def test_layers_that_do_not_learn_do_not_grow() -> None:
    model = network(4, 8)
    model.hidden0.requires_grad_(False)
    assert groups(model, 64) == [("hidden1",)]
    outcome = raced(model)
    assert outcome.units.get("hidden0", (4, 4)) == (4, 4) and outcome.units["hidden1"][1] > 8


def test_the_temperature_does_not_count() -> None:
    random = torch.Generator().manual_seed(0)
    labels = torch.randint(10, (200,), generator=random)
    logits = torch.randn(200, 10, generator=random) + 3 * nn.functional.one_hot(labels, 10)
    found = held_out_losses(logits, labels)
    assert found.shape == (200,)
    assert float(held_out_losses(8 * logits, labels).mean()) == pytest.approx(float(found.mean()), abs=0.01)
    assert float(found.mean()) < float(nn.functional.cross_entropy(4 * logits, labels))
    assert float(held_out_losses(torch.zeros(5, 10), labels[:5]).mean()) == pytest.approx(2.302585, abs=1e-5)


def entrant(race: WidthRace, width: int, loss: float, *, spread: float = 0.0) -> Entrant:
    losses = loss + spread * torch.linspace(-1, 1, 100)
    branch = replace(race.evolution.begin(), model=network(width))
    return Entrant(branch=branch, factors={"hidden0": width // 4}, losses=(losses, losses))


def test_a_doubling_must_pay_its_price_and_more_than_half_a_standard_error() -> None:
    race = race_of(network(4))
    same = entrant(race, 4, 1.0)
    assert race.pays(entrant(race, 8, 0.98), same)
    assert not race.pays(entrant(race, 8, 0.995), same)  # twice the parameters cost 0.01 nats
    assert not race.pays(entrant(race, 8, 0.98, spread=1.0), same)  # a standard error of 0.058


def test_a_wider_network_is_drawn_like_a_narrow_one() -> None:
    narrow, wide = models.mlp([64, 50, 40, 10], generator=generator(0)), models.mlp([64, 200, 160, 10])
    redraw(wide, narrow, seed=1)
    for name, old in (("hidden0", 64), ("hidden1", 50), ("output", 40)):
        mine, theirs = weight_of(wide, name), weight_of(narrow, name)
        scale = (old / mine.shape[1]) ** 0.5
        assert float(mine.std()) == pytest.approx(scale * float(theirs.std()), rel=0.1)
        torch.testing.assert_close(mine[: theirs.shape[0], : theirs.shape[1]], scale * theirs)


def test_what_is_forgotten_is_drawn_anew_and_the_network_stays() -> None:
    model = network(8)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    one, other = forgotten(model, 3), forgotten(model, 3)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(weight_of(one, "hidden0"), weight_of(other, "hidden0"))
    assert not torch.equal(weight_of(one, "hidden0"), before["hidden0.weight"])


@pytest.mark.slow
def test_training_stops_at_the_accuracy_that_is_asked_for() -> None:
    outcome = resize(network(16), DATA, as_ours(20, stop_at=0.5), latency=False)
    best = best_of(lineage_of(outcome))
    assert best.accuracy is not None and best.accuracy >= 0.5 and best.ends < 20
