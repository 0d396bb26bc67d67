"""Methods that decide what a network should become, and `resize`, which makes it so."""

from topiarist.evolution.lineage import Lineage
from topiarist.methods import published
from topiarist.methods.distinctiveness import Distinctiveness
from topiarist.methods.factorisation import Factorisation
from topiarist.methods.genetic import FrontPoint, Genetic, GeneticFront
from topiarist.methods.job import Request
from topiarist.methods.magnitude import Magnitude
from topiarist.methods.method import Method, Proposal, TrainingMethod, Traits
from topiarist.methods.outcome import Outcome
from topiarist.methods.registry import find_method, register, registered
from topiarist.methods.resize import resize
from topiarist.methods.retraining import FineTuning, Rewinding
from topiarist.methods.surgeon import Surgeon

__all__ = [
    "Distinctiveness",
    "Factorisation",
    "FineTuning",
    "FrontPoint",
    "Genetic",
    "GeneticFront",
    "Lineage",
    "Magnitude",
    "Method",
    "Outcome",
    "Proposal",
    "Request",
    "Rewinding",
    "Surgeon",
    "TrainingMethod",
    "Traits",
    "find_method",
    "published",
    "register",
    "registered",
    "resize",
]

# The order is that of tables, of `--help`, and of what `rightsize` asks.
for _method in (
    Distinctiveness,
    Genetic,
    GeneticFront,
    Factorisation,
    Magnitude,
    Surgeon,
    published.Distinctiveness,
    published.Genetic,
    published.Magnitude,
    published.Surgeon,
):
    register(_method)
