"""An optimizer's memory follows the parameters that survive an edit."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tests.networks import NETWORKS, built
from topiarist.errors import ModelError, TopiaristError
from topiarist.randomness import generator
from topiarist.surgery import (
    compact,
    complement,
    deepen,
    factorise,
    fold,
    grow,
    merge_units,
    project,
    remove,
    transplant,
    widen,
)
from topiarist.surgery.transplant import FRESH, SQUARES

pytestmark = pytest.mark.slow

OPTIMIZERS: dict[str, Any] = {
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.02, weight_decay=0.01),
    "Adam, amsgrad": lambda parameters: torch.optim.Adam(parameters, lr=0.02, amsgrad=True),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.02, weight_decay=0.1),
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.02, momentum=0.9, weight_decay=0.01),
    "SGD without momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.02),
    "RMSprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.02, momentum=0.5, centered=True),
}


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3))


def made(make: Callable[[], nn.Module] = mlp, *shape: int) -> tuple[Any, Tensor]:
    model, x = built(make, shape or (30, 4), seed=0)
    assert isinstance(x, Tensor)
    return model, x


def train(model: Any, optimizer: Optimizer, x: Tensor, steps: int = 4) -> list[float]:
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(x) - x.flatten(1)[:, :3]).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def ready(kind: str) -> tuple[Any, Tensor, Optimizer]:
    model, x = made()
    optimizer: Optimizer = OPTIMIZERS[kind](model.parameters())
    train(model, optimizer, x)
    return model, x, optimizer


def check_grown(before: Any, after: Any) -> None:
    """Compare the states of a parameter before and after it got two rows."""
    for name, values in before.items():
        if isinstance(values, Tensor) and values.ndim:
            assert torch.equal(after[name][:-2], values), name
            usual = FRESH * values.mean() if name in SQUARES else torch.zeros(())
            assert torch.equal(after[name][-2:], usual.expand_as(values[:2])), name


def check_state(before: Any, after: Any, take: Callable[[Tensor], Tensor] = lambda values: values) -> None:
    """Compare the states of one parameter before and after; `take` picks what survives of a tensor by hand."""
    assert before.keys() == after.keys()
    for name, values in before.items():
        if not isinstance(values, Tensor):
            assert after[name] == values
        else:
            assert torch.equal(after[name], take(values) if values.ndim else values), name


def names_in(optimizer: Optimizer, model: nn.Module) -> list[list[str]]:
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return [[names[id(parameter)] for parameter in group["params"]] for group in optimizer.param_groups]


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_after_a_removal_rows_and_columns_that_stay_keep_their_state(kind: str) -> None:
    model, x, old = ready(kind)
    cut: Any = remove(model, x, units={"0": [1, 5]}, calibration=x)
    new = transplant(old, model, cut)
    kept = [0, 2, 3, 4, 6, 7]
    check_state(old.state[model[0].weight], new.state[cut[0].weight], lambda values: values[kept])
    check_state(old.state[model[0].bias], new.state[cut[0].bias], lambda values: values[kept])
    check_state(old.state[model[2].weight], new.state[cut[2].weight], lambda values: values[:, kept])
    for path in ("2.bias", "4.weight", "4.bias"):
        check_state(old.state[model.get_parameter(path)], new.state[cut.get_parameter(path)])
    train(cut, new, x)


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_after_widening_copies_have_the_state_of_their_unit(kind: str) -> None:
    model, x, old = ready(kind)
    wide: Any = widen(model, x, space="0", by=3, generator=generator(0))
    new = transplant(old, model, wide)
    origin = torch.cdist(wide[0].weight, model[0].weight).argmin(1)
    assert torch.equal(wide[0].weight, model[0].weight[origin]) and len(origin) == 11
    check_state(old.state[model[0].weight], new.state[wide[0].weight], lambda values: values[origin])
    check_state(old.state[model[0].bias], new.state[wide[0].bias], lambda values: values[origin])
    check_state(old.state[model[2].weight], new.state[wide[2].weight], lambda values: values[:, origin])
    check_state(old.state[model[4].weight], new.state[wide[4].weight])
    train(wide, new, x)


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_after_growing_fresh_units_begin_without_momentum_and_with_a_share_of_the_usual_squares(kind: str) -> None:
    model, x, old = ready(kind)
    grown: Any = grow(model, x, space="2", by=2, generator=generator(0))
    new = transplant(old, model, grown)
    check_grown(old.state[model[2].weight], new.state[grown[2].weight])
    check_grown(old.state[model[2].bias], new.state[grown[2].bias])
    check_state(old.state[model[0].weight], new.state[grown[0].weight])
    check_state(old.state[model[4].bias], new.state[grown[4].bias])
    train(grown, new, x)


@pytest.mark.slow
def test_after_growing_old_columns_keep_their_state() -> None:
    model, x, old = ready("Adam")
    grown: Any = grow(model, x, space="2", by=2, generator=generator(0))
    state = transplant(old, model, grown).state[grown[4].weight]
    for name in ("exp_avg", "exp_avg_sq"):
        assert torch.equal(state[name][:, :6], old.state[model[4].weight][name])


def test_columns_that_read_fresh_units_begin_without_momentum_and_with_a_share_of_the_usual_squares() -> None:
    model, x, old = ready("Adam")
    grown: Any = grow(model, x, space="2", by=2, generator=generator(0))
    state = transplant(old, model, grown).state[grown[4].weight]
    assert not state["exp_avg"][:, 6:].any()
    usual = FRESH * old.state[model[4].weight]["exp_avg_sq"].mean()
    assert usual > 0 and torch.equal(state["exp_avg_sq"][:, 6:], usual.expand(3, 2))


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_after_deepening_all_old_layers_keep_their_state_and_the_new_one_has_none(kind: str) -> None:
    model, x, old = ready(kind)
    deep: Any = deepen(model, x, after="1")
    new = transplant(old, model, deep)
    for name, parameter in model.named_parameters():
        check_state(old.state[parameter], new.state[deep.get_parameter(name)])
    added = [parameter for name, parameter in deep.named_parameters() if "deeper" in name]
    assert len(added) == 2 and not any(parameter in new.state for parameter in added)
    assert names_in(new, deep) == [[name for name, _ in deep.named_parameters()]]
    train(deep, new, x)


@pytest.mark.parametrize("kind", ["Adam", "SGD"])
def test_after_factorising_the_bias_keeps_its_state_and_the_factors_have_none(kind: str) -> None:
    model, x, old = ready(kind)
    thin: Any = factorise(model, layer="2", rank=3)
    new = transplant(old, model, thin)
    check_state(old.state[model[2].bias], new.state[thin[2].wide.bias])
    check_state(old.state[model[4].weight], new.state[thin[4].weight])
    assert thin[2].narrow.weight not in new.state and thin[2].wide.weight not in new.state
    assert names_in(new, thin) == [[name for name, _ in thin.named_parameters()]]
    train(thin, new, x)


@pytest.mark.parametrize("kind", ["Adam", "SGD"])
def test_after_projecting_the_writer_and_the_weights_that_read_it_have_no_state(kind: str) -> None:
    model, x, old = ready(kind)
    narrow: Any = project(model, x, space="0", to=3)
    new = transplant(old, model, narrow)
    assert names_in(new, narrow) == [[name for name, _ in narrow.named_parameters()]]
    assert not any(parameter in new.state for parameter in (narrow[0].weight, narrow[0].bias, narrow[2].weight))
    for path in ("2.bias", "4.weight", "4.bias"):
        check_state(old.state[model.get_parameter(path)], new.state[narrow.get_parameter(path)])
    train(narrow, new, x)


@pytest.mark.parametrize("kind", ["Adam", "SGD"])
def test_after_folding_the_layer_that_took_the_other_in_has_no_state(kind: str) -> None:
    model, x, old = ready(kind)
    folded: Any = fold(model, x, layer="0", linearise=True)
    new = transplant(old, model, folded)
    assert names_in(new, folded) == [["2.weight", "2.bias", "4.weight", "4.bias"]]
    assert folded.get_parameter("2.weight") not in new.state
    check_state(old.state[model[4].weight], new.state[folded.get_parameter("4.weight")])
    train(folded, new, x)


@pytest.mark.parametrize("kind", ["Adam", "SGD"])
def test_after_many_edits_what_survives_all_of_them_keeps_its_state(kind: str) -> None:
    model, x, old = ready(kind)
    edited: Any = remove(model, x, units={"0": [0, 3]})
    edited = deepen(edited, x, after="3")
    edited = grow(edited, x, space="0", by=1, generator=generator(1))
    edited = widen(edited, x, space="2", by=2, generator=generator(2))
    edited = factorise(edited, layer="4", rank=2)
    edited = remove(edited, x, units={"0": [1]})
    new = transplant(old, model, edited)
    rows = [1, 4, 5, 6, 7]
    name = "exp_avg" if kind == "Adam" else "momentum_buffer"
    first, second = (new.state[edited.get_parameter(path)][name] for path in ("0.weight", "2.weight"))
    assert torch.equal(first, torch.cat([old.state[model[0].weight][name][rows], torch.zeros(1, 4)]))
    biases = (network.get_parameter("2.bias").detach()[:, None] for network in (edited, model))
    origin = torch.cdist(*biases).argmin(1)
    assert len(origin) == 8 and second.shape == (8, 6)
    assert torch.equal(second[:, :5], old.state[model[2].weight][name][origin][:, rows])
    check_state(old.state[model[4].bias], new.state[edited.get_parameter("4.wide.bias")])
    train(edited, new, x)


def test_a_network_that_was_edited_before_hands_on_its_state_too() -> None:
    model, x = made()
    first: Any = remove(model, x, units={"0": [0, 3]})
    old = OPTIMIZERS["Adam"](first.parameters())
    train(first, old, x)
    second: Any = remove(first, x, units={"0": [1]})
    new = transplant(old, first, second)
    check_state(old.state[first[0].weight], new.state[second[0].weight], lambda values: values[[0, 2, 3, 4, 5]])


@torch.no_grad()
def kill(layer: Any, norm: Any, reader: Any, units: list[int]) -> None:
    """Let units give zero and be read with zero weights."""
    for module in (layer, norm):
        if module is not None:
            module.weight[units] = 0
            module.bias[units] = 0
    reader.weight[:, units] = 0


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_without_units_that_did_nothing_training_goes_on_as_it_would_have(kind: str) -> None:
    model, x = made()
    kill(model[0], None, model[2], [1, 5])
    kill(model[2], None, model[4], [0])
    old = OPTIMIZERS[kind](model.parameters())
    train(model, old, x)
    cut: Any = remove(model, x, units={"0": [1, 5], "2": [0]})
    new = transplant(old, model, cut)
    torch.testing.assert_close(train(cut, new, x, 8), train(model, old, x, 8), atol=1e-10, rtol=0)
    rows, more = [0, 2, 3, 4, 6, 7], [1, 2, 3, 4, 5]
    for now, before in (
        (cut[0].weight, model[0].weight[rows]),
        (cut[2].weight, model[2].weight[more][:, rows]),
        (cut[4].weight, model[4].weight[:, more]),
        (cut[4].bias, model[4].bias),
    ):
        torch.testing.assert_close(now, before, atol=1e-10, rtol=0)


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_convolutions_with_batch_norm_go_on_training_as_they_would_have(kind: str) -> None:
    model, x = made(
        lambda: nn.Sequential(
            *(nn.Conv2d(2, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 4, 3), nn.BatchNorm2d(4), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(16, 3)),
        ),
        *(10, 2, 6, 6),
    )
    model.train()
    kill(model[0], model[1], model[3], [2, 3])
    old = OPTIMIZERS[kind](model.parameters())
    train(model, old, x)
    cut: Any = remove(model, x, units={"0": [2, 3]})
    new = transplant(old, model, cut)
    torch.testing.assert_close(train(cut, new, x, 8), train(model, old, x, 8), atol=1e-10, rtol=0)
    torch.testing.assert_close(cut[3].weight, model[3].weight[:, [0, 1, 4, 5]], atol=1e-10, rtol=0)
    torch.testing.assert_close(cut[1].running_var, model[1].running_var[[0, 1, 4, 5]], atol=1e-10, rtol=0)
    torch.testing.assert_close(cut[7].weight, model[7].weight, atol=1e-10, rtol=0)


def test_groups_keep_their_parameters_and_their_settings() -> None:
    model, x = made()
    groups = [
        {"params": model[4].parameters(), "lr": 0.1},
        {"params": [model[0].weight, model[2].weight], "lr": 0.2, "weight_decay": 0.5},
        {"params": [model[0].bias, model[2].bias], "lr": 0.3, "betas": (0.5, 0.6)},
    ]
    old = torch.optim.Adam(groups, lr=9.0)
    train(model, old, x)
    cut: Any = remove(model, x, units={"0": [1]})
    new = transplant(old, model, cut)
    assert names_in(new, cut) == [["4.weight", "4.bias"], ["0.weight", "2.weight"], ["0.bias", "2.bias"]]
    for before, after in zip(old.param_groups, new.param_groups, strict=True):
        assert {**before, "params": None} == {**after, "params": None}
    assert new.defaults == old.defaults


def test_a_new_layer_trains_like_the_one_before_it() -> None:
    model, x = made()
    old = torch.optim.SGD(
        [{"params": model[0].parameters()}, {"params": model[2].parameters()}, {"params": model[4].parameters()}],
        lr=1.0,
    )
    deep: Any = deepen(model, x, after="3")
    assert names_in(transplant(old, model, deep), deep)[1] == [
        *("2.weight", "2.bias"),
        *("3_deeper.weight", "3_deeper.bias"),
    ]


def test_the_learning_rate_of_a_schedule_is_kept() -> None:
    model, x = made()
    old = torch.optim.SGD(model.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.ExponentialLR(old, 0.5)
    train(model, old, x, 1)
    schedule.step()
    new = transplant(old, model, remove(model, x, units={"0": [1]}))
    assert new.param_groups[0]["lr"] == 0.5
    assert new.param_groups[0]["initial_lr"] == 1.0


def test_parameters_that_the_optimizer_does_not_have_stay_out() -> None:
    model, example = NETWORKS["frozen"](0)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    old = torch.optim.Adam(trained)
    cut = remove(model, example, units={"trunk.0": [1], "trunk.3": [0], "hidden": [2]})
    new = transplant(old, model, cut)
    assert names_in(new, cut) == [["hidden.weight", "hidden.bias", "head.weight", "head.bias"]]


def test_an_optimizer_that_has_not_made_a_step_has_no_state_to_hand_on() -> None:
    model, x = made()
    old = torch.optim.Adam(model.parameters(), lr=0.5)
    new = transplant(old, model, remove(model, x, units={"0": [1]}))
    assert not new.state and new.param_groups[0]["lr"] == 0.5


def test_without_an_edit_all_state_is_handed_on() -> None:
    model, _, old = ready("Adam")
    copy = deepcopy(model)
    new = transplant(old, model, copy)
    for name, parameter in model.named_parameters():
        check_state(old.state[parameter], new.state[copy.get_parameter(name)])


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_the_old_optimizer_and_both_networks_are_left_as_they_were(kind: str) -> None:
    model, x, old = ready(kind)
    cut: Any = remove(model, x, units={"0": [1]}, calibration=x)
    networks = [deepcopy(network.state_dict()) for network in (model, cut)]
    state = deepcopy(old.state_dict())
    new = transplant(old, model, cut)
    for network, kept in zip((model, cut), networks, strict=True):
        assert all(torch.equal(values, kept[name]) for name, values in network.state_dict().items())
    train(cut, new, x)
    after = old.state_dict()
    assert after["param_groups"] == state["param_groups"]
    for number, values in state["state"].items():
        check_state(values, after["state"][number])
    assert names_in(old, model) == [[name for name, _ in model.named_parameters()]]


def test_networks_that_were_made_from_different_ones_are_refused() -> None:
    model, x, _ = ready("Adam")
    one, other = (remove(model, x, units={"0": [unit]}) for unit in (1, 2))
    optimizer = torch.optim.Adam(one.parameters())
    with pytest.raises(ModelError, match="not made from the old one"):
        transplant(optimizer, one, other)
    with pytest.raises(ModelError, match="not made from the old one"):
        transplant(optimizer, one, model)


def test_an_optimizer_of_another_network_is_refused() -> None:
    model, x, _ = ready("Adam")
    strange = torch.optim.Adam(deepcopy(model).parameters())
    with pytest.raises(ModelError, match="parameters that the network does not have"):
        transplant(strange, model, remove(model, x, units={"0": [1]}))


STRANGERS: dict[str, Callable[[], nn.Module]] = {
    "other names": lambda: nn.ModuleDict({"layer": nn.Linear(4, 3)}),
    "other shapes": lambda: nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 6), nn.ReLU(), nn.Linear(6, 3)),
    "fewer layers": lambda: nn.Sequential(nn.Linear(4, 8)),
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_unrelated_networks_without_edits_are_refused(stranger: str) -> None:
    model, _, old = ready("Adam")
    with pytest.raises(TopiaristError):
        transplant(old, model, STRANGERS[stranger]())


def bare_reader() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Sigmoid(), nn.Linear(8, 3, bias=False))


def test_a_bias_that_a_merge_adds_has_no_state() -> None:
    model, x = made(bare_reader)
    old = OPTIMIZERS["SGD"](model.parameters())
    train(model, old, x)
    merged: Any = merge_units(model, x, space="0", merges=[complement(3, 1)])
    assert not transplant(old, model, merged).state.get(merged[2].bias)


def test_a_bias_that_compaction_adds_has_no_state() -> None:
    model, x = made(bare_reader)
    old = OPTIMIZERS["SGD"](model.parameters())
    train(model, old, x)
    model[0].weight.data[2] = 0
    smaller: Any = compact(model, x)
    assert not transplant(old, model, smaller).state.get(smaller[2].bias)


@pytest.mark.parametrize("edit", ["factorise", "deepen"])
def test_new_layers_among_those_that_are_not_trained_stay_out(edit: str) -> None:
    model, x = made()
    old = torch.optim.Adam(model[4].parameters())
    new_model = factorise(model, layer="0", rank=2) if edit == "factorise" else deepen(model, x, after="0")
    assert names_in(transplant(old, model, new_model), new_model) == [["4.weight", "4.bias"]]


def test_an_optimizer_that_knows_names_knows_the_new_ones() -> None:
    model, x = made()
    old = torch.optim.Adam(model.named_parameters())
    deep = deepen(model, x, after="1")
    new = transplant(old, model, deep)
    assert new.param_groups[0]["param_names"] == [name for name, _ in deep.named_parameters()]


def test_an_optimizer_with_state_of_another_shape_goes_on_or_is_refused() -> None:
    model, x = made()
    old = torch.optim.Adafactor(model.parameters())
    train(model, old, x)
    cut = remove(model, x, units={"0": [1]})
    try:
        new = transplant(old, model, cut)
    except TopiaristError:
        return
    train(cut, new, x)
