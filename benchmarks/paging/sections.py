"""The sections of the page, in their order: the results that each reads, and the command that measures them anew."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import scaling, search_table, table_decays
from benchmarks.compensating import tables as compensation_tables
from benchmarks.compensating.records import Results as CompensationResults
from benchmarks.covering import tables as coverage_tables
from benchmarks.covering.records import Results as CoverageResults
from benchmarks.paging.losses import compare
from benchmarks.paging.records import Comparison, Measurement, Sheet
from benchmarks.pruners import tables as pruning_tables
from benchmarks.pruners.records import PruningResults
from benchmarks.tabulating import losing
from benchmarks.tabulating import summary as table_scores
from benchmarks.tabulating.records import TableResults


@dataclass(frozen=True)
class Section:
    """A heading, the results that are shown below it by `sections/NAME.md`, and what measures them."""

    name: str
    heading: str
    command: str
    kind: type[Measurement] = Sheet
    pieces: Callable[[Any], Mapping[str, str]] = lambda _: {}
    compare: Callable[[Any], Sequence[Comparison]] = compare

    @property
    def title(self) -> str:
        """Return the heading without its marks."""
        return self.heading.lstrip("# ")

    @property
    def anchor(self) -> str:
        """Return the name by which links find the heading."""
        kept = "".join(each for each in self.title.lower() if each.isalnum() or each in " -_")
        return kept.replace(" ", "-")


SECTIONS: tuple[Section, ...] = (
    Section(
        "pruning",
        "## Structured pruning",
        "python -m benchmarks.pruning",
        PruningResults,
        pruning_tables.pieces,
        pruning_tables.compare,
    ),
    Section("unstructured", "## Unstructured pruning", "python -m benchmarks.unstructured"),
    Section("rightsize", "## Rightsizing", "make bench-rightsize"),
    Section("finer", "### Finer sizes", "python -m benchmarks.finer"),
    Section("workers", "### More workers", "python -m benchmarks.workers FOLDER"),
    Section("residual", "### A network of your own", "make bench-rightsize IMAGES=folder"),
    Section(
        "tables",
        "## Tables",
        "python -m benchmarks.tables",
        TableResults,
        table_scores.pieces,
        losing.compare,
    ),
    Section(
        "table_decays",
        "### Weight decays for tables",
        "python -m benchmarks.table_decays",
        pieces=table_decays.pieces,
    ),
    Section("table_rows", "### Rows for tables", "python -m benchmarks.table_rows"),
    Section("table_choices", "### What was chosen for tables", "python -m benchmarks.tables"),
    Section("embeddings", "### Embeddings of categories", "python -m benchmarks.embeddings"),
    Section("stacked_training", "## Stacked training", "python -m benchmarks.stacked_training"),
    Section("estimator", "## Estimators", "python -m benchmarks.estimator"),
    Section("study", "## A study", "python -m benchmarks.study"),
    Section("refit", "## Refit", "python -m benchmarks.refit"),
    Section(
        "compensation",
        "## Compensation without labels",
        "python -m benchmarks.compensation",
        CompensationResults,
        compensation_tables.pieces,
        compensation_tables.compare,
    ),
    Section("compensation_earlier", "### Compensation, earlier runs", "python -m benchmarks.compensation"),
    Section("latency", "## Latency", "python -m benchmarks.latency"),
    Section("distinctiveness", "## Distinctiveness to a budget", "python -m benchmarks.distinctiveness"),
    Section("genetic", "## Genetic search", "python -m benchmarks.genetic"),
    Section(
        "search",
        "## The Surgeon beside searches",
        "python -m benchmarks.search",
        search_table.SearchResults,
        search_table.pieces,
        search_table.compare,
    ),
    Section("surgeon", "## The Surgeon", "make bench-surgeon IMAGES=folder"),
    Section("rescue", "### Rescue", "python -m benchmarks.surgeon_parts rescue"),
    Section("faces", "## The faces", "topiarist reproduce faces"),
    Section("scenes", "## The scenes", "make bench-scenes SOUNDS=folder"),
    Section("masked_training", "## Masks: their own speed", "python -m benchmarks.masked_training"),
    Section("log_mel", "## Log-mel: its own speed", "python -m benchmarks.log_mel"),
    Section("ensemble", "## Ensembles: their own speed", "python -m benchmarks.ensemble"),
    Section(
        "coverage",
        "## Coverage",
        "python -m benchmarks.coverage",
        CoverageResults,
        coverage_tables.pieces,
        coverage_tables.compare,
    ),
    Section("tracing_speed", "### Time of tracing", "python -m benchmarks.tracing_speed"),
    Section("surgery_speed", "## Surgery's own speed", "python -m benchmarks.surgery_speed"),
    Section("proofs", "## Proofs", "python -m benchmarks.proofs"),
    Section("honesty", "## Honesty", "python -m benchmarks.honesty"),
    Section(
        "scaling",
        "## Scaling",
        "python -m benchmarks.scaling",
        scaling.ScalingResults,
        scaling.pieces,
        lambda _: [],
    ),
    Section("cold_start", "## Cold start", "python -m benchmarks.cold_start"),
    Section("large", "## Hardening", "python -m benchmarks.large"),
    Section("memory", "### Memory of large data", "python -m benchmarks.memory"),
    Section("stress", "### Kills", "make stress"),
    Section("stress_rightsize", "### Kills of rightsizings", "make stress"),
    Section("fuzz", "### Damaged files", "make fuzz"),
    Section("files_passed", "## Files passed", "python -m benchmarks.files_passed"),
)
