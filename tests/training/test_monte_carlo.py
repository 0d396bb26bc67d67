import pytest
import torch

from topiarist.errors import ModelError
from topiarist.models import mlp
from topiarist.training import monte_carlo

X = torch.randn(20, 4, generator=torch.Generator().manual_seed(0))


def test_the_mean_of_many_passes_and_its_spread() -> None:
    model = mlp([4, 50, 3], dropout=0.5, batch_norm=True).eval()
    state, before = torch.get_rng_state(), {name: value.clone() for name, value in model.state_dict().items()}
    found = monte_carlo(model, X, passes=200)
    assert torch.equal(torch.get_rng_state(), state)
    assert not any(module.training for module in model.modules())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    torch.testing.assert_close(found.mean.sum(dim=1), torch.ones(20))
    assert (found.spread > 0).all()
    again, other = monte_carlo(model, X, passes=200), monte_carlo(model, X, passes=200, seed=1)
    assert torch.equal(found.mean, again.mean) and not torch.equal(found.mean, other.mean)


def test_with_little_dropout_the_mean_is_nearly_what_the_network_says() -> None:
    model = mlp([4, 50, 3], dropout=0.01).eval()
    assert (monte_carlo(model, X, passes=300).mean - model(X).softmax(dim=1)).abs().max() < 0.02


def test_alpha_dropout_counts_as_dropout() -> None:
    assert (monte_carlo(mlp([4, 9, 3], "selu", dropout=0.3), X, passes=5).spread > 0).any()


def test_it_needs_dropout_and_passes() -> None:
    with pytest.raises(ModelError, match="has none"):
        monte_carlo(mlp([4, 3]), X)
    with pytest.raises(ModelError, match="at least 2 passes"):
        monte_carlo(mlp([4, 5, 3], dropout=0.1), X, passes=1)
