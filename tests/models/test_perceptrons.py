import copy
import math
from typing import Any

import pytest
import torch
from torch import nn

from topiarist.errors import ModelError
from topiarist.models import ACTIVATIONS, card_of, mlp
from topiarist.randomness import generator


def names(model: nn.Sequential) -> list[str]:
    return [name for name, _ in model.named_children()]


def test_layers_have_their_names_and_sizes() -> None:
    model = mlp([64, 20, 10, 3], "tanh")
    assert names(model) == ["flatten", "hidden0", "activation0", "hidden1", "activation1", "output"]
    shapes = {name: tuple(value.shape) for name, value in model.named_parameters() if name.endswith("weight")}
    assert shapes == {"hidden0.weight": (20, 64), "hidden1.weight": (10, 20), "output.weight": (3, 10)}
    assert all((value == 0).all() for name, value in model.named_parameters() if name.endswith("bias"))


def test_no_hidden_layer_is_a_linear_classifier() -> None:
    assert names(mlp([4, 3])) == ["flatten", "output"]


def test_pictures_are_flattened() -> None:
    x = torch.rand(5, 1, 8, 8)
    model = mlp([64, 7, 3])
    assert model(x).equal(model(x.flatten(1))) and model(x).shape == (5, 3)


@pytest.mark.parametrize(
    ("position", "order"),
    [
        (True, ["hidden0", "norm0", "activation0", "dropout0"]),
        ("before", ["hidden0", "norm0", "activation0", "dropout0"]),
        ("after", ["hidden0", "activation0", "norm0", "dropout0"]),
        (False, ["hidden0", "activation0", "dropout0"]),
    ],
)
def test_batch_norm_goes_before_or_after_the_activation(position: Any, order: list[str]) -> None:
    assert names(mlp([4, 5, 3], "relu", position, 0.5)) == ["flatten", *order, "output"]


@pytest.mark.parametrize("layers", [0, 1, 2, 3, 9])
def test_dropout_is_on_the_last_hidden_layers_and_never_on_the_output(layers: int) -> None:
    model = mlp([6, 5, 5, 5, 5, 2], dropout=0.3, dropout_layers=layers)
    dropped = [name for name in names(model) if name.startswith("dropout")]
    assert dropped == [f"dropout{number}" for number in range(max(0, 4 - layers), 4)]
    assert names(model)[-1] == "output"


def test_three_layers_are_dropped_by_default_and_inputs_only_when_asked() -> None:
    assert sum(name.startswith("dropout") for name in names(mlp([6, 5, 5, 5, 5, 2], dropout=0.3))) == 3
    assert names(mlp([6, 2], input_dropout=0.2)) == ["flatten", "input_dropout", "output"]
    assert not any("dropout" in name for name in names(mlp([6, 5, 2])))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_variances_suit_the_activation(activation: str) -> None:
    model = mlp([400, 300, 200, 10], activation, dropout=0.5)
    weights = dict(model.named_parameters())
    he, lecun = {"he": 2 / 400, "lecun": 1 / 400}, 2 / (400 + 300)
    expected = he.get(ACTIVATIONS[activation].initialisation, lecun)
    assert weights["hidden0.weight"].var().item() == pytest.approx(expected, rel=0.02)
    assert weights["output.weight"].var().item() == pytest.approx(2 / (200 + 10), rel=0.1)
    assert weights["output.weight"].abs().max() <= math.sqrt(6 / (200 + 10))
    assert isinstance(model.dropout0, nn.AlphaDropout if activation == "selu" else nn.Dropout)


def test_signals_keep_their_size_through_deep_networks() -> None:
    x = torch.randn(500, 300, generator=generator(0, "x"))
    for activation in ("selu", "relu"):
        model = mlp([300] * 20 + [300], activation)
        with torch.no_grad():
            deep = model[:-1](x)
        assert 0.2 < deep.square().mean().sqrt() < 5


def test_the_generator_decides_and_seed_0_is_the_default() -> None:
    def weight(**settings: Any) -> torch.Tensor:
        found: torch.Tensor = mlp([4, 5, 3], **settings).state_dict()["hidden0.weight"]
        return found

    assert weight().equal(weight()) and weight().equal(weight(generator=generator(0, "initial weights")))
    assert not weight().equal(weight(generator=generator(1, "initial weights")))


def test_the_global_generator_is_left_alone() -> None:
    before = torch.get_rng_state()
    mlp([4, 5, 3], "selu", True, 0.5)
    assert torch.get_rng_state().equal(before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sizes": [4]}, r"sizes must name inputs, hidden layers and classes, each at least 1; found \[4\]"),
        ({"sizes": []}, r"found \[\]"),
        ({"sizes": [4, 0, 3]}, r"found \[4, 0, 3\]"),
        ({"sizes": [4, 3], "activation": "step"}, "activation must be .*; found 'step'"),
        ({"sizes": [4, 3], "batch_norm": "under"}, "batch_norm must be .*; found 'under'"),
        ({"sizes": [4, 3], "dropout": 1.0}, "^dropout must be less than 1; found 1.0"),
        ({"sizes": [4, 3], "dropout": math.nan}, "^dropout must be a finite number; found nan"),
        ({"sizes": [4, 3], "input_dropout": -0.1}, "input_dropout must be greater than or equal to 0; found -0.1"),
        ({"sizes": [4, 3], "dropout_layers": -1}, "dropout_layers must be greater than or equal to 0; found -1"),
        ({"sizes": [4, 3], "batch_norm_epsilon": 0.0}, "batch_norm_epsilon must be greater than 0; found 0.0"),
        ({"sizes": [4, 3], "batch_norm_epsilon": math.inf}, "batch_norm_epsilon must be a finite number; found inf"),
        (
            {"sizes": [4, 3], "batch_norm_momentum": 1.1},
            "batch_norm_momentum must be less than or equal to 1; found 1.1",
        ),
        ({"sizes": [4, 3], "batch_norm_momentum": 0}, "batch_norm_momentum must be greater than 0; found 0"),
        ({"sizes": [4, 3], "leaky_slope": 1.0}, "leaky_slope must be less than 1; found 1.0"),
        ({"sizes": [4, 3], "leaky_slope": math.nan}, "leaky_slope must be a finite number; found nan"),
    ],
)
def test_what_makes_no_network_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        mlp(**arguments)


def test_the_spec_survives_a_copy() -> None:
    spec = card_of(copy.deepcopy(mlp([4, 5, 3], "elu", "after", 0.1, dropout_layers=1, input_dropout=0.2))).spec
    assert spec == {
        "family": "mlp",
        "sizes": [4, 5, 3],
        "activation": "elu",
        "batch_norm": "after",
        "dropout": 0.1,
        "dropout_layers": 1,
        "input_dropout": 0.2,
    }


def test_the_settings_of_batch_norm_and_leaky_relu_are_those_asked_for() -> None:
    settings = {"batch_norm_epsilon": 0.01, "batch_norm_momentum": 0.5, "leaky_slope": 0.2}
    model = mlp([4, 5, 6, 3], "leaky_relu", True, **settings)  # type: ignore[arg-type]
    norms = [module for module in model if isinstance(module, nn.BatchNorm1d)]
    slopes = [module.negative_slope for module in model if isinstance(module, nn.LeakyReLU)]
    assert [(norm.eps, norm.momentum) for norm in norms] == [(0.01, 0.5)] * 2 and slopes == [0.2] * 2
    spec = card_of(model).spec
    assert spec is not None and settings.items() <= spec.items()
    plain = card_of(mlp([4, 5, 3], "leaky_relu", True)).spec
    assert plain is not None and not settings.keys() & plain.keys()  # as older versions write and read them


def test_the_slope_decides_the_variance_of_the_weights() -> None:
    weights = mlp([900, 800, 3], "leaky_relu", leaky_slope=0.8).state_dict()["hidden0.weight"]
    assert weights.var().item() == pytest.approx(2 / (1 + 0.8**2) / 900, rel=0.01)  # He and others (2015)
