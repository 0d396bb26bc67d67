"""Folds, seeds and statistics: declared once, resumable, the same on one core or a cluster."""

from topiarist.study.results import Results
from topiarist.study.study import Study

__all__ = ["Results", "Study"]
