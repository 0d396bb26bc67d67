"""The Surgeon, as published and ours, beside the better of plain SGD and Adam and beside plain training of its result.

4,000 training samples, 20 epochs, 3 seeds, from small, medium and large. Work is samples trained on times the
multiply-accumulates of a forward pass, over all networks. `python -m benchmarks.surgeon [--out OUT] IMAGES…`, each what
`load_data` reads, or NAME=PATH; it resumes where it was interrupted, and leaves the page of `reproduce surgeon` in OUT.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.paging.records import Figure, Grid, Role, Sheet
from benchmarks.paging.writing import stamp, write_results
from topiarist.reproductions.surgeon.options import SurgeonScope
from topiarist.reproductions.surgeon.reproduce import reproduce_surgeon

SCOPE = SurgeonScope(seeds=3, epochs=20, samples=4000)
COLUMNS = "{:14}{:8}{:11}{:>18}{:>18}{:>18}{:>12}{:>9}{:>9}"


def main() -> None:
    """Run what is left to do, and print one row per data set, topology and setting."""
    parser = argparse.ArgumentParser(description="Compare the Surgeon with plain training.")
    parser.add_argument("images", nargs="+", metavar="IMAGES")
    parser.add_argument("--out", type=Path, default=Path("surgeon-benchmark"))
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    began = time.perf_counter()
    found = reproduce_surgeon(given.out, data=given.images, scope=SCOPE, workers=given.workers)
    print(
        "accuracy on the test part; work of the Surgeon as a multiple of plain training's, at the start and at the end"
    )
    heads = ("data", "start", "setting", "plain", "plain, final", "Surgeon", "parameters", "work", "final")
    print(COLUMNS.format(*heads))
    for row in found["rows"]:
        print(line_of(row))
    print(f"{time.perf_counter() - began:.0f} s; page: {found['page']}")
    print(write_results("surgeon", sheet_of(found["rows"])))


def sheet_of(rows: Sequence[Mapping[str, Any]]) -> Sheet:
    """Return the comparisons as a table, and as figures."""
    lines, figures = [], []
    for row in rows:
        case = f"{row['data']}, {row['topology']}, {row['setting']}"
        kinds: tuple[tuple[str, str, Role], ...] = (
            (row["baseline"], "plain", "rival"),
            ("final", "plain, final size", "rival"),
            ("surgeon", "Surgeon", "ours"),
        )
        for kind, name, role in kinds:
            mean, spread = 100 * row[f"{kind}, test"], row[f"{kind}, test, sd"]
            figures.append(
                Figure(
                    case=case,
                    contender=name,
                    measure="accuracy, %",
                    values=(mean,),
                    spread=None if spread is None else 100 * spread,
                    role=role,
                )
            )
        cells = [with_spread(row, f"{kind}, test") for kind, _, _ in kinds]
        ratios = [ratio_of(row, name) for name in ("", " to final")]
        lines.append((case, *cells, f"{row['parameters after']:,.0f}", *ratios))
    head = ("start and setting", "plain", "plain, final", "Surgeon", "parameters", "work / plain", "work / final")
    grid = Grid(head=head, rows=tuple(lines))
    return Sheet(**stamp("python -m benchmarks.surgeon IMAGES…"), grids={"starts": grid}, figures=tuple(figures))


def line_of(row: Mapping[str, Any]) -> str:
    """Write one comparison."""
    baseline = row["baseline"]
    kinds = [with_spread(row, f"{kind}, test") for kind in (baseline, "final", "surgeon")]
    kinds[0] = f"{kinds[0]} {baseline}" if not row["at chance"] else f"at chance {row['at chance']}/{row['runs']}"
    size, ratios = f"{row['parameters after']:,.0f}", [ratio_of(row, name) for name in ("", " to final")]
    return COLUMNS.format(row["data"][:13], row["topology"], row["setting"], *kinds, size, *ratios)


def with_spread(row: Mapping[str, Any], name: str) -> str:
    """Write a mean in per cent with its standard deviation."""
    spread = row[f"{name}, sd"]
    return f"{100 * row[name]:.1f}" + ("" if spread is None else f" ± {100 * spread:.1f}")


def ratio_of(row: Mapping[str, Any], end: str) -> str:
    """Write the work as a multiple, nothing where it is not known."""
    value = row[f"work ratio{end}"]
    return "–" if value is None else f"{value:.2f} ×"


if __name__ == "__main__":
    main()
