"""Masked weights stay zero in any training loop; masked units are as good as removed."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.networks import NETWORKS, built, outputs
from tests.surgery.strategies import untouched
from topiarist.errors import ModelError
from topiarist.randomness import generator
from topiarist.surgery import Masks, UnitMasks, remove
from topiarist.tracing import anatomy

OPTIMIZERS: dict[str, Any] = {
    "Adam with weight decay": lambda parameters: torch.optim.Adam(parameters, lr=0.05, weight_decay=0.1),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.05, weight_decay=0.1),
    "SGD with momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=0.1),
    "SGD with Nesterov momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9, nesterov=True),
}


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def made() -> tuple[Any, Tensor]:
    model, x = built(mlp, (20, 4), seed=0)
    assert isinstance(x, Tensor)
    return model, x


def random_masks(model: nn.Module) -> dict[str, Tensor]:
    random = generator(0, "masks")
    return {
        name: torch.rand(parameter.shape, generator=random) > 0.5
        for name, parameter in model.named_parameters()
        if parameter.ndim > 1
    }


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_masked_weights_stay_zero_and_the_others_are_trained(kind: str) -> None:
    model, x = made()
    optimizer = OPTIMIZERS[kind](model.parameters())
    for _ in range(3):  # so that momentum would move masked weights
        optimizer.zero_grad()
        model(x).pow(2).sum().backward()
        optimizer.step()
    chosen = random_masks(model)
    masks = Masks(model, chosen)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    for _ in range(10):
        optimizer.zero_grad()
        (model(x) - 1).pow(2).sum().backward()
        optimizer.step()
        masks.step()
        for name, mask in chosen.items():
            assert not model.get_parameter(name)[~mask].any()
    for name, parameter in model.named_parameters():
        trained = chosen.get(name, torch.ones_like(parameter, dtype=torch.bool))
        assert (parameter != before[name])[trained].all()


def test_making_masks_zeroes_the_weights_at_once_and_leaves_the_rest() -> None:
    model, _ = made()
    before = model[0].weight.detach().clone()
    mask = random_masks(model)["0.weight"]
    Masks(model, {"0.weight": mask})
    assert torch.equal(model[0].weight, torch.where(mask, before, 0.0))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.float32, torch.float64])
def test_masks_of_zeros_and_ones_of_any_type_do(dtype: torch.dtype) -> None:
    model, _ = made()
    mask = random_masks(model)["0.weight"]
    Masks(model, {"0.weight": mask.to(dtype)})
    assert torch.equal(model[0].weight != 0, mask)


def test_changing_the_tensors_afterwards_does_not_change_float_masks() -> None:
    model, _ = made()
    mask = torch.ones(8, 4)
    masks = Masks(model, {"0.weight": mask})
    mask.zero_()
    masks.step()
    assert model[0].weight.all()


def test_changing_the_tensors_afterwards_does_not_change_boolean_masks() -> None:
    model, _ = made()
    mask = torch.ones(8, 4, dtype=torch.bool)
    masks = Masks(model, {"0.weight": mask})
    mask.zero_()
    masks.step()
    assert model[0].weight.all()


def test_a_mask_survives_the_parameter_it_was_made_for() -> None:
    model, _ = made()
    masks = Masks(model, {"0.weight": torch.zeros(8, 4)})
    model[0].weight = nn.Parameter(torch.ones(8, 4, dtype=torch.float64))
    masks.step()
    assert not model[0].weight.any()


@pytest.mark.parametrize("name", ["1.weight", "nothing", "0"])
def test_masks_of_unknown_parameters_are_refused(name: str) -> None:
    model, _ = made()
    with pytest.raises(ModelError, match=f"^the network has no parameter '{name}'$"):
        Masks(model, {name: torch.ones(8, 4)})


def test_masks_of_another_shape_are_refused_before_anything_changes() -> None:
    model, _ = made()
    masks = {"0.weight": torch.zeros(8, 4), "2.weight": torch.zeros(8, 3)}
    with pytest.raises(ModelError, match=r"^the mask of '2.weight' must have shape \(3, 8\); found \(8, 3\)$"):
        Masks(model, masks)
    assert model[0].weight.all()


def test_sparsity_is_the_fraction_of_masked_weights_among_those_with_a_mask() -> None:
    model, _ = made()
    mask = torch.ones(8, 4)
    mask[0] = 0
    assert Masks(model, {"0.weight": mask}).sparsity == 4 / 32
    assert Masks(model, {"0.weight": mask, "2.weight": torch.zeros(3, 8)}).sparsity == 28 / 56
    assert Masks(model, {}).sparsity == 0.0


def test_masks_of_zeros_hold_the_weights_that_are_zero_and_no_biases() -> None:
    model, x = made()
    with torch.no_grad():
        model[0].weight[2:4] = 0
        model[2].weight[:, 0] = 0
        model[2].bias.zero_()
    masks = Masks.of_zeros(model)
    assert masks.sparsity == (8 + 3) / 56
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    (model(x) - 1).pow(2).sum().backward()
    optimizer.step()
    masks.step()
    assert not model[0].weight[2:4].any() and not model[2].weight[:, 0].any()
    assert model[2].bias.all() and model[0].bias.all()


def test_masks_of_zeros_of_a_dense_network_hold_nothing() -> None:
    model, _ = made()
    assert Masks.of_zeros(model).sparsity == 0.0


NAMES = [name for name in NETWORKS if name != "resnet18"]


def hooks_of(model: nn.Module) -> int:
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules())


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_network_without_units_gives_what_it_gives_when_they_are_removed(name: str) -> None:
    model, example = NETWORKS[name](0)
    units = {space: list(range(0, found.size - 1, 2)) for space, found in anatomy(model, example).free.items()}
    units = {space: numbers for space, numbers in units.items() if numbers}
    cut = outputs(remove(model, example, units=units), example)
    before = outputs(model, example)
    with UnitMasks(model, example).without(units) as masked:
        assert masked is model
        inside = outputs(model, example)
    for left, right in zip(inside, cut, strict=True):
        torch.testing.assert_close(left, right, atol=1e-12, rtol=0)
    assert hooks_of(model) == 0
    assert all(torch.equal(left, right) for left, right in zip(outputs(model, example), before, strict=True))


def test_hooks_are_gone_after_an_exception_in_the_block() -> None:
    model, x = made()
    with pytest.raises(KeyError), UnitMasks(model, x).without({"0": [1]}):
        assert hooks_of(model) == 1
        raise KeyError
    assert hooks_of(model) == 0


def test_hooks_are_gone_after_a_refusal() -> None:
    model, example = NETWORKS["residual"](0)
    masks = UnitMasks(model, example)
    with pytest.raises(ModelError), masks.without({"stem": [0], "first": [99]}):
        pass
    assert hooks_of(model) == 0


def test_blocks_can_be_nested_and_entered_again() -> None:
    model, x = made()
    masks = UnitMasks(model, x)
    with masks.without({"0": [1]}), masks.without({"0": [2]}):
        nested = outputs(model, x)
    for _ in range(2):
        with masks.without({"0": [1, 2]}):
            assert torch.equal(outputs(model, x)[0], nested[0])


def test_gradients_of_units_that_are_gone_are_zero() -> None:
    model, x = made()
    with UnitMasks(model, x).without({"0": torch.tensor([3, 5])}):
        model(x).pow(2).sum().backward()
    gone = model[0].weight.grad.abs().sum(1) == 0
    assert gone.nonzero().flatten().tolist() == [3, 5]


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ({"0": [8]}, "'0' has units 0 to 7; found 8"),
        ({"0": [1, 1]}, "units of '0' are named twice"),
        ({"0": range(8)}, "at least 1 must stay"),
        ({"2": [0]}, "the units of '2' are fixed"),
        ({"stem": [0]}, "there is no space 'stem'"),
    ],
)
def test_units_that_cannot_go_are_refused(units: Any, message: str) -> None:
    model, x = made()
    with pytest.raises(ModelError, match=message), UnitMasks(model, x).without(units):
        pass
    assert hooks_of(model) == 0


WATCHED = ("encoder", "fused attention", "einsum attention", "lstm", "gru", "normed", "grouped", "weight norm")


@pytest.mark.slow
@pytest.mark.parametrize("name", WATCHED)
def test_each_space_alone_is_as_good_as_removed_for_a_batch_of_another_size(name: str) -> None:
    model, example = NETWORKS[name](0)
    found = anatomy(model, example)
    others = torch.randn(5, *example.shape[1:], generator=generator(1, "others"), dtype=torch.float64)
    masks = UnitMasks(model, example, anatomy=found)
    for space in found.free.values():
        units = {space.name: list(range(space.size // 2))}
        with untouched(model), masks.without(units):
            inside = outputs(model, others)
        (expected,) = outputs(remove(model, example, units=units, anatomy=found), others)
        torch.testing.assert_close(inside[0], expected, atol=1e-12, rtol=0)


def test_watched_blocks_can_be_nested_and_attention_is_put_back() -> None:
    model, example = NETWORKS["encoder"](0)
    masks = UnitMasks(model, example)
    with masks.without({"embed": [1]}):
        alone = outputs(model, example)
        with masks.without({"embed": [4]}):
            nested = outputs(model, example)
        assert torch.equal(outputs(model, example)[0], alone[0])
    with pytest.raises(KeyError), masks.without({"embed": [1, 4]}):
        assert torch.equal(outputs(model, example)[0], nested[0])
        raise KeyError
    kinds = {type(module) for module in model.modules() if isinstance(module, nn.MultiheadAttention)}
    assert kinds == {nn.MultiheadAttention}


def test_no_gradients_are_recorded_where_the_network_runs_under_watch() -> None:
    model, example = NETWORKS["normed"](0)
    with UnitMasks(model, example).without({"stem": [1]}):
        assert not model(example).requires_grad
