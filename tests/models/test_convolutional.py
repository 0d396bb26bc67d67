"""Networks after VGGNet and Inception: the sizes that their paper prints, on any input."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import nn

from topiarist import models
from topiarist.errors import ModelError
from topiarist.models import build, spec_of
from topiarist.randomness import generator


def counted(model: nn.Module) -> int:
    """Count as the paper does: with the moving averages of batch norm."""
    return sum(value.numel() for value in model.state_dict().values() if value.is_floating_point())


@pytest.mark.parametrize(
    ("blocks", "parameters"), [((2, 2, 3, 3), 80_839), ((0, 0, 1, 1), 54_415), ((4, 4, 5, 5), 106_327)]
)
def test_vgg_has_the_parameters_of_the_paper(blocks: tuple[int, int, int, int], parameters: int) -> None:
    model = models.vgg(*blocks)
    assert counted(model) == parameters
    assert model.eval()(torch.zeros(1, 1, 48, 467)).shape == (1, 3)


@pytest.mark.parametrize(("blocks", "parameters"), [((2, 1, 2), 167_571), ((1, 0, 1), 68_099), ((3, 2, 3), 267_043)])
def test_inception_has_the_parameters_of_the_paper(blocks: tuple[int, int, int], parameters: int) -> None:
    model = models.inception(*blocks)
    assert counted(model) == parameters
    assert model.eval()(torch.zeros(1, 1, 48, 467)).shape == (1, 3)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (1, 1, 1), (2, 7, 301), (1, 48, 214), (1, 5, 6)])
def test_any_input_and_any_number_of_classes(shape: tuple[int, int, int]) -> None:
    for model in (
        models.vgg(1, 0, 2, 1, input_shape=shape, classes=7),
        models.inception(1, 0, 1, input_shape=shape, classes=7),
    ):
        assert model.eval()(torch.zeros(2, *shape)).shape == (2, 7)


def test_same_padding_halves_and_centres_as_tensorflow_does() -> None:
    # A kernel of ones with a step of 2 over ones counts the values under it: 7 in the middle, fewer at the borders.
    for length, counts in ((10, [5, 7, 7, 6, 4]), (9, [4, 6, 7, 6, 4])):
        model = models.inception(0, 0, 0, input_shape=(1, 1, length))
        stem = model.get_submodule("stem0")
        assert isinstance(stem, nn.Conv2d)
        nn.init.ones_(stem.weight)
        padded = model.get_submodule("padding")(torch.ones(1, 1, 1, length))
        assert stem(padded)[0, 0, 0].tolist() == counts


def test_specs_build_the_same_network() -> None:
    for model in (
        models.vgg(1, 0, 2, 1, input_shape=(1, 20, 30), classes=4, dropout=0.1),
        models.inception(1, 1, 0, input_shape=(2, 20, 30), classes=4),
    ):
        spec = spec_of(model)
        assert spec is not None
        assert str(build(spec)) == str(model)


@pytest.mark.parametrize("make", [partial(models.vgg, 1, 0, 0, 1), partial(models.inception, 1, 0, 0)])
def test_the_generator_decides_the_weights(make: Callable[..., nn.Module]) -> None:
    drawn = [make(generator=generator(seed, "weights")) for seed in (1, 1, 2)]
    first, again, other = (nn.utils.parameters_to_vector(model.parameters()) for model in drawn)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_what_makes_no_network_is_refused() -> None:
    with pytest.raises(ModelError, match="0 or more layers"):
        models.vgg(1, -1, 0, 0)
    with pytest.raises(ModelError, match=r"\(channels, height, width\); found \(64,\)"):
        models.inception(1, 0, 0, input_shape=(64,))
    with pytest.raises(ModelError, match="at least 1 class"):
        models.vgg(0, 0, 0, 0, classes=0)
    with pytest.raises(ModelError, match="dropout"):
        models.vgg(0, 0, 0, 0, dropout=1.0)


def test_inception_has_batch_norm_in_its_blocks_where_asked_and_is_published_without() -> None:
    plain, normed = models.inception(2, 1, 2), models.inception(2, 1, 2, batch_norm=True)
    count = sum(isinstance(layer, nn.BatchNorm2d) for layer in normed.modules())
    assert count == 2 + 5 * 5 and sum(isinstance(layer, nn.BatchNorm2d) for layer in plain.modules()) == 2
    spec = spec_of(normed)
    assert spec is not None and spec["batch_norm"] and "batch_norm" not in (spec_of(plain) or {})
    assert repr(build(spec)) == repr(normed)
