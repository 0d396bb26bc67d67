"""Ensembles as one computation: the same answers, of a copy of the weights."""

import pytest
import torch
from torch import nn

from topiarist.errors import ModelError
from topiarist.models import ACTIVATIONS, Ensemble, card_of, joined, mlp, vgg
from topiarist.randomness import generator


def team(*sizes: int, count: int = 3, **settings: object) -> Ensemble:
    made = [mlp(sizes, generator=generator(seed, "weights"), **settings) for seed in range(count)]  # type: ignore[arg-type]
    for member in made:
        for number, norm in enumerate(layer for layer in member if isinstance(layer, nn.BatchNorm1d)):
            random = generator(number, "norms")
            for value in (norm.running_mean, norm.running_var, norm.weight.data, norm.bias.data):
                assert value is not None
                value.copy_(torch.rand(value.shape, generator=random) + 0.5)
    return Ensemble([member.double().eval() for member in made], weights=[1.0 + number for number in range(count)])


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("batch_norm", [False, "before", "after"])
def test_it_answers_as_the_ensemble_does(activation: str, batch_norm: bool | str) -> None:
    ensemble = team(12, 7, 5, 3, activation=activation, batch_norm=batch_norm, dropout=0.3)
    x = torch.randn(9, 3, 4, dtype=torch.float64, generator=generator(0, "samples"))
    torch.testing.assert_close(joined(ensemble)(x), ensemble(x), rtol=0, atol=1e-12)


def test_layers_without_bias_and_norms_without_scale_are_joined() -> None:
    members = [
        nn.Sequential(nn.Linear(4, 6, bias=False), nn.BatchNorm1d(6, affine=False), nn.Tanh(), nn.Linear(6, 3)).eval()
        for _ in range(2)
    ]
    x = torch.randn(5, 4, generator=generator(0, "samples"))
    torch.testing.assert_close(joined(Ensemble(members))(x), Ensemble(members)(x))


def test_it_has_weights_of_its_own_and_the_card_of_the_ensemble() -> None:
    ensemble = team(4, 6, 3)
    x = torch.randn(5, 4, dtype=torch.float64, generator=generator(0, "samples"))
    network = joined(ensemble)
    before = network(x)
    with torch.no_grad():
        for parameter in ensemble.parameters():
            parameter.mul_(2)
    assert torch.equal(network(x), before)
    assert not torch.equal(ensemble(x), before)
    assert card_of(network) == card_of(ensemble)


def test_members_that_differ_or_have_other_layers_are_refused() -> None:
    pairs = ([mlp([4, 6, 3]), mlp([4, 7, 3])], [vgg(0, 0, 1, 0, input_shape=(1, 8, 8)) for _ in range(2)])
    for members in pairs:
        with pytest.raises(ModelError, match="only members of one shape"):
            joined(Ensemble([member.eval() for member in members]))
