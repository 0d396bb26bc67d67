"""The settings of training and of networks: described, light to import, and written as they always were."""

import doctest
import pkgutil
import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest

import topiarist.models
import topiarist.training
from topiarist.models import ModelSettings
from topiarist.settings import Settings
from topiarist.training import Augmentation, Distillation, Phase, Pruning, Schedule, TrainConfig

SETTINGS = [Augmentation, Distillation, ModelSettings, Phase, Pruning, Schedule, TrainConfig]
ROOMS = (topiarist.models, topiarist.training)
MODULES = [found.name for room in ROOMS for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")]


def loaded(code: str, *modules: str) -> set[str]:
    """Return which modules some code loads, in a process of its own."""
    code = f"import sys\n{code}\nprint(*({set(modules)!r} & set(sys.modules)))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_field_has_a_sentence_for_the_command_line(settings: type[Settings]) -> None:
    for name, field in settings.model_fields.items():
        text = field.description or ""
        assert text.endswith(".") and len(text) <= 110 and text[0] == text[0].upper(), (settings.__name__, name, text)


@pytest.mark.slow
def test_settings_are_loaded_without_torch() -> None:
    code = "from topiarist.training import Augmentation, Distillation, Phase, Pruning, Schedule, TrainConfig\n"
    code += "from topiarist.models import ModelSettings\nTrainConfig(); ModelSettings()"
    assert loaded(code, "torch", "numpy", "pandas", "scipy", "sklearn", "distributed") == set()


@pytest.mark.slow
def test_training_loads_nothing_that_few_trainings_need() -> None:
    code = "import topiarist.training.rescue, topiarist.training.transfer"
    assert loaded(code, "torch", "sklearn", "distributed", "scipy.stats", "matplotlib") == {"torch"}


@pytest.mark.parametrize("room", ROOMS)
def test_public_names_are_found_and_others_refused(room: ModuleType) -> None:
    for name in room.__all__:
        assert not isinstance(getattr(room, name), ModuleType), name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        room.nothing  # noqa: B018


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_docstrings_run(module: str) -> None:
    assert doctest.testmod(import_module(module)).failed == 0


def test_model_settings_are_written_as_ledgers_know_them() -> None:
    assert list(ModelSettings().model_dump(mode="json").items()) == [
        ("family", "mlp"),
        ("blocks", []),
        ("hidden", [100]),
        ("activation", "relu"),
        ("leaky_slope", 0.01),
        ("batch_norm", False),
        ("batch_norm_epsilon", 1e-5),
        ("batch_norm_momentum", 0.1),
        ("dropout", 0.0),
        ("dropout_layers", 3),
        ("input_dropout", 0.0),
        ("code", None),
        ("options", {}),
    ]
