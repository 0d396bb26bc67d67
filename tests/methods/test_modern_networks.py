"""Methods resize networks with attention and recurrence within a budget, as they do others."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from tests.methods.tasks import data_for
from tests.modern_networks import EncoderNetwork, FusedNetwork, RecurrentNetwork
from topiarist.measurement import Budget
from topiarist.methods import Distinctiveness, Genetic, Magnitude, Method, resize
from topiarist.models.evaluation import count_parameters
from topiarist.randomness import isolated
from topiarist.surgery import apply, plan_of

NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "encoder": lambda: EncoderNetwork(width=16, heads=4, hidden=24),
    "fused attention": lambda: FusedNetwork(width=16, heads=4, hidden=20),
    "lstm": lambda: RecurrentNetwork(nn.LSTM, hidden=12),
}
METHODS: dict[str, Method] = {
    "distinctiveness": Distinctiveness(),
    "genetic": Genetic(population=10, generations=3),
    "magnitude": Magnitude(units=True),
}


def made(name: str) -> nn.Module:
    with isolated(0):
        return NETWORKS[name]().eval()


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("method", METHODS)
def test_a_budget_of_parameters_is_met(name: str, method: str) -> None:
    model = made(name)
    data = data_for(model, 6, 4, counts=(120, 60, 60), wrong=0.05)
    most = round(0.7 * count_parameters(model))
    outcome = resize(model, data, METHODS[method], budget=Budget(parameters=most), latency=False)
    assert outcome.after.parameters == count_parameters(outcome.model) <= most
    assert type(outcome.model) is type(model)
    assert outcome.after.macs < outcome.before.macs
    x = torch.randn(3, 6, 4)
    assert outcome.model(x).shape == (3, 3)
    if method != "magnitude":  # which also trains
        with torch.no_grad():
            torch.testing.assert_close(apply(plan_of(outcome.model), model)(x), outcome.model(x))


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_tight_budget_of_an_lstm_is_met(method: str) -> None:
    model = made("lstm")
    data = data_for(model, 6, 4, counts=(120, 60, 60), wrong=0.05)
    most = round(0.3 * count_parameters(model))
    outcome = resize(model, data, METHODS[method], budget=Budget(parameters=most), latency=False)
    assert outcome.after.parameters <= most
    assert min(outcome.units[name][1] for name in outcome.units) >= 1
