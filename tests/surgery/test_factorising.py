"""Layers as products of two thinner ones, against singular values."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor, nn

from tests.networks import NETWORKS, built, outputs
from topiarist.errors import ModelError, TopiaristError
from topiarist.settings import Settings
from topiarist.surgery import FactoriseLayer, factorise, plan_of

Maker = Callable[[], nn.Module]
KINDS: dict[str, tuple[Maker, tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(5, 7), (20, 5)),
    "linear without bias": (lambda: nn.Linear(7, 5, bias=False), (20, 7)),
    "linear on sequences": (lambda: nn.Linear(5, 7), (4, 3, 5)),
    "convolution": (lambda: nn.Conv2d(3, 6, 3), (2, 3, 7, 8)),
    "padded convolution with a stride": (lambda: nn.Conv2d(3, 6, (3, 2), stride=2, padding=1), (2, 3, 7, 8)),
    "dilated convolution": (lambda: nn.Conv2d(3, 6, 3, dilation=2, padding="same", bias=False), (2, 3, 7, 8)),
    "circular convolution": (lambda: nn.Conv2d(3, 6, 3, padding=1, padding_mode="circular"), (2, 3, 7, 8)),
    "1×1 convolution": (lambda: nn.Conv2d(3, 6, 1), (2, 3, 7, 8)),
    "convolution of sequences": (lambda: nn.Conv1d(3, 6, 4, stride=2, padding=3), (2, 3, 11)),
}


def made(kind: str) -> tuple[Any, Tensor]:
    make, shape = KINDS[kind]
    model, x = built(lambda: nn.Sequential(make(), nn.Tanh()), shape, seed=0)
    assert isinstance(x, Tensor)
    return model, x


def matrix(layer: Any) -> Tensor:
    weight: Tensor = layer.weight.detach()
    return weight.flatten(1)


def product(pair: Any) -> Tensor:
    return matrix(pair.wide) @ matrix(pair.narrow)


def full_rank(layer: Any) -> int:
    return min(matrix(layer).shape)


@pytest.mark.parametrize("kind", KINDS)
def test_at_full_rank_the_network_computes_the_same(kind: str) -> None:
    model, x = made(kind)
    thin = factorise(model, layer="0", rank=full_rank(model[0]))
    torch.testing.assert_close(outputs(thin, x), outputs(model, x), atol=1e-10, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_below_it_the_error_is_the_tail_of_the_singular_values(kind: str) -> None:
    model, _ = made(kind)
    weight = matrix(model[0])
    values = numpy.linalg.svd(weight.numpy(), compute_uv=False)
    for rank in range(1, full_rank(model[0]) + 1):
        thin: Any = factorise(model, layer="0", rank=rank)
        error = float(torch.linalg.norm(weight - product(thin[0])))
        assert error == pytest.approx(numpy.sqrt((values[rank:] ** 2).sum()), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_two_layers_compute_what_one_with_their_product_would(kind: str) -> None:
    model, x = made(kind)
    thin: Any = factorise(model, layer="0", rank=2)
    model[0].weight.data.copy_(product(thin[0]).reshape(model[0].weight.shape))
    torch.testing.assert_close(outputs(thin, x), outputs(model, x), atol=1e-10, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_factors_are_thin_of_like_size_and_only_the_last_has_the_bias(kind: str) -> None:
    model, _ = made(kind)
    narrow, wide = factorise(model, layer="0", rank=2).get_submodule("0").children()
    assert len(matrix(narrow)) == matrix(wide).shape[1] == 2
    assert narrow.bias is None
    assert (wide.bias is None) == (model[0].bias is None)
    if model[0].bias is not None:
        assert torch.equal(wide.bias, model[0].bias)
    grams = matrix(narrow) @ matrix(narrow).T, matrix(wide).T @ matrix(wide)
    torch.testing.assert_close(*grams, atol=1e-12, rtol=0)


def test_a_layer_of_low_rank_loses_nothing_at_that_rank() -> None:
    model, x = made("linear")
    model[0].weight.data.copy_(model[0].weight[:, :2] @ model[0].weight[:2])
    torch.testing.assert_close(outputs(factorise(model, layer="0", rank=2), x), outputs(model, x), atol=1e-10, rtol=0)


def test_layers_inside_a_class_of_its_own_are_replaced_in_place() -> None:
    model, example = NETWORKS["residual"](0)
    thin: Any = factorise(factorise(model, layer="first", rank=5), layer="head", rank=3)
    torch.testing.assert_close(outputs(thin, example), outputs(model, example), atol=1e-10, rtol=0)
    assert [name for name, _ in thin.first.named_children()] == ["narrow", "wide"]
    assert len(plan_of(thin)) == 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_type_mode_and_the_original_stay(dtype: torch.dtype) -> None:
    model, _ = made("linear")
    model.to(dtype).train()
    state = deepcopy(model.state_dict())
    thin = factorise(model, layer="0", rank=2)
    assert all(parameter.dtype == dtype for parameter in thin.parameters())
    assert all(module.training for module in thin.modules())
    assert all(torch.equal(values, state[name]) for name, values in model.state_dict().items())


def test_torchs_own_random_numbers_are_left_alone() -> None:
    model, _ = made("linear")
    before = torch.get_rng_state()
    factorise(model, layer="0", rank=2)
    assert torch.equal(torch.get_rng_state(), before)


def test_frozen_layers_stay_frozen_and_trained_ones_trained() -> None:
    model, _ = NETWORKS["frozen"](0)
    thin = factorise(factorise(model, layer="trunk.3", rank=3), layer="hidden", rank=3)
    flags = {name: parameter.requires_grad for name, parameter in thin.named_parameters()}
    assert not any(flag for name, flag in flags.items() if name.startswith("trunk"))
    assert all(flag for name, flag in flags.items() if not name.startswith("trunk"))
    assert all(parameter.requires_grad for name, parameter in model.named_parameters() if name.startswith("h"))


REFUSED: dict[str, tuple[str, int, str]] = {
    "too high a rank": ("first", 6, "^'first' has rank 5 at most; found rank=6$"),
    "a grouped convolution": ("depthwise", 1, "^'depthwise' is a grouped convolution, which cannot be factorised$"),
    "a batch norm": ("stem_norm", 1, "only linear layers and convolutions can be factorised; 'stem_norm' is a Batch"),
    "an unknown layer": ("third", 1, "^the network has no layer 'third'$"),
    "the network itself": ("", 1, "only linear layers and convolutions can be factorised"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_factorised_is_refused_in_one_line(kind: str) -> None:
    layer, rank, message = REFUSED[kind]
    model, _ = NETWORKS["residual"](0)
    with pytest.raises(ModelError, match=message) as caught:
        factorise(model, layer=layer, rank=rank)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("rank", [0, -1])
def test_a_rank_below_one_is_refused_in_one_line(rank: int) -> None:
    model, _ = made("linear")
    with pytest.raises(TopiaristError) as caught:
        factorise(model, layer="0", rank=rank)
    assert "rank" in str(caught.value) and "\n" not in str(caught.value)


def test_computed_weights_are_refused() -> None:
    model, _ = made("linear")
    nn.utils.parametrizations.weight_norm(model[0])
    with pytest.raises(ModelError, match="only linear layers and convolutions"):
        factorise(model, layer="0", rank=2)


def test_the_edit_is_data() -> None:
    model, _ = made("linear")
    (edit,) = plan_of(factorise(model, layer="0", rank=2))
    assert edit == FactoriseLayer(layer="0", rank=2)
    assert isinstance(edit, Settings)


class Cosine(nn.Linear):
    """A linear layer of its own, which looks at directions only."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x / x.norm(dim=-1, keepdim=True))


def test_a_layer_with_a_forward_of_its_own_is_refused() -> None:
    model, _ = built(lambda: nn.Sequential(Cosine(4, 6)), (5, 4), seed=0)
    with pytest.raises(ModelError):
        factorise(model, layer="0", rank=4)


@pytest.mark.parametrize("frozen", ["weight", "bias"])
def test_a_bias_is_frozen_or_trained_by_itself(frozen: str) -> None:
    model, _ = made("linear")
    model[0].get_parameter(frozen).requires_grad_(False)
    pair: Any = factorise(model, layer="0", rank=2).get_submodule("0")
    assert pair.wide.bias.requires_grad == (frozen != "bias")
    assert pair.narrow.weight.requires_grad == (frozen != "weight")
