"""The methods as their papers have them, to the letter; ours, beside them in `topiarist.methods`, depart from these."""

from topiarist.methods.published.distinctiveness import PublishedDistinctiveness as Distinctiveness
from topiarist.methods.published.genetic import PublishedGenetic as Genetic
from topiarist.methods.published.magnitude import PublishedMagnitude as Magnitude
from topiarist.methods.published.surgeon import PublishedSurgeon as Surgeon

__all__ = ["Distinctiveness", "Genetic", "Magnitude", "Surgeon"]
