"""Vectorised evolution: a genetic algorithm and NSGA-II over bit strings; a Pareto front, its knee, its hypervolume."""

from topiarist.evolution.genetic_algorithm import Evolved, GeneticSettings, evolve
from topiarist.evolution.nsga2 import FrontResult, FrontSettings, evolve_front
from topiarist.evolution.pareto import hypervolume, knee, non_dominated

__all__ = [
    "Evolved",
    "FrontResult",
    "FrontSettings",
    "GeneticSettings",
    "evolve",
    "evolve_front",
    "hypervolume",
    "knee",
    "non_dominated",
]
