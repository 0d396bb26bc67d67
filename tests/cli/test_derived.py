"""Options derived from settings: none is left out, defaults are those of the settings, errors name the option."""

import sys
from unittest import mock

import pytest
from pydantic import Field

from topiarist.cli.derived import derive, naming
from topiarist.cli.options import BUDGET
from topiarist.cli.resize import MethodCommand
from topiarist.cli.train import NETWORK, SCHEDULE, TRAINING
from topiarist.errors import SettingsError
from topiarist.measurement import Budget
from topiarist.methods import Method, registered
from topiarist.models import ModelSettings
from topiarist.settings import Settings
from topiarist.training import Schedule, TrainConfig


class Inner(Settings):
    steps: int = Field(default=3, ge=1, description="Steps.")


class Outer(Settings):
    rate: float = Field(default=0.5, gt=0, description="Rate.")
    pair: tuple[int, int] | None = Field(default=None, description="Pair.")
    names: tuple[str, ...] = Field(default=(), description="Names.")
    inner: Inner = Field(default=Inner(), description="Inner.")
    hidden: int = 1  # without a description, it is not for users


OPTIONS = derive(Outer, "Panel", spelled={"rate": "--r --rate"})


def test_settings_become_options_and_values_settings_again() -> None:
    assert OPTIONS.names == {"rate": "--r", "pair": "--pair", "names": "--names", "inner.steps": "--inner-steps"}
    given = {"rate": 2.0, "pair": "2:4", "names": ["a,b", "c"], "inner_steps": 5, "other": 1}
    made = OPTIONS.make(given)
    assert made == Outer(rate=2.0, pair=(2, 4), names=("a", "b", "c"), inner=Inner(steps=5))
    assert OPTIONS.make({}) == Outer() and OPTIONS.make({}).model_fields_set == set()
    assert OPTIONS.given(given) == ["--r", "--pair", "--names", "--inner-steps"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rate": 0.0}, "--r must be greater than 0; found 0.0"),
        ({"inner_steps": 0}, "--inner-steps must be greater than or equal to 1; found 0"),
        ({"pair": "2"}, "--pair: two numbers are written like 2:4; found '2'"),
    ],
)
def test_an_error_names_the_option(given: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError) as error:
        OPTIONS.make(given)
    assert str(error.value) == said


def test_an_error_names_the_option_as_it_was_written() -> None:
    with mock.patch.object(sys, "argv", ["topiarist", "--rate=0"]), pytest.raises(SettingsError, match=r"^--rate must"):
        OPTIONS.make({"rate": 0.0})


def test_settings_without_an_option_are_named_as_options_are() -> None:
    with pytest.raises(SettingsError, match=r"^--batch-size must"), naming({}):
        TrainConfig(batch_size=0)


@pytest.mark.parametrize("method", registered().values())
def test_every_setting_of_every_method_has_an_option(method: type[Method]) -> None:
    command = MethodCommand(method)
    assert {each.path[0] for each in command.options.options} == set(method.model_fields) - {"training"}
    assert command.make_method({}) == method()


def test_every_setting_of_training_networks_and_budgets_has_an_option() -> None:
    elsewhere = {"distillation", "pruning", "augmentation", "watch_training", "after_epoch", "seed", "schedule"}
    assert {each.path[0] for each in TRAINING.options} == set(TrainConfig.model_fields) - elsewhere
    assert {each.path[-1] for each in SCHEDULE.options} == set(Schedule.model_fields)
    assert {each.path[0] for each in NETWORK.options} == set(ModelSettings.model_fields) - {"code", "options"}
    assert {each.path[0] for each in BUDGET.options} == set(Budget.model_fields)
