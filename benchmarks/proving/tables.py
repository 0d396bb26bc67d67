"""The tables of simulated proofs, in Markdown."""

from collections.abc import Iterable, Sequence

from benchmarks.proving.cells import DIFFERENCES, CellResult
from benchmarks.proving.worlds import SHAPES

MOST = 0.06  # false proofs that are acceptable where 5 % are meant


def write_markdown(results: Sequence[CellResult]) -> str:
    """Return the table of levels, that of what lies beyond, and that of power."""
    levels = [each for each in results if each.cell.difference == -1.0]
    plain = [each for each in levels if each.cell.design in ("one network", "five folds") and each.cell.shape in SHAPES]
    beyond = [each for each in levels if each not in plain]
    power = [each for each in results if each.cell.difference != -1.0]
    return "\n\n".join(
        [
            "False proofs in per cent, at the margin:",
            _levels(plain),
            _worst(plain),
            "Beyond: networks that are nearly never wrong, and one that fails in 1 % of samples:",
            _levels(beyond),
            "Proofs in per cent, by true difference in margins:",
            _power([*levels, *power]),
        ]
    )


def _levels(results: Sequence[CellResult]) -> str:
    columns = list(dict.fromkeys(_column(each) for each in sorted(results, key=_order)))
    rows = list(dict.fromkeys(_row(each) for each in results))
    known = {(_row(each), _column(each)): each for each in results}
    lines = [
        [f"{100 * known[row, name].rate:.1f}" if (row, name) in known else "–" for name in columns] for row in rows
    ]
    return _table(["metric", *columns], [[row, *line] for row, line in zip(rows, lines, strict=True)])


def _row(result: CellResult) -> str:
    design = "" if result.cell.design in ("one network", "five folds") else f", {result.cell.design}"
    return f"{result.cell.metric} of {result.cell.kind}{design}"


def _column(result: CellResult) -> str:
    folds = " in folds" if result.cell.design == "five folds" else ""
    return f"{result.cell.shape} {result.cell.samples:,}{folds}"


def _order(result: CellResult) -> tuple[int, int, bool]:
    shapes = (*SHAPES, "rare")
    return shapes.index(result.cell.shape), result.cell.samples, result.cell.design == "five folds"


def _worst(results: Sequence[CellResult]) -> str:
    if not results:
        return ""
    worst = max(results, key=lambda each: each.rate)
    above = sum(each.rate > MOST for each in results)
    return (
        f"{len(results)} cells of {worst.cell.repeats:,} comparisons; {above} above {MOST:.0%}."
        f" The most: {worst.rate:.1%} ({_row(worst)}, {_column(worst)})."
    )


def _power(results: Sequence[CellResult]) -> str:
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
