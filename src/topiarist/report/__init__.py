"""Reports: figures, tables and one self-contained page, made from plain records."""

from topiarist.report.figures import (
    differences,
    learning_curves,
    lineage_curves,
    lineage_tree,
    pareto_figure,
    sweep_curves,
    topology_over_time,
)
from topiarist.report.page import Section, Table, render_page, table_of
from topiarist.report.rightsizing import rightsizing_page
from topiarist.report.tables import TableForm, format_table
from topiarist.report.wording import from_paper

__all__ = [
    "Section",
    "Table",
    "TableForm",
    "differences",
    "format_table",
    "from_paper",
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
