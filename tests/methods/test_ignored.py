"""Layers that are ignored, by name or by type, keep all of their units."""

import pytest
from torch import nn

from tests.methods.tasks import drawn, perceptron
from topiarist.errors import ModelError, SettingsError
from topiarist.measurement import Budget, BudgetError
from topiarist.methods import Distinctiveness, Factorisation, Magnitude, Method, Surgeon, published, resize

SAMPLES = drawn(90, 6)


def test_an_ignored_layer_keeps_its_units() -> None:
    half = Distinctiveness(keep_fraction=0.5)
    outcome = resize(perceptron(6, 20, 12, 3), method=half, calibration=SAMPLES, ignored="hidden0")
    assert dict(outcome.units) == {"hidden1": (12, 6)}
    assert outcome.model.get_submodule("hidden0").out_features == 20


@pytest.mark.slow
def test_a_budget_is_met_without_the_ignored_layer_or_refused() -> None:
    model = perceptron(6, 20, 12, 3)
    outcome = resize(model, budget=Budget(parameters=240), calibration=SAMPLES, ignored=["hidden0"])
    assert outcome.after.parameters <= 240 and outcome.model.get_submodule("hidden0").out_features == 20
    with pytest.raises(BudgetError, match="cannot be met"):
        resize(model, budget=Budget(parameters=100), calibration=SAMPLES, ignored=["hidden0"])


@pytest.mark.parametrize("method", [Distinctiveness(keep_fraction=0.5), published.Distinctiveness(angle_degrees=60)])
def test_where_all_types_of_layers_are_ignored_nothing_can_be_removed(method: Distinctiveness) -> None:
    with pytest.raises(ModelError, match="no units that could be removed"):
        resize(perceptron(6, 20, 12, 3), method=method, calibration=SAMPLES, ignored=nn.Linear)


def test_the_name_of_no_layer_is_refused() -> None:
    with pytest.raises(ModelError, match="ignored must name layers"):
        resize(perceptron(6, 20, 12, 3), calibration=SAMPLES, ignored="head")


@pytest.mark.slow
def test_an_ignored_layer_is_not_factorised_either() -> None:
    model = perceptron(6, 20, 12, 3)
    assert resize(model, method=Factorisation(keep=0.3), calibration=SAMPLES).plan.edits
    thin = resize(model, method=Factorisation(keep=0.3), calibration=SAMPLES, ignored="hidden1")
    assert thin.model.get_submodule("hidden1").weight.shape == (12, 20)


@pytest.mark.parametrize("method", [Magnitude(), published.Magnitude(), Surgeon()])
def test_a_method_that_trains_refuses_to_ignore_layers(method: Method) -> None:
    with pytest.raises(SettingsError, match="changes the network as a whole: leave ignored out"):
        resize(perceptron(6, 20, 12, 3), method=method, calibration=SAMPLES, ignored="hidden0")
