"""The figures of a report, as SVG that reads well on light and on dark."""

from topiarist.report.curves import learning_curves, sweep_curves
from topiarist.report.forest import differences
from topiarist.report.lineage_figures import lineage_curves, lineage_tree
from topiarist.report.pareto import pareto_figure
from topiarist.report.topology import topology_over_time

__all__ = [
    "differences",
    "learning_curves",
    "lineage_curves",
    "lineage_tree",
    "pareto_figure",
    "sweep_curves",
    "topology_over_time",
]
