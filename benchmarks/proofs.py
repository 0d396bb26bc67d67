"""Do the proofs hold their level, and how much can they prove? Simulated for every metric that has a test.

Candidates that are worse by just the margin are compared with their baseline 2,000 times: at α = 0.05, at most 6 % may
be called proven. A cell above that is simulated anew, 20,000 times, which counts: a test of level 5 % is above 6 % by
chance in 2 of 100 cells. Three shapes of errors, 60, 200 and 1,000 samples, five folds whose networks differ; beyond,
classes that are nearly never wrong, and a candidate that fails in 1 % of samples. Then power curves.

    python -m benchmarks.proofs [--out proofs.json] [--part 1/2] [--figure proofs.svg]

takes about 12 minutes of one core. Cells are written as they come, and those in the file are not simulated again.
The Markdown tables are printed at the end, or again from files with `--table proofs.json [more.json]`.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.paging.records import Sheet
from benchmarks.paging.writing import stamp, write_results
from benchmarks.proving.cells import SimulatedProof, all_cells, simulate_surely
from benchmarks.proving.figure import draw_power
from benchmarks.proving.tables import grids_of, worst_of, write_markdown
from topiarist.files import write_atomically
from topiarist.settings import Record


class ProofResults(Record):
    """All cells that were simulated."""

    cells: tuple[SimulatedProof, ...] = ()


def main() -> None:
    """Simulate what is missing, and print the tables."""
    asked = _arguments()
    results = merged(asked.table) if asked.table else run(asked.out, asked.part)
    print(write_markdown(results.cells))
    if not asked.table:
        notes = {"worst": worst_of(results.cells)}
        sheet = Sheet(**stamp("python -m benchmarks.proofs"), grids=grids_of(results.cells), notes=notes)
        print(write_results("proofs", sheet))
    if asked.figure:
        draw_power(results.cells, asked.figure)


def run(out: Path, part: str) -> ProofResults:
    """Simulate the cells of a part that are not in the file yet."""
    number, parts = (int(each) for each in part.split("/"))
    results = merged([out]) if out.exists() else ProofResults()
    known = {result.cell.key for result in results.cells}
    for place, cell in enumerate(all_cells()):
        if place // 4 % parts == number - 1 and cell.key not in known:  # cells of one world stand together
            found = simulate_surely(cell)
            results = ProofResults(cells=(*results.cells, found))
            write_atomically(out, results.model_dump_json(indent=1).encode())
            print(f"{cell.key}: {found.rate:.2%}, {found.milliseconds:.2f} ms", file=sys.stderr, flush=True)
    return results


def merged(paths: list[Path]) -> ProofResults:
    """Return the cells of several files; later ones count."""
    parts = [ProofResults.model_validate_json(path.read_text()) for path in paths]
    return ProofResults(cells=tuple({each.cell.key: each for part in parts for each in part.cells}.values()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("proofs.json"))
    parser.add_argument("--part", default="1/1", help="which of how many parts of the cells to simulate")
    parser.add_argument("--table", type=Path, nargs="+", help="print the tables of these files and simulate nothing")
    parser.add_argument("--figure", type=Path, help="draw the power curves into this file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
