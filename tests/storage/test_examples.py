import doctest
import importlib

import pytest

for name in ("onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(name)


@pytest.mark.slow
@pytest.mark.parametrize("module", ["exporting", "onnx_export", "reading", "writing"])
def test_examples_in_docstrings(module: str) -> None:
    found = doctest.testmod(importlib.import_module(f"topiarist.storage.{module}"))
    assert found.attempted and not found.failed
