"""Networks that the user's own code builds: found, built, or refused in one line."""

import sys
from pathlib import Path

import pytest
from torch import nn

from topiarist.errors import ModelError
from topiarist.models.code import build_by_code

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
    """Give the name of a module in the current folder, another one in each test."""
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
        ("{}:number", "must give an nn.Module; it gives int"),
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
