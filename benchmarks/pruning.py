"""Structured pruning at 2, 4, 8 and 16 times fewer parameters: ours and torch-pruning's, after 0, 1 and 5 epochs.

    python -m benchmarks.pruning [digits lenet300 residual vit] [--seeds N] [--cache FOLDER] [--out results.json]

Networks are trained here, once; weights are kept in the cache. Each is cut by ours (widths allotted freely, refit,
settling; no labels) and by torch-pruning with four importances (L1, L2, Taylor, random), the same share of each layer
or one ranking of all; its ratio is searched for the same parameters, and batch norms are measured anew. Then all are
trained with labels, by the same recipe, at half the rate of the first training; ours also with the answers of the whole
network beside them. Beside it a network of the shape that ours found, trained from scratch for as long as the whole one
was. Calibration samples are training samples without labels; Taylor gets the labels too. No choice ever sees the test
samples, and nothing here was tuned on them. Rows are written as they come, and the same command resumes; `--table`
prints the tables of a file again. Some hours on one core for everything; `digits` takes minutes.
"""

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.compensation import CACHE
from benchmarks.paging.writing import RESULTS, stamp
from benchmarks.pruners.measuring import measure_task
from benchmarks.pruners.problems import CONTESTS
from benchmarks.pruners.records import PrunedRow, PruningResults
from benchmarks.pruners.tables import write_markdown
from topiarist.files import write_atomically


def main() -> None:
    """Measure what is asked for and not measured yet, and print the tables."""
    asked = _arguments()
    run = _Run(asked.out, [] if asked.table else asked.problems or list(CONTESTS))
    if not asked.table:
        warnings.simplefilter("ignore")  # torch-pruning's
        torch.set_num_threads(1)
        for name in asked.problems or CONTESTS:
            for seed in range(asked.seeds or CONTESTS[name].seeds):
                task = CONTESTS[name].make(asked.cache.expanduser(), seed)
                measure_task(task, {row.key for row in run.results.rows}, run.add)
    print(write_markdown(run.results))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", choices=[*CONTESTS, []], help=f"some of {', '.join(CONTESTS)}")
    parser.add_argument("--seeds", type=int, help="networks of each kind")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder for data and trained weights")
    parser.add_argument("--out", type=Path, default=RESULTS / "pruning.json")
    parser.add_argument("--table", action="store_true", help="print the tables of --out and measure nothing")
    return parser.parse_args()


class _Run:
    """The results so far, in a file; of those of other versions, what is asked for is measured anew."""

    def __init__(self, out: Path, asked: Sequence[str]) -> None:
        self.out = out
        now = stamp("python -m benchmarks.pruning", ["torch-pruning"])
        self.results = PruningResults(**now)
        if out.exists():
            known = PruningResults.model_validate_json(out.read_text())
            same = known.packages == now["packages"]
            rows = tuple(row for row in known.rows if same or row.problem not in asked)
            now = stamp("python -m benchmarks.pruning", ["torch-pruning"], known)
            self.results = PruningResults(**now, rows=rows)

    def add(self, row: PrunedRow) -> None:
        told = row.reason[:100] if row.accuracy is None else f"{row.accuracy:.2f} of {row.dense_accuracy:.2f}"
        print(f"{row.problem} {row.seed} {row.ratio:2} × {row.pruner:36} {row.epochs:2} {told}", file=sys.stderr)
        self.results = self.results.model_copy(update={"rows": (*self.results.rows, row)})
        write_atomically(self.out, self.results.model_dump_json(indent=1).encode())


if __name__ == "__main__":
    main()
