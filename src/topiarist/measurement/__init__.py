"""What a network is worth and what it costs: quality, size, arithmetic and time."""

from topiarist.measurement.budget import Budget, BudgetError
from topiarist.measurement.measurement import Measurement, measure

__all__ = ["Budget", "BudgetError", "Measurement", "measure"]
