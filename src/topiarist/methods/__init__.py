"""Methods that decide what a network should become, and `shape`, which makes it so."""

from topiarist.methods.distinctiveness import Distinctiveness
from topiarist.methods.factorisation import Factorisation
from topiarist.methods.genetic import Genetic
from topiarist.methods.genetic_front import FrontPoint, GeneticFront
from topiarist.methods.magnitude import Magnitude
from topiarist.methods.outcome import Outcome
from topiarist.methods.retraining import FineTuning, Rewinding
from topiarist.methods.shape import shape
from topiarist.methods.shaping import TrainingMethod
from topiarist.methods.surgeon import Surgeon
from topiarist.methods.task import Method, Proposal, Task

__all__ = [
    "Distinctiveness",
    "Factorisation",
    "FineTuning",
    "FrontPoint",
    "Genetic",
    "GeneticFront",
    "Magnitude",
    "Method",
    "Outcome",
    "Proposal",
    "Rewinding",
    "Surgeon",
    "Task",
    "TrainingMethod",
    "shape",
]
