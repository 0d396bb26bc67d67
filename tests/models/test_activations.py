import math
from typing import get_args

import pytest
import torch
from scipy import stats
from torch import nn

from topiarist.errors import ModelError
from topiarist.models import mlp
from topiarist.models.activations import ACTIVATIONS, Initialisation, find_activation, initialise
from topiarist.models.settings import ActivationName
from topiarist.randomness import generator


def test_the_names_are_those_of_the_command_line() -> None:
    assert list(ACTIVATIONS) == ["selu", "elu", "leaky_relu", "relu", "gelu", "silu", "tanh", "sigmoid"]
    assert isinstance(find_activation("leaky_relu").make(), nn.LeakyReLU)


def test_the_names_are_those_of_the_settings() -> None:
    assert list(ACTIVATIONS) == list(get_args(ActivationName))


def test_an_unknown_name_is_told_the_others() -> None:
    with pytest.raises(ModelError, match=r"activation must be 'selu', .* or 'sigmoid'; found 'rely'"):
        mlp([4, 3], "rely")


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("selu", "lecun"),
        ("elu", "he"),
        ("leaky_relu", "he"),
        ("relu", "he"),
        ("gelu", "he"),
        ("silu", "he"),
        ("tanh", "glorot"),
        ("sigmoid", "glorot"),
    ],
)
def test_each_activation_has_the_initialisation_that_suits_it(name: str, how: Initialisation) -> None:
    assert ACTIVATIONS[name].initialisation == how
    assert ACTIVATIONS[name].dropout is (nn.AlphaDropout if name == "selu" else nn.Dropout)


@pytest.mark.parametrize("shape", [(300, 200), (60, 20, 5, 5)])
@pytest.mark.parametrize("how", ["he", "lecun", "glorot"])
def test_weights_follow_the_distribution_of_the_paper(how: Initialisation, shape: tuple[int, ...]) -> None:
    weight = torch.full(shape, math.nan)
    initialise(weight, how, generator=generator(0, "weights"))
    receptive = math.prod(shape[2:])
    fan_in, fan_out = shape[1] * receptive, shape[0] * receptive
    bound = math.sqrt(6 / (fan_in + fan_out))
    expected = {
        "he": stats.norm(scale=math.sqrt(2 / fan_in)),
        "lecun": stats.norm(scale=math.sqrt(1 / fan_in)),
        "glorot": stats.uniform(-bound, 2 * bound),
    }[how]
    values = weight.flatten().double().numpy()
    assert stats.kstest(values, expected.cdf).pvalue > 0.01
    assert values.var() == pytest.approx(expected.var(), rel=0.03)


def test_the_generator_decides() -> None:
    draws = [torch.empty(5, 4) for _ in range(3)]
    for weight, seed in zip(draws, (1, 1, 2), strict=True):
        initialise(weight, "he", generator=generator(seed, "weights"))
    assert draws[0].equal(draws[1]) and not draws[0].equal(draws[2])
