"""The units that are chosen: their number, duplicates, and what is lost without them."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from tests.networks import NETWORKS, ResNet18, built, outputs
from tests.surgery.samples import made, more
from topiarist.errors import DataError, ModelError, SettingsError
from topiarist.randomness import generator
from topiarist.surgery import choose_units, plan_of, remove
from topiarist.tracing import anatomy


def error(model: nn.Module, cut: nn.Module, x: Any, *, logits: bool = False) -> float:
    """Return the mean squared difference of outputs; what all logits have in common does not count."""
    pairs = zip(outputs(model, x), outputs(cut, x), strict=True)
    differences = [left - right for left, right in pairs]
    if logits:
        differences = [found if found.shape[1] == 1 else found - found.mean(1, keepdim=True) for found in differences]
    return float(torch.cat([found.flatten() for found in differences]).pow(2).mean())


def settle(model: nn.Module, x: Any) -> None:
    """Return batch norms the statistics of some data, as training would."""
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
        norm.train()
    outputs(model, x)
    model.eval()


@torch.no_grad()
def repeat_units(layer: Any, copies: list[int]) -> None:
    """Let unit n of a layer be a copy of unit copies[n], read with weights of its own."""
    layer.weight.copy_(layer.weight[copies])
    layer.bias.copy_(layer.bias[copies])


COPIES = [0, 1, 2, 0, 4, 1, 2, 0]
DISTINCT: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], str]] = {
    "perceptron": (
        lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 3)),
        (200, 5),
        "0",
    ),
    "convolutions": (
        lambda: nn.Sequential(nn.Conv2d(2, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 3, padding=1)),
        (20, 2, 6, 6),
        "0",
    ),
    "flattened": (
        lambda: nn.Sequential(nn.Conv2d(2, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 4, 3)),
        (300, 2, 4, 4),
        "0",
    ),
}


@pytest.mark.parametrize("strategy", ["best", "elimination", "matching"])
@pytest.mark.parametrize("kind", DISTINCT)
def test_cutting_to_the_distinct_units_loses_nothing(kind: str, strategy: Any) -> None:
    make, shape, path = DISTINCT[kind]
    model, x = made(make, *shape)
    repeat_units(model.get_submodule(path), COPIES)
    units = choose_units(model, x[:2], keep={path: 4}, calibration=x, strategy=strategy)
    left = [unit for unit in range(8) if unit not in units[path]]
    assert sorted(COPIES[unit] for unit in left) == [0, 1, 2, 4]
    before = outputs(model, x)[0]
    assert error(model, remove(model, x[:2], units=units, calibration=x), x) < 1e-6 * float(before.pow(2).mean())


def test_duplicates_in_two_layers_go_together() -> None:
    model, x = made(
        lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3)), *(300, 5)
    )
    repeat_units(model[0], COPIES)
    repeat_units(model[2], COPIES[::-1])
    units = choose_units(model, x[:2], keep={"0": 4, "2": 4}, calibration=x)
    assert error(model, remove(model, x[:2], units=units, calibration=x), x) < 1e-6


def test_units_that_nobody_reads_go_first() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)), *(200, 5))
    model[2].weight.data[:, 2:6] = 0.0
    units = choose_units(model, x[:2], keep={"0": 4}, calibration=x)
    plain, chosen = (
        error(model, remove(model, x[:2], units={"0": gone}, calibration=x), x) for gone in ([2, 3, 4, 5], units["0"])
    )
    assert chosen <= plain + 1e-12


SMALL: dict[str, Any] = {
    **{name: network for name, network in NETWORKS.items() if name != "resnet18"},
    "narrow resnet18": lambda seed: built(lambda: ResNet18(width=4), (2, 3, 16, 16), seed=seed),
}


def halves(model: nn.Module, example: Any) -> dict[str, int]:
    return {name: -(-space.size // 2) for name, space in anatomy(model, example).free.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_choosing_and_refitting_loses_less_than_removing_at_random(name: str) -> None:
    model, example = SMALL[name](0)
    x = more(example, 60)
    settle(model, x)
    keep = halves(model, example)
    sizes = {space: found.size for space, found in anatomy(model, example).free.items()}
    units = choose_units(model, example, keep=keep, calibration=x)
    assert {space: sizes[space] - len(units.get(space, ())) for space in keep} == keep
    chosen = error(model, remove(model, example, units=units, calibration=x), x, logits=True)
    at_random = []
    for seed in range(5):
        drawn = {
            space: torch.randperm(size, generator=generator(seed, space))[keep[space] :]
            for space, size in sizes.items()
        }
        at_random.append(error(model, remove(model, example, units=drawn), x, logits=True))
    assert chosen < sum(at_random) / len(at_random)


@pytest.mark.parametrize("strategy", ["best", "elimination", "matching"])
@pytest.mark.parametrize("count", range(1, 9))
def test_exactly_as_many_units_stay_as_asked(count: int, strategy: Any) -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)), *(50, 5))
    units = choose_units(model, x[:2], keep={"0": count}, calibration=x, strategy=strategy)
    gone = units.get("0", ())
    assert len(set(gone)) == len(gone) == 8 - count
    assert list(gone) == sorted(gone)


@pytest.mark.parametrize(("keep", "multiple_of", "width"), [(3, 4, 4), (4, 4, 4), (5, 4, 8), (1, 3, 3), (7, 5, 8)])
def test_widths_are_rounded_up_to_a_multiple_or_stay_full(keep: int, multiple_of: int, width: int) -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)), *(50, 5))
    units = choose_units(model, x[:2], keep={"0": keep}, calibration=x, multiple_of=multiple_of)
    assert 8 - len(units.get("0", ())) == width


def test_spaces_that_keep_all_or_are_not_named_are_not_in_the_answer() -> None:
    model, example = NETWORKS["residual"](0)
    units = choose_units(model, example, keep={"stem": 6, "first": 3}, calibration=more(example, 20))
    assert list(units) == ["first"]
    assert choose_units(model, example, keep={}, calibration=more(example, 20)) == {}


@pytest.mark.slow
def test_the_choice_does_not_depend_on_the_order_of_the_spaces_or_of_the_batches() -> None:
    model, example = NETWORKS["residual"](0)
    x = more(example, 60)
    keep = halves(model, example)
    units = choose_units(model, example, keep=keep, calibration=x)
    backwards = dict(reversed(keep.items()))
    assert choose_units(model, example, keep=backwards, calibration=list(torch.split(x, 7))) == units


def test_the_network_is_left_as_it_was() -> None:
    model, example = NETWORKS["residual"](0)
    model.train()
    state = deepcopy(model.state_dict())
    choose_units(model, example, keep={"stem": 3, "first": 2}, calibration=more(example, 20))
    assert all(torch.equal(values, state[name]) for name, values in model.state_dict().items())
    assert all(module.training for module in model.modules())
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize("count", [0, -1, 9])
def test_a_width_that_cannot_be_kept_is_one_clear_error(count: int) -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)), *(50, 5))
    with pytest.raises(ModelError, match=rf"^'0' has 8 units and must keep 1 to 8 of them; found {count}$"):
        choose_units(model, x[:2], keep={"0": count}, calibration=x)


def test_spaces_that_are_unknown_or_fixed_and_empty_data_are_clear_errors() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)), *(50, 5))
    with pytest.raises(ModelError, match="there is no space 'stem'"):
        choose_units(model, x[:2], keep={"stem": 3}, calibration=x)
    with pytest.raises(ModelError, match="the units of '2' are fixed"):
        choose_units(model, x[:2], keep={"2": 2}, calibration=x)
    with pytest.raises(DataError, match="empty"):
        choose_units(model, x[:2], keep={"0": 3}, calibration=[])
    with pytest.raises(SettingsError, match="multiple_of"):
        choose_units(model, x[:2], keep={"0": 3}, calibration=x, multiple_of=0)


def test_an_unknown_strategy_is_refused() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)), *(50, 5))
    strange: Any = "elimintaion"
    with pytest.raises(SettingsError):
        choose_units(model, x[:2], keep={"0": 3}, calibration=x, strategy=strange)


def test_before_a_single_output_the_units_that_matter_stay() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1)), *(200, 5))
    model[2].weight.data[:, 4:] = 0.0
    assert choose_units(model, x[:2], keep={"0": 4}, calibration=x) == {"0": (4, 5, 6, 7)}


def test_before_several_numbers_what_they_have_in_common_counts() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2)), *(200, 5))
    model[2].weight.data[:, :4] = 1.0  # what matters most, but adds the same to both outputs
    model[2].weight.data[:, 4:] *= 0.1
    assert choose_units(model, x[:2], keep={"0": 4}, calibration=x) == {"0": (4, 5, 6, 7)}


@pytest.mark.slow
def test_a_fraction_is_of_every_space_or_of_those_named() -> None:
    model, example = NETWORKS["residual"](0)
    x = more(example, 30)
    sizes = {name: space.size for name, space in anatomy(model, example).free.items()}
    units = choose_units(model, example, keep=0.5, calibration=x)
    assert {name: len(gone) for name, gone in units.items()} == {"stem": 3, "first": 3, "pointwise": 2}
    assert units == choose_units(model, example, keep=dict.fromkeys(sizes, 0.5), calibration=x)
    assert units == choose_units(model, example, keep={"stem": 3, "first": 0.5, "pointwise": 2}, calibration=x)
    assert choose_units(model, example, keep=1.0, calibration=x) == {}
    assert choose_units(model, example, keep={"first": 1e-9}, calibration=x).keys() == {"first"}


@pytest.mark.parametrize("keep", [3, 1, True, "half", None])
def test_what_is_no_fraction_and_no_mapping_is_refused(keep: Any) -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)), *(50, 5))
    with pytest.raises(SettingsError, match=f"keep is a fraction, or widths or fractions by .*; found {keep!r}$"):
        choose_units(model, x[:2], keep=keep, calibration=x)


@pytest.mark.parametrize("keep", [0.0, -0.5, 1.5, float("nan"), "3", None])
def test_a_fraction_that_cannot_be_kept_is_one_clear_error(keep: Any) -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)), *(50, 5))
    with pytest.raises(ModelError, match="'0' must keep a width, or a fraction above 0 and at most 1; found"):
        choose_units(model, x[:2], keep={"0": keep}, calibration=x)


@pytest.mark.slow
def test_a_space_is_named_by_any_layer_that_writes_it() -> None:
    model, example = NETWORKS["residual"](0)
    x = more(example, 30)
    units = choose_units(model, example, keep={"second": 4}, calibration=x)
    assert units == choose_units(model, example, keep={"stem": 4}, calibration=x) and list(units) == ["stem"]
    by_layer = remove(model, example, units={"second": units["stem"]}, calibration=x)
    by_space = remove(model, example, units=units, calibration=x)
    assert plan_of(by_layer) == plan_of(by_space)
    for left, right in zip(by_layer.parameters(), by_space.parameters(), strict=True):
        assert torch.equal(left, right)
    with pytest.raises(ModelError, match="'stem' and 'second' name the same units: name them once"):
        choose_units(model, example, keep={"stem": 4, "second": 3}, calibration=x)
