"""What a network is worth and what it costs: quality, size, arithmetic and time."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from topiarist.measurement.budget import Budget, BudgetError

if TYPE_CHECKING:
    from topiarist.measurement.footprint import Footprint
    from topiarist.measurement.int8 import Int8Export, export_int8
    from topiarist.measurement.measurement import Measurement, measure

__all__ = ["Budget", "BudgetError", "Footprint", "Int8Export", "Measurement", "export_int8", "measure"]


def __getattr__(name: str) -> Any:
    # Budgets are read by commands that need no torch; what weighs and measures networks is loaded when it is used.
    homes = {
        "Footprint": "footprint",
        "Int8Export": "int8",
        "Measurement": "measurement",
        "export_int8": "int8",
        "measure": "measurement",
    }
    if name not in homes:
        raise AttributeError(f"module 'topiarist.measurement' has no attribute {name!r}")
    return getattr(import_module(f"topiarist.measurement.{homes[name]}"), name)
