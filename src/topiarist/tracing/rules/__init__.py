"""The rules by kind of operation; importing them registers them."""

from topiarist.tracing.rules import (
    contraction,
    distances,
    indexing,
    joining,
    movement,
    pointwise,
    reduction,
    selection,
    views,
    windows,
)

__all__ = [
    "contraction",
    "distances",
    "indexing",
    "joining",
    "movement",
    "pointwise",
    "reduction",
    "selection",
    "views",
    "windows",
]
