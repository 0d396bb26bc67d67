"""The rules by kind of operation; importing them registers them."""

from topiarist.tracing.rules import contraction, indexing, movement, pointwise, reduction, views, windows

__all__ = ["contraction", "indexing", "movement", "pointwise", "reduction", "views", "windows"]
