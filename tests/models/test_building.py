"""Networks that settings, specs and the user's own code build: found, built, or refused in one line."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, strategies
from torch import nn

from topiarist.errors import ModelError
from topiarist.models import ACTIVATIONS, ModelSettings, build, build_network, card_of, inception, mlp, vgg
from topiarist.models.building import build_by_code
from topiarist.randomness import generator

MODULE = """
from torch import nn

def line(*, inputs, classes=2):
    return nn.Linear(inputs, classes)

def number():
    return 3

def fails():
    raise ValueError("first line\\nsecond line")

def leaves():
    raise SystemExit(3)

def needs(*, something):
    return nn.Linear(1, something)

value = 4
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """Return the name of a module in the current folder, another one in each test."""
    name = f"networks_of_{abs(hash(request.node.nodeid))}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return name


def test_a_function_of_the_current_folder_builds_a_network(module: str) -> None:
    before = list(sys.path)
    model = build_by_code(f"{module}:line", inputs=5, classes=3)
    assert isinstance(model, nn.Linear) and (model.in_features, model.out_features) == (5, 3)
    assert sys.path == before


def test_an_installed_module_builds_a_network_too() -> None:
    assert isinstance(build_by_code("torch.nn:ReLU"), nn.ReLU)


@pytest.mark.parametrize("reference", ["", "module", "module:", ":function", ":"])
def test_code_is_named_by_module_and_function(reference: str) -> None:
    with pytest.raises(ModelError, match=f"code is named as module:function; found '{reference}'"):
        build_by_code(reference)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("no_such_module:line", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("{}:none", "AttributeError: .* has no attribute 'none'"),
        ("{}:fails", "ValueError: first line second line"),
        ("{}:needs", "TypeError: .*something"),
        ("{}:value", "TypeError: .*not callable"),
        ("{}:number", "must return an nn.Module; it returns int"),
        ("{}:line:more", "AttributeError"),
        ("broken:line", "SyntaxError"),
        ("..{}:line", "TypeError|ModuleNotFoundError|ImportError"),
    ],
)
def test_what_goes_wrong_in_the_users_code_is_one_line(module: str, reference: str, said: str) -> None:
    Path("broken.py").write_text("def line(:\n")
    before = list(sys.path)
    with pytest.raises(ModelError, match=said) as caught:
        build_by_code(reference.format(module))
    assert "\n" not in str(caught.value) and reference.format(module) in str(caught.value)
    assert sys.path == before


def test_code_that_leaves_is_one_line(module: str) -> None:
    with pytest.raises(ModelError, match="leaves"):
        build_by_code(f"{module}:leaves")


def test_the_search_path_is_left_as_it_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "changes_the_path.py").write_text(
        "import sys\nfrom torch import nn\nsys.path.insert(0, '/somewhere/else')\ndef relu():\n    return nn.ReLU()\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = list(sys.path)
    build_by_code("changes_the_path:relu")
    assert sys.path == ["/somewhere/else", *before]


SETTINGS = strategies.fixed_dictionaries(
    {
        "sizes": strategies.lists(strategies.integers(1, 9), min_size=2, max_size=5),
        "activation": strategies.sampled_from(list(ACTIVATIONS)),
        "batch_norm": strategies.sampled_from([False, True, "before", "after"]),
        "dropout": strategies.sampled_from([0.0, 0.25]),
        "dropout_layers": strategies.integers(0, 4),
        "input_dropout": strategies.sampled_from([0.0, 0.1]),
    }
)


@pytest.mark.slow
@given(SETTINGS)
def test_a_spec_that_went_through_json_builds_the_same_network(settings: dict[str, Any]) -> None:
    model = mlp(**settings)
    spec = card_of(model).spec
    again = build(json.loads(json.dumps(spec)))
    assert repr(again) == repr(model) and card_of(again).spec == spec
    for (name, value), (other, copied) in zip(model.state_dict().items(), again.state_dict().items(), strict=True):
        assert name == other and value.equal(copied)


@pytest.mark.parametrize("family", ["tree", None, 3, [], {}])
def test_an_unknown_family_is_refused(family: Any) -> None:
    with pytest.raises(ModelError, match=r"no family of networks is called .*: known are mlp"):
        build({"family": family, "sizes": [3, 2]})


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"sizes": None},
        {"sizes": [3, 2], "depth": 1},
        {"sizes": [3, 2], "dropout": "x"},
        {"sizes": [3, 2], "activation": []},
    ],
)
def test_a_spec_that_does_not_fit_its_family_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="the spec of a mlp network cannot be read"):
        build({"family": "mlp", **settings})


def test_the_spec_is_left_alone() -> None:
    spec = {"family": "mlp", "sizes": [3, 2]}
    build(spec)
    assert spec == {"family": "mlp", "sizes": [3, 2]}


@pytest.mark.parametrize(
    ("declared", "built"),
    [
        (
            {"hidden": (5, 4), "activation": "selu", "dropout": 0.1},
            lambda g: mlp([64, 5, 4, 3], "selu", dropout=0.1, generator=g),
        ),
        (
            {"family": "vgg", "blocks": (1, 0, 0, 1), "options": {"dropout": 0.1}},
            lambda g: vgg(1, 0, 0, 1, input_shape=(1, 8, 8), classes=3, dropout=0.1, generator=g),
        ),
        (
            {"family": "inception", "blocks": (1, 0, 0)},
            lambda g: inception(1, 0, 0, input_shape=(1, 8, 8), classes=3, generator=g),
        ),
    ],
)
def test_settings_build_what_the_functions_of_the_families_build(declared: dict[str, Any], built: Any) -> None:
    model = build_network(ModelSettings(**declared), input_shape=(1, 8, 8), classes=3, seed=4)
    expected = built(generator(4, "initial weights"))
    assert card_of(model).spec == card_of(expected).spec
    assert all(torch.equal(value, expected.state_dict()[name]) for name, value in model.state_dict().items())


def test_code_is_given_shape_classes_options_and_a_seeded_generator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "from torch import nn\ndef net(input_shape, classes, bias): return nn.Linear(*input_shape, classes, bias)\n"
    (tmp_path / "drawing_of_its_own.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    before = torch.get_rng_state()
    settings = ModelSettings(code="drawing_of_its_own:net", options={"bias": False})
    drawn = [build_network(settings, input_shape=(6,), classes=2, seed=seed) for seed in (0, 0, 1)]
    weights = [next(model.parameters()) for model in drawn]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])
    assert len(list(drawn[0].parameters())) == 1 and torch.equal(torch.get_rng_state(), before)


def test_options_that_a_family_does_not_have_are_one_line() -> None:
    settings = ModelSettings(family="vgg", blocks=(0, 0, 0, 1), options={"depth": 3})
    with pytest.raises(ModelError, match=r"a network of the family vgg: .*unexpected keyword argument 'depth'"):
        build_network(settings, input_shape=(1, 8, 8), classes=2)
