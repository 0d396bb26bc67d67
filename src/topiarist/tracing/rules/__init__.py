"""The rules by kind of operation; importing them registers them."""

from topiarist.tracing.rules import contraction, indexing, joining, movement, pointwise, reduction, views, windows

__all__ = ["contraction", "indexing", "joining", "movement", "pointwise", "reduction", "views", "windows"]
