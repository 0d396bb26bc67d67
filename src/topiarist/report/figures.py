"""The figures of a report, as SVG that reads well on light and on dark."""

from topiarist.report.curves import learning_curves, sweep_curves
from topiarist.report.forest import differences
from topiarist.report.pareto import pareto_figure

__all__ = ["differences", "learning_curves", "pareto_figure", "sweep_curves"]
