"""Vectorised evolution: the Pareto front of many costs, its knee and its hypervolume."""

from topiarist.evolution.pareto import hypervolume, knee, non_dominated

__all__ = ["hypervolume", "knee", "non_dominated"]
