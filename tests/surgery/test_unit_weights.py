"""Units that are silenced by their weights: those of the least weight, just those that compaction then cuts out."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.methods.tasks import data_of
from tests.networks import NETWORKS, built
from tests.surgery.strategies import assert_same, perceptron, sizes_of
from topiarist import models, surgery
from topiarist.data import Part
from topiarist.randomness import generator
from topiarist.surgery.choice.weights import unit_weights
from topiarist.tracing import Inputs, anatomy
from topiarist.training import Pruning, TrainConfig, train
from topiarist.training.engines.pruner import Pruner

Case = tuple[nn.Module, Inputs]


def vgg() -> Case:
    return built(lambda: models.vgg(1, 1, 0, 2, input_shape=(1, 16, 16)), (2, 1, 16, 16), seed=0)


def inception() -> Case:
    return built(lambda: models.inception(1, 0, 1, input_shape=(1, 24, 24)), (2, 1, 24, 24), seed=0)


def normed_after() -> Case:
    """Batch norm after the activation of a convolution and of a linear layer."""

    def make() -> nn.Module:
        return nn.Sequential(
            *(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.BatchNorm2d(6)),
            *(nn.Conv2d(6, 5, 3, padding=1), nn.ReLU(), nn.BatchNorm2d(5)),
            *(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(20, 7), nn.Tanh(), nn.BatchNorm1d(7), nn.Linear(7, 3)),
        )

    return built(make, (2, 3, 6, 6), seed=0)


CASES: dict[str, Callable[[], Case]] = {
    "perceptron": lambda: perceptron([5, 8, 6, 3], "relu", False),
    "sigmoid": lambda: perceptron([5, 8, 6, 3], "sigmoid", False),
    "norm before": lambda: perceptron([5, 8, 6, 3], "tanh", "before"),
    "norm after": lambda: perceptron([5, 8, 6, 3], "tanh", "after"),
    "norm after convolutions": normed_after,
    "vgg": vgg,
    "residual": lambda: NETWORKS["residual"](0),
    "inception": lambda: NETWORKS["inception"](0),
    "inception of the paper": inception,
    "cascade": lambda: NETWORKS["cascade"](0),
    "grouped": lambda: NETWORKS["grouped"](0),
    "shared layer": lambda: NETWORKS["shared layer"](0),
}


def pruned(case: Case, sparsity: float = 0.5, **others: Any) -> Pruner:
    model, example = case
    assert isinstance(example, Tensor)
    pruner = Pruner(model, Pruning(units=True, **others), {0: sparsity}, example_input=example)
    pruner.before_epoch(0)
    return pruner


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["layer", "global"])
@pytest.mark.parametrize("name", CASES)
def test_compaction_removes_exactly_the_silenced_units_and_the_outputs_stay(name: str, scope: str) -> None:
    model, example = CASES[name]()
    before = sizes_of(model, example)
    assert sizes_of(surgery.compact(model, example), example) == before, "all units work at first"
    pruner = pruned((model, example), scope=scope)
    gone = {space: int((~mask).sum()) for space, mask in pruner.unit_masks.items()}
    assert sum(gone.values()) == round(0.5 * sum(mask.numel() for mask in pruner.unit_masks.values())) > 0
    assert pruner.sparsity == sum(gone.values()) / sum(mask.numel() for mask in pruner.unit_masks.values())
    smaller = surgery.compact(model, example)
    if name != "grouped":  # one group is left there, and a convolution or a norm with one group is a plain one
        after = sizes_of(smaller, example)
        assert {space: after[space] for space in before} == {
            space: size - gone.get(space, 0) for space, size in before.items()
        }
    assert_same(smaller, model, example)
    assert_same(smaller, model, again(example))


@pytest.mark.parametrize("name", CASES)
def test_silencing_is_what_removal_does(name: str) -> None:
    """A unit that is zero before its activation may be a constant after it; all others here are as good as removed."""
    model, example = CASES[name]()
    whole, _ = CASES[name]()
    pruner = pruned((model, example))
    units = {space: (~mask).nonzero().flatten().tolist() for space, mask in pruner.unit_masks.items()}
    removed = surgery.remove(whole, example, units={space: found for space, found in units.items() if found})
    if name == "sigmoid":  # σ(0) = 0.5
        with pytest.raises(AssertionError):
            assert_same(removed, model, again(example))
    else:
        assert_same(removed, model, again(example))


def again(example: Inputs) -> Tensor:
    """Return other inputs of the same shape."""
    assert isinstance(example, Tensor)
    return torch.randn(example.shape, generator=generator(1, "inputs"), dtype=example.dtype)


def test_units_go_by_the_sum_of_squares_of_all_that_writes_them() -> None:
    model, example = NETWORKS["residual"](0)
    stem, second = model.get_parameter("stem.weight"), model.get_parameter("second.weight")
    squares = stem.detach().square().flatten(1).sum(dim=1) + second.detach().square().flatten(1).sum(dim=1)
    first = model.get_parameter("first.weight").detach().square().flatten(1).sum(dim=1)
    expected = {"stem": squares, "first": first}
    masks = pruned((model, example), 0.4).unit_masks
    for name, squared in expected.items():
        mask = masks[name]
        assert 0 < int((~mask).sum()) < len(mask)
        assert squared[~mask].max() < squared[mask].min(), name


def test_silenced_units_have_no_weight_bias_or_norm_and_others_have_theirs() -> None:
    model, example = vgg()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    masks = pruned((model, example)).unit_masks
    assert set(masks) == set(anatomy(model, example).free)
    for layer, norm in {"convolution1_0": "norm1_0", "dense": "dense_norm"}.items():
        gone = ~masks[layer]
        for name in (f"{layer}.weight", f"{layer}.bias", f"{norm}.weight", f"{norm}.bias"):
            value = model.state_dict()[name]
            assert not value[gone].any() and torch.equal(value[~gone], before[name][~gone])
        for name in (f"{norm}.running_mean", f"{norm}.running_var"):
            assert torch.equal(model.state_dict()[name], before[name])
    assert torch.equal(model.state_dict()["output.weight"], before["output.weight"])


def test_spaces_that_a_frozen_layer_writes_are_left_out() -> None:
    model, example = NETWORKS["frozen"](0)
    assert set(unit_weights(model, example)) == {"hidden"}
    free, example = perceptron([5, 8, 6, 3], "relu", "before")
    spaces = list(unit_weights(free, example))
    assert len(spaces) == 2
    norms = [module for module in free.modules() if isinstance(module, nn.BatchNorm1d)]
    norms[0].requires_grad_(False)
    assert list(unit_weights(free, example)) == spaces[1:]


@pytest.mark.slow
def test_in_training_units_stay_silent_and_are_cut_out_after_it() -> None:
    model = models.vgg(1, 1, 0, 1, input_shape=(1, 8, 8), dropout=0.1, generator=generator(0, "weights"))
    part = Part(torch.randn(12, 1, 8, 8, generator=generator(0, "x")), torch.arange(12) % 3)
    data, free = data_of(part, part, part, 3), anatomy(model, part.x).free
    before = {name: space.size for name, space in free.items()}
    pruning, seen = Pruning(sparsity=0.5, units=True), list[dict[str, Tensor]]()
    config = TrainConfig(epochs=8, batch_size=6, learning_rate=0.01, weight_decay=0.01, pruning=pruning)

    def look(*_: object) -> None:
        rows = {name: value.flatten(1).any(dim=1) for name, value in model.named_parameters() if value.ndim > 1}
        seen.append({name: ~row for name, row in rows.items() if name != "output.weight"})

    history = train(model, data, config, on_epoch=look)
    total = sum(before.values())
    silent = [sum(int(row.sum()) for row in found.values()) for found in seen]
    assert [epoch.sparsity for epoch in history.epochs] == [number / total for number in silent]
    assert silent[-1] == round(0.5 * total) and silent == sorted(silent)
    smaller = surgery.compact(model, part.x)
    assert {name: sizes_of(smaller, part.x)[name] for name in before} == {name: n // 2 for name, n in before.items()}
    assert_same(smaller, model, part.x, 1e-5)
