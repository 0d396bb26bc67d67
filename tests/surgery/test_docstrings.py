"""The docstrings of public names say what goes in and what comes out, and their examples run."""

import doctest
import inspect
import pkgutil
from importlib import import_module

import pytest
import torch
from torch import nn

import topiarist.surgery
import topiarist.tracing
from topiarist import surgery, tracing
from topiarist.randomness import isolated

MODULES = [
    found.name
    for package in (topiarist.surgery, topiarist.tracing)
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]
PUBLIC = {name: getattr(home, name) for home in (surgery, tracing) for name in home.__all__}
FUNCTIONS = sorted(name for name, found in PUBLIC.items() if inspect.isfunction(found) and name != "ensure_anatomy")


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_examples_run(module: str) -> None:
    example = {"model": nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), "x": torch.zeros(1, 8)}
    with isolated(0):
        result = doctest.testmod(import_module(module), extraglobs={**PUBLIC, **example, "torch": torch, "nn": nn})
    assert not result.failed


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions_say_what_goes_in_and_what_comes_out(name: str) -> None:
    text = inspect.getdoc(PUBLIC[name]) or ""
    sections = text.split("\n")
    for section in ("Parameters", "Returns"):
        assert sections[sections.index(section) + 1] == "-" * len(section)
    parameters = text.partition("Parameters\n")[2].partition("\n\n")[0]
    named = {word.strip() for line in parameters.split("\n") for word in line.partition(" : ")[0].split(",")}
    assert set(inspect.signature(PUBLIC[name]).parameters) <= named
