"""topiarist gives a neural network the size its task needs.

The public names are loaded when they are first used: importing the package does not import torch.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topiarist import methods, models, surgery
    from topiarist.data import Data, load_data
    from topiarist.errors import TopiaristError, TopiaristWarning
    from topiarist.estimators import RightSizedClassifier, RightSizedRegressor
    from topiarist.measurement import Budget, Measurement, export_int8, measure
    from topiarist.methods import Outcome, resize
    from topiarist.notebooks import progress_bar
    from topiarist.report.plotting import plot
    from topiarist.report.writing import write_report
    from topiarist.rightsizing import Rightsizing, rightsize
    from topiarist.rightsizing.delivery import deliver
    from topiarist.storage import export_onnx, load, save
    from topiarist.study.results import Results
    from topiarist.study.study import Study
    from topiarist.tracing import Anatomy, anatomy
    from topiarist.training import (
        History,
        Phase,
        Schedule,
        TrainConfig,
        monte_carlo,
        reuse,
        train,
        train_many,
        train_phases,
    )

__version__ = version("topiarist")

_HOMES = {
    "Anatomy": "tracing",
    "Budget": "measurement",
    "Data": "data",
    "History": "training",
    "Measurement": "measurement",
    "Outcome": "methods",
    "Phase": "training",
    "Results": "study.results",
    "RightSizedClassifier": "estimators",
    "RightSizedRegressor": "estimators",
    "Rightsizing": "rightsizing",
    "Schedule": "training",
    "Study": "study.study",
    "TopiaristError": "errors",
    "TopiaristWarning": "errors",
    "TrainConfig": "training",
    "anatomy": "tracing",
    "deliver": "rightsizing.delivery",
    "export_int8": "measurement",
    "export_onnx": "storage",
    "load": "storage",
    "load_data": "data",
    "measure": "measurement",
    "monte_carlo": "training",
    "plot": "report.plotting",
    "progress_bar": "notebooks",
    "resize": "methods",
    "reuse": "training",
    "rightsize": "rightsizing",
    "save": "storage",
    "train": "training",
    "train_many": "training",
    "train_phases": "training",
    "write_report": "report.writing",
}

__all__ = [
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


def __getattr__(name: str) -> Any:
    if name in ("methods", "models", "surgery"):
        return import_module(f"topiarist.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'topiarist' has no attribute {name!r}")
    return getattr(import_module(f"topiarist.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
