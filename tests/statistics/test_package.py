import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest

from topiarist import statistics


@pytest.mark.parametrize(
    "module", [found.name for found in pkgutil.walk_packages(statistics.__path__, "topiarist.statistics.")]
)
def test_examples_in_docstrings(module: str) -> None:
    assert doctest.testmod(importlib.import_module(module)).failed == 0


@pytest.mark.slow
def test_scipys_tests_are_loaded_when_one_is_called() -> None:
    code = "import sys; from topiarist.statistics import holm; holm([0.1]); print('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
