"""The main job: from data, perhaps a network and a budget, to a small network with the proof that nothing was lost.

The names are loaded when they are first used: the report reads a record without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topiarist.rightsizing.backbone import Backbone
    from topiarist.rightsizing.folds import FewSamplesError
    from topiarist.rightsizing.pipeline import rightsize
    from topiarist.rightsizing.planning import DEFAULT_EFFORT, EFFORTS
    from topiarist.rightsizing.record import RightsizingRecord
    from topiarist.rightsizing.result import Rightsizing, UnreachableError
    from topiarist.rightsizing.unjudged import unjudged_baseline

_HOMES = {
    "backbone": ("Backbone",),
    "folds": ("FewSamplesError",),
    "pipeline": ("rightsize",),
    "planning": ("DEFAULT_EFFORT", "EFFORTS"),
    "record": ("RightsizingRecord",),
    "result": ("Rightsizing", "UnreachableError"),
    "unjudged": ("unjudged_baseline",),
}

__all__ = [
    "DEFAULT_EFFORT",
    "EFFORTS",
    "Backbone",
    "FewSamplesError",
    "Rightsizing",
    "RightsizingRecord",
    "UnreachableError",
    "rightsize",
    "unjudged_baseline",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"topiarist.rightsizing.{home}"), name)
    raise AttributeError(f"module 'topiarist.rightsizing' has no attribute {name!r}")
