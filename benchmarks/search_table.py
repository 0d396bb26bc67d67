"""What `benchmarks.search` found, as rows and as a table; it needs nothing that a search needs."""

import math
import statistics
from collections.abc import Sequence

from benchmarks.paging.records import Comparison, Measurement
from topiarist.settings import Record

OURS = "Surgeon"
SEARCHERS = (OURS, "random search", "successive halving")


class SearchRow(Record):
    """What one searcher found: accuracies of its choice, its size, processor seconds, networks tried."""

    problem: str
    seed: int
    searcher: str
    test: float
    validation: float
    parameters: int
    seconds: float
    tried: int


class SearchResults(Measurement):
    """A run: when, on what, with which versions, and the rows so far."""

    rows: tuple[SearchRow, ...] = ()


def write_markdown(results: SearchResults) -> str:
    """Return a line per problem and searcher: means, and standard deviations over seeds."""
    lines = ["| data | searcher | accuracy | parameters | seconds | networks tried |", "|---|---|---:|---:|---:|---:|"]
    for problem in dict.fromkeys(row.problem for row in results.rows):
        for name in SEARCHERS:
            rows = [row for row in results.rows if (row.problem, row.searcher) == (problem, name)]
            tests = [row.test for row in rows]
            spread = f" ± {statistics.stdev(tests):.2f}" if len(tests) > 1 else ""
            size, seconds, tried = (
                statistics.mean(getattr(row, field) for row in rows) for field in ("parameters", "seconds", "tried")
            )
            lines.append(
                f"| {problem}, {len(rows)} seeds | {name} | {statistics.mean(tests):.2f}{spread} | {size:,.0f} "
                f"| {seconds:.1f} | {tried:.0f} |"
            )
    return "\n".join(lines)


def pieces(results: SearchResults) -> dict[str, str]:
    """Return the table by name."""
    return {"table": write_markdown(results)}


def compare(results: SearchResults) -> list[Comparison]:
    """Return the Surgeon beside both searches, by accuracy on the test part and by the size that was found."""
    found = []
    for problem in dict.fromkeys(row.problem for row in results.rows):
        own = _rows(results, problem, OURS)
        for name in SEARCHERS[1:]:
            other = _rows(results, problem, name)
            gaps = [one.test - two.test for one, two in zip(own, other, strict=True)]
            spread = statistics.stdev(gaps) / math.sqrt(len(gaps)) if len(gaps) > 1 else None
            ours, theirs = (statistics.mean(row.test for row in rows) for rows in (own, other))
            found.append(
                Comparison(
                    case=problem,
                    measure="accuracy, %",
                    better="more",
                    ours=ours,
                    theirs=theirs,
                    rival=name,
                    spread=spread,
                )
            )
    return found


def _rows(results: SearchResults, problem: str, searcher: str) -> Sequence[SearchRow]:
    found = [row for row in results.rows if (row.problem, row.searcher) == (problem, searcher)]
    return sorted(found, key=lambda row: row.seed)
