"""Widths within a budget: kept, used up, and refused where it cannot be met."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.networks import NETWORKS
from tests.surgery.samples import made, more
from topiarist.errors import DataError, ModelError, SettingsError
from topiarist.measurement.cost import count_macs
from topiarist.randomness import generator
from topiarist.surgery import allot_widths, choose_units, remove
from topiarist.surgery.calibration import batches_for
from topiarist.surgery.choice.allotment import Losses, lost_shares
from topiarist.surgery.choice.choosing import cut_to_widths
from topiarist.surgery.choice.costs import Costs
from topiarist.tracing import anatomy

NAMES = ["residual", "inception", "cascade", "gated", "grouped", "grouped sequence", "shared layer", "frozen", "normed"]


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 10), nn.ReLU(), nn.Linear(10, 3))


def next_width(width: int, full: int, multiple_of: int) -> int:
    return min((width // multiple_of + 1) * multiple_of, full)


def check_widths(
    cost: Callable[[dict[str, int]], int],
    full: dict[str, int],
    widths: dict[str, int],
    budget: int,
    multiple_of: int = 1,
) -> None:
    """See that widths keep a budget, and that no space can take one step more."""
    assert widths.keys() == full.keys()
    assert all(1 <= width <= full[name] for name, width in widths.items())
    assert all(width % multiple_of == 0 or width == full[name] for name, width in widths.items())
    assert cost(widths) <= budget
    for name, width in widths.items():
        if width < full[name]:
            assert cost({**widths, name: next_width(width, full[name], multiple_of)}) > budget, name


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.35, 0.6, 0.9])
@pytest.mark.parametrize("unit", ["parameters", "macs"])
@pytest.mark.parametrize("name", NAMES)
def test_the_budget_is_kept_and_no_step_up_fits(name: str, unit: str, share: float) -> None:
    model, example = NETWORKS[name](0)
    costs = Costs(model, anatomy(model, example))
    cost = costs.parameters if unit == "parameters" else costs.macs
    fewest = cost(dict.fromkeys(costs.widths, 1))
    budget = int(fewest + share * (cost({}) - fewest))
    given: dict[str, Any] = {unit: budget}
    widths = allot_widths(model, example, calibration=more(example, 30), **given)
    check_widths(cost, costs.widths, widths, budget)


@pytest.mark.parametrize("multiple_of", [2, 4, 5])
def test_widths_are_multiples_or_full(multiple_of: int) -> None:
    model, x = made(mlp, 60, 5)
    costs = Costs(model, anatomy(model, x))
    for budget in (130, 170, 220, 238):
        widths = allot_widths(model, x, calibration=x, parameters=budget, multiple_of=multiple_of)
        check_widths(costs.parameters, costs.widths, widths, budget, multiple_of)


@pytest.mark.parametrize("unit", ["parameters", "macs"])
def test_the_network_that_is_cut_to_the_widths_keeps_the_budget(unit: str) -> None:
    model, x = made(mlp, 60, 5)
    budget: dict[str, Any] = {unit: 120}
    widths = allot_widths(model, x, calibration=x, **budget)
    cut = remove(model, x, units=choose_units(model, x, keep=widths, calibration=x), calibration=x)
    real = {"parameters": sum(parameter.numel() for parameter in cut.parameters()), "macs": count_macs(cut, x[:1])}
    assert real[unit] <= 120


@pytest.mark.parametrize("budget", [235, 236, 10**9])
def test_a_budget_that_is_large_enough_leaves_the_widths_as_they_are(budget: int) -> None:
    model, x = made(mlp, 60, 5)
    assert sum(parameter.numel() for parameter in model.parameters()) == 235
    assert allot_widths(model, x, calibration=x, parameters=budget) == {"0": 12, "2": 10}


def test_the_smallest_possible_budget_gives_the_smallest_network() -> None:
    model, x = made(mlp, 60, 5)
    assert allot_widths(model, x, calibration=x, parameters=6 + 2 + 6) == {"0": 1, "2": 1}
    assert allot_widths(model, x, calibration=x, macs=5 + 1 + 3) == {"0": 1, "2": 1}


def test_a_budget_that_cannot_be_met_is_one_clear_error_with_the_fewest_possible() -> None:
    model, x = made(mlp, 60, 5)
    with pytest.raises(ModelError, match=r"^a budget of 13 parameters cannot be met: 14 are the fewest possible$"):
        allot_widths(model, x, calibration=x, parameters=13)
    with pytest.raises(ModelError, match=r"^a budget of 8 multiply-accumulates cannot be met: 9 are the fewest"):
        allot_widths(model, x, calibration=x, macs=8)
    fewest = 6 * 4 + 4 * 4 + 4 + 4 * 3 + 3
    with pytest.raises(ModelError, match=rf"cannot be met: {fewest} are the fewest possible$"):
        allot_widths(model, x, calibration=x, parameters=fewest - 1, multiple_of=4)
    assert allot_widths(model, x, calibration=x, parameters=fewest, multiple_of=4) == {"0": 4, "2": 4}


def test_both_budgets_are_kept_and_none_is_refused() -> None:
    model, x = made(mlp, 60, 5)
    costs = Costs(model, anatomy(model, x))
    widths = allot_widths(model, x, calibration=x, parameters=150, macs=100)
    assert costs.parameters(widths) <= 150
    assert costs.macs(widths) <= 100
    for name, width in widths.items():
        wider = {**widths, name: width + 1}
        assert costs.parameters(wider) > 150 or costs.macs(wider) > 100
    with pytest.raises(SettingsError, match="a budget needs parameters, macs or both"):
        allot_widths(model, x, calibration=x)


def test_a_multiple_of_nothing_and_empty_data_are_refused() -> None:
    model, x = made(mlp, 60, 5)
    with pytest.raises(SettingsError, match="multiple_of must be at least 1"):
        allot_widths(model, x, calibration=x, parameters=100, multiple_of=0)
    with pytest.raises(DataError, match="empty"):
        allot_widths(model, x, calibration=[], parameters=100)


def spare(outputs: int) -> tuple[nn.Module, Tensor, int]:
    """Return a network with four distinct units of twelve in the first layer, and what it costs without the others."""
    model, x = made(
        lambda: nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 10), nn.Tanh(), nn.Linear(10, outputs)),
        *(300, 5),
    )
    with torch.no_grad():
        model[0].weight.copy_(model[0].weight[[0, 1, 2, 3] * 3])
        model[0].bias.copy_(model[0].bias[[0, 1, 2, 3] * 3])
        model[2].weight *= 5  # so that no unit of the second layer can do without the others
    return model, x, Costs(model, anatomy(model, x)).parameters({"0": 4})


def test_the_space_with_units_to_spare_gives_them_up() -> None:
    model, x, budget = spare(3)
    assert allot_widths(model, x, calibration=x, parameters=budget) == {"0": 4, "2": 10}


def test_the_network_is_left_as_it_was() -> None:
    model, example = NETWORKS["residual"](0)
    model.train()
    state = {name: values.clone() for name, values in model.state_dict().items()}
    allot_widths(model, example, calibration=more(example, 20), parameters=500)
    assert all(torch.equal(values, state[name]) for name, values in model.state_dict().items())
    assert all(module.training for module in model.modules())


def test_before_a_single_output_the_last_space_counts() -> None:
    model, x, budget = spare(1)
    assert allot_widths(model, x, calibration=x, parameters=budget) == {"0": 4, "2": 10}


def distances(model: nn.Module, x: Tensor, candidates: list[dict[str, int]], seen: Tensor) -> list[float]:
    """Return how far refitted networks of some widths are from a network of one number per sample, by plain means."""
    wanted = model(x).detach()
    found = [cut_to_widths(model, x[:2], keep=keep, calibration=seen, settling=0).model(x) for keep in candidates]
    return [float((answers.detach() - wanted).square().mean()) for answers in found]


@pytest.mark.parametrize("seed", range(2))
def test_where_little_is_left_it_is_never_worse_than_equal_shares(seed: int) -> None:
    random = generator(seed, "deep and narrow")
    model = nn.Sequential(nn.Linear(8, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(1.5 * torch.randn(parameter.shape, generator=random) / parameter.shape[-1] ** 0.5)
    x, found = torch.randn(1024, 8, generator=random), anatomy(model, torch.zeros(2, 8))
    batches = batches_for(x, model, x[:2])
    losses = Losses(Costs(model, found), lost_shares(model, found, batches))
    candidates = losses.candidates_within(parameters=120)
    assert len(candidates) == 2 and all(losses.costs.parameters(widths) <= 120 for widths in candidates)
    allotted = allot_widths(model, x[:2], calibration=x, parameters=120)
    seen = torch.cat([x[:256], x[512:768]])  # every other batch; the rest is judged by
    far = distances(model, torch.cat([x[256:512], x[768:]]), candidates, seen)
    assert allotted == candidates[far.index(min(far))]
    assert len(losses.candidates_within(parameters=1000)) == 1
