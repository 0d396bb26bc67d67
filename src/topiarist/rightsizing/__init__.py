"""The main job: from data, perhaps a network and a budget, to a small network with the proof that nothing was lost."""

from topiarist.rightsizing.effort import EFFORTS, METHODS
from topiarist.rightsizing.folds import FewSamplesError
from topiarist.rightsizing.rightsize import Rightsizing, UnreachableError, rightsize
from topiarist.rightsizing.unjudged import unjudged_baseline

__all__ = [
    "EFFORTS",
    "METHODS",
    "FewSamplesError",
    "Rightsizing",
    "UnreachableError",
    "rightsize",
    "unjudged_baseline",
]
