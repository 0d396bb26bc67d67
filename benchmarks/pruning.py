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
from datetime import date
from importlib.metadata import version
from pathlib import Path

import torch

from benchmarks.compensation import CACHE, processor_name
from benchmarks.pruners.measuring import measure_task
from benchmarks.pruners.problems import CONTESTS
from benchmarks.pruners.records import PrunedRow, PruningResults
from benchmarks.pruners.tables import write_markdown
from topiarist.files import write_atomically

PACKAGES = ("topiarist", "torch", "torch-pruning")


def main() -> None:
    """Measure what is asked for and not measured yet, and print the tables."""
    asked = _arguments()
    run = _Run(asked.out)
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
    parser.add_argument("--out", type=Path, default=Path("pruning.json"))
    parser.add_argument("--table", action="store_true", help="print the tables of --out and measure nothing")
    return parser.parse_args()


class _Run:
    """The results so far, in a file; those of other versions are not added to."""

    def __init__(self, out: Path) -> None:
        packages = {name: version(name) for name in PACKAGES}
        self.out = out
        self.results = PruningResults(date=date.today().isoformat(), processor=processor_name(), packages=packages)
        if out.exists():
            known = PruningResults.model_validate_json(out.read_text())
            if known.packages != packages:
                raise SystemExit(f"{out} was measured with other versions: move it away, or name another --out")
            self.results = known

    def add(self, row: PrunedRow) -> None:
        told = row.reason[:100] if row.accuracy is None else f"{row.accuracy:.2f} of {row.dense_accuracy:.2f}"
        print(f"{row.problem} {row.seed} {row.ratio:2} × {row.pruner:36} {row.epochs:2} {told}", file=sys.stderr)
        self.results = self.results.model_copy(update={"rows": (*self.results.rows, row)})
        write_atomically(self.out, self.results.model_dump_json(indent=1).encode())


if __name__ == "__main__":
    main()
