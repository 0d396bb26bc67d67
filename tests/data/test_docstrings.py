"""The examples in docstrings give what they show."""

import doctest
from types import ModuleType

import pytest

from topiarist.data import dataset, load, preprocessing


@pytest.mark.parametrize("module", [dataset, load, preprocessing])
def test_examples_run(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert tried and not failed
