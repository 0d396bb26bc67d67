"""Reports: figures, tables and self-contained pages.

The names are loaded when they are first used: importing the package imports neither matplotlib nor pandas nor jinja2.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topiarist.report.curves import learning_curves, sweep_curves
    from topiarist.report.forest import Difference, differences
    from topiarist.report.lineage import lineage_curves, lineage_tree, topology_over_time
    from topiarist.report.page import Section, Table, render_page, table_of
    from topiarist.report.pareto import Point, pareto_figure
    from topiarist.report.rightsizing import rightsizing_page
    from topiarist.report.tables import TableForm, format_table

_HOMES = {
    "curves": ("learning_curves", "sweep_curves"),
    "forest": ("Difference", "differences"),
    "lineage": ("lineage_curves", "lineage_tree", "topology_over_time"),
    "page": ("Section", "Table", "render_page", "table_of"),
    "pareto": ("Point", "pareto_figure"),
    "rightsizing": ("rightsizing_page",),
    "tables": ("TableForm", "format_table"),
}

__all__ = [
    "Difference",
    "Point",
    "Section",
    "Table",
    "TableForm",
    "differences",
    "format_table",
    "learning_curves",
    "lineage_curves",
    "lineage_tree",
    "pareto_figure",
    "render_page",
    "rightsizing_page",
    "sweep_curves",
    "table_of",
    "topology_over_time",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"topiarist.report.{home}"), name)
    raise AttributeError(f"module 'topiarist.report' has no attribute {name!r}")
