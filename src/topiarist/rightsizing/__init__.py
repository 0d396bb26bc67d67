"""The main job: from data, perhaps a network and a budget, to a small network with the proof that nothing was lost."""

from topiarist.rightsizing.effort import EFFORTS, METHODS
from topiarist.rightsizing.rightsize import Rightsizing, UnreachableError, rightsize

__all__ = ["EFFORTS", "METHODS", "Rightsizing", "UnreachableError", "rightsize"]
