"""The names that users may rely on; a change here is a change for them."""

import subprocess
import sys

import pytest

import topiarist

PUBLIC = [
    "Anatomy",
    "Budget",
    "Data",
    "History",
    "Measurement",
    "Outcome",
    "Phase",
    "Results",
    "RightSizedClassifier",
    "RightSizedRegressor",
    "Rightsizing",
    "Schedule",
    "Study",
    "TopiaristError",
    "TopiaristWarning",
    "TrainConfig",
    "anatomy",
    "deliver",
    "export_int8",
    "export_onnx",
    "load",
    "load_data",
    "measure",
    "methods",
    "models",
    "monte_carlo",
    "plot",
    "progress_bar",
    "resize",
    "reuse",
    "rightsize",
    "save",
    "surgery",
    "train",
    "train_many",
    "train_phases",
    "write_report",
]


def test_the_list_is_kept() -> None:
    assert topiarist.__all__ == PUBLIC
    assert all(getattr(topiarist, name) is not None for name in PUBLIC)
    assert set(PUBLIC) <= set(dir(topiarist))


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        topiarist.nothing  # noqa: B018


def test_importing_the_package_is_light() -> None:
    code = "import sys, topiarist; print(sorted({'torch', 'pandas', 'sklearn', 'pydantic'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.slow
def test_resize_costs_torch_and_little_more() -> None:
    heavy = {"dask", "distributed", "matplotlib", "onnx", "onnxruntime", "sklearn"}
    code = f"import sys; from topiarist import resize; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
