"""Networks of several widths as one stack: it computes what each does, and gives each back its own weights."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from topiarist.models import mlp
from topiarist.models.stacked import NetworkStack, padded_signature
from topiarist.models.stacked_layers import Pass
from topiarist.randomness import generator

KEEP_ZERO = ["selu", "elu", "leaky_relu", "relu", "gelu", "silu", "tanh"]
WIDTHS = [(5, 9), (8, 2), (1, 4)]


def network(*hidden: int, activation: str = "relu", **settings: object) -> nn.Sequential:
    random = generator(sum(hidden), "weights")
    model = mlp([6, *hidden, 3], activation, generator=random, **settings).double()  # type: ignore[arg-type]
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter, generator=random)
    return model


@pytest.mark.parametrize("activation", KEEP_ZERO)
@pytest.mark.parametrize("slope", [0.01, 0.4])
def test_a_padded_stack_is_as_wide_as_the_widest_and_gives_the_same_outputs(activation: str, slope: float) -> None:
    models = [network(*widths, activation=activation, leaky_slope=slope) for widths in WIDTHS]
    assert len({padded_signature(model) for model in models}) == 1
    stack = NetworkStack(models)
    assert [shape[0] for name, shape in stack.shapes.items() if name.endswith("weight")] == [8, 9, 3]
    x = torch.randn(20, 6, generator=generator(0, "samples"), dtype=torch.float64)
    logits = stack.forward(x.T.expand(3, -1, -1), Pass(training=False))
    for model, given in zip(models, logits, strict=True):
        torch.testing.assert_close(given.T, model(x), rtol=0, atol=1e-13)


def test_the_networks_are_left_alone_until_they_take_back_what_the_stack_became() -> None:
    models = [network(*widths) for widths in WIDTHS]
    before = [[value.clone() for value in model.parameters()] for model in models]
    stack = NetworkStack(models)
    stack.flat.add_(1)
    for model, old in zip(models, before, strict=True):
        assert all(map(torch.equal, model.parameters(), old))
    stack.write_back()
    for model, old in zip(models, before, strict=True):
        assert all(torch.equal(now, was + 1) for now, was in zip(model.parameters(), old, strict=True))


def frozen() -> nn.Sequential:
    model = network(5, 9)
    model[1].requires_grad_(False)
    return model


REFUSED: dict[str, Callable[[], nn.Module]] = {
    "sigmoid": lambda: network(5, 9, activation="sigmoid"),
    "batch norm": lambda: network(5, 9, batch_norm=True),
    "dropout": lambda: network(5, 9, dropout=0.5),
    "input dropout": lambda: network(5, 9, input_dropout=0.5),
    "alpha dropout": lambda: network(5, 9, activation="selu", dropout=0.5),
    "frozen": frozen,
    "a convolution": lambda: nn.Sequential(nn.Conv1d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)),
    "no layer": lambda: nn.Sequential(nn.ReLU()),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_makes_something_of_zero_or_of_the_number_of_units_cannot_be_padded(kind: str) -> None:
    assert padded_signature(REFUSED[kind]()) is None


OTHERS: dict[str, Callable[[], nn.Module]] = {
    "another activation": lambda: network(5, 9, activation="tanh"),
    "another depth": lambda: network(5, 9, 4),
    "another type": lambda: network(5, 9).float(),
    "another mode": lambda: network(5, 9).eval(),
    "other inputs": lambda: mlp([7, 5, 9, 3]).double(),
    "a slope of its own": lambda: network(5, 9, activation="leaky_relu", leaky_slope=0.2),
    "another of them": lambda: network(5, 9, activation="leaky_relu", leaky_slope=0.3),
    "other classes": lambda: mlp([6, 5, 9, 4]).double(),
    "another slope": lambda: nn.Sequential(nn.Linear(6, 5), nn.LeakyReLU(0.2), nn.Linear(5, 3)).double(),
    "another slope still": lambda: nn.Sequential(nn.Linear(6, 5), nn.LeakyReLU(0.3), nn.Linear(5, 3)).double(),
    "no bias": lambda: nn.Sequential(nn.Linear(6, 5, bias=False), nn.LeakyReLU(0.3), nn.Linear(5, 3)).double(),
}


def test_networks_that_differ_in_more_than_their_widths_differ_in_their_padded_signature() -> None:
    found = [padded_signature(make()) for make in (lambda: network(5, 9), *OTHERS.values())]
    assert None not in found and len(set(found)) == len(found)
