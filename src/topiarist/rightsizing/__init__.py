"""The main job: from data, perhaps a network and a budget, to a small network with the proof that nothing was lost."""

from topiarist.rightsizing.folds import FewSamplesError
from topiarist.rightsizing.planning import DEFAULT_EFFORT, EFFORTS
from topiarist.rightsizing.record import RightsizingRecord
from topiarist.rightsizing.rightsize import Rightsizing, UnreachableError, rightsize, unjudged_baseline

__all__ = [
    "DEFAULT_EFFORT",
    "EFFORTS",
    "FewSamplesError",
    "Rightsizing",
    "RightsizingRecord",
    "UnreachableError",
    "rightsize",
    "unjudged_baseline",
]
