"""The tables of simulated proofs, in Markdown."""

from collections.abc import Iterable, Sequence

from benchmarks.paging.records import Grid
from benchmarks.paging.tables import written
from benchmarks.proving.cells import DIFFERENCES, MOST, SimulatedProof
from benchmarks.proving.worlds import SHAPES


def grids_of(results: Sequence[SimulatedProof]) -> dict[str, Grid]:
    """Return the tables of the page: of levels, and of what lies beyond."""
    plain, beyond = _at_the_margin(results)
    return {"levels": _levels(plain), "beyond": _levels(beyond)}


def worst_of(results: Sequence[SimulatedProof]) -> str:
    """Return, in words, the cell with the most false proofs."""
    return _worst(_at_the_margin(results)[0])


def _at_the_margin(results: Sequence[SimulatedProof]) -> tuple[list[SimulatedProof], list[SimulatedProof]]:
    levels = [each for each in results if each.cell.difference == -1.0]
    plain = [each for each in levels if each.cell.design in ("one network", "five folds") and each.cell.shape in SHAPES]
    return plain, [each for each in levels if each not in plain]


def write_markdown(results: Sequence[SimulatedProof]) -> str:
    """Return the table of levels, that of what lies beyond, and that of power."""
    plain, beyond = _at_the_margin(results)
    levels = [*plain, *beyond]
    power = [each for each in results if each.cell.difference != -1.0]
    return "\n\n".join(
        [
            "False proofs in per cent, at the margin:",
            written(_levels(plain)),
            _worst(plain),
            "Beyond: networks that are nearly never wrong, and one that fails in 1 % of samples:",
            written(_levels(beyond)),
            "Proofs in per cent, by true difference in margins:",
            _power([*levels, *power]),
        ]
    )


def _levels(results: Sequence[SimulatedProof]) -> Grid:
    """Return one row per metric and one column per shape, which holds a figure for each number of samples."""
    shapes = [shape for shape in (*SHAPES, "rare") if any(each.cell.shape == shape for each in results)]
    sizes = list(dict.fromkeys(_size(each) for each in sorted(results, key=_order)))
    rows = list(dict.fromkeys(_row(each) for each in results))
    known = {(_row(each), each.cell.shape, _size(each)): each for each in results}

    def figures(row: str, shape: str) -> str:
        found = [known.get((row, shape, size)) for size in sizes]
        return " / ".join("–" if each is None else f"{100 * each.rate:.1f}" for each in found) if any(found) else ""

    heads = [f"{shape}: {' / '.join(sizes)}" for shape in shapes]
    lines = tuple((row, *(figures(row, shape) for shape in shapes)) for row in rows)
    return Grid(head=("metric", *heads), rows=lines)


def _row(result: SimulatedProof) -> str:
    design = "" if result.cell.design in ("one network", "five folds") else f", {result.cell.design}"
    return f"{result.cell.metric} of {result.cell.kind}{design}"


def _size(result: SimulatedProof) -> str:
    return f"{result.cell.samples:,}{' in folds' if result.cell.design == 'five folds' else ''}"


def _order(result: SimulatedProof) -> tuple[bool, int]:
    return result.cell.design == "five folds", result.cell.samples


def _worst(results: Sequence[SimulatedProof]) -> str:
    if not results:
        return ""
    worst = max(results, key=lambda each: each.rate)
    above = sum(each.rate > MOST for each in results)
    again = sum(each.first_rate is not None for each in results)
    return (
        f"{len(results)} cells of {worst.cell.repeats:,} comparisons; {again} above {MOST:.0%} at first and simulated"
        f" anew with ten times as many; {above} above {MOST:.0%} then."
        f" The most: {worst.rate:.1%} ({_row(worst)}, {worst.cell.shape}, {_size(worst)})."
    )


def _power(results: Sequence[SimulatedProof]) -> str:
    curves = [each for each in results if each.cell.difference != -1.0]
    rows = list(
        dict.fromkeys((each.cell.kind, each.cell.metric, each.cell.shape, each.cell.samples) for each in curves)
    )
    known = {
        (each.cell.kind, each.cell.metric, each.cell.shape, each.cell.samples, each.cell.difference): each
        for each in results
        if each.cell.design == "one network"
    }
    differences = (-1.0, *DIFFERENCES)
    lines = [
        [f"{row[1]} of {row[0]}", row[2], f"{row[3]:,}"]
        + [f"{100 * known[*row, each].rate:.0f}" if (*row, each) in known else "–" for each in differences]
        for row in rows
    ]
    return _table(["metric", "errors", "samples", *(f"{each:+g}" for each in differences)], lines)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
