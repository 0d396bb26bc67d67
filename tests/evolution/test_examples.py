import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["genetic_algorithm", "nsga2", "pareto"])
def test_examples_in_docstrings(module: str) -> None:
    assert doctest.testmod(importlib.import_module(f"topiarist.evolution.{module}")).failed == 0
