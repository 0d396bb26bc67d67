"""Genetic searches over subsets of units: one bit per unit."""

from topiarist.methods.genetic.front import FrontPoint, GeneticFront
from topiarist.methods.genetic.genetic import Genetic

__all__ = ["FrontPoint", "Genetic", "GeneticFront"]
