"""What whole blocks are worth beside units: networks of `benchmarks.compensation` without blocks, and within budgets.

    python -m benchmarks.depth [resnet20] [vit] [bert] [--measure macs] [--shares 0.75 0.5 0.35] [--cache FOLDER]

For each network, two tables: the test accuracy after one block is passed over, refitted and settled, beside settling
alone; and within a share of its multiply-accumulates (or of its `latency_ms`), the accuracy that `Distinctiveness`
keeps with units alone and with blocks beside them, with the processor's seconds. Calibration samples have no labels,
and no choice sees the test samples. Networks are trained by `benchmarks.compensation`, whose cache is used.
"""

import argparse
import warnings
from pathlib import Path

import torch

from benchmarks.compensating.experiments import EXPERIMENTS
from benchmarks.compensating.problem import Problem, timed
from topiarist import Budget, methods, resize, surgery
from topiarist.errors import TopiaristError
from topiarist.measurement.footprint import footprint
from topiarist.surgery import RemoveBlock
from topiarist.surgery.calibration import batches_for
from topiarist.surgery.settling.settling import settle

NAMES = ("resnet20", "vit", "bert")
CACHE = Path("~/.cache/topiarist/benchmarks")


def main() -> None:
    """Measure what is asked for, row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", help=f"some of {', '.join(NAMES)}; all without any")
    parser.add_argument("--measure", choices=("macs", "latency_ms"), default="macs")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.75, 0.5, 0.35])
    parser.add_argument("--no-single", dest="single", action="store_false", help="leave the first table out")
    parser.add_argument("--cache", type=Path, default=CACHE)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for name in asked.networks or NAMES:
        problem = EXPERIMENTS[name].problem(asked.cache.expanduser(), 0)
        print(f"\n{name}: {problem.accuracy(problem.model):.2f} whole", flush=True)
        if asked.single:
            measure_single_blocks(problem)
        measure_budgets(problem, asked.measure, asked.shares)


def measure_single_blocks(problem: Problem) -> None:
    """Print what is left after one block, for each of them."""
    model, x, samples = problem.model, problem.example, problem.calibration
    print("\n| block | passed over | refitted | refitted and settled | settled alone |\n|---|---:|---:|---:|---:|")
    for name in surgery.blocks(model, x).removable:
        passed = surgery.remove_block(model, x, block=name)
        refitted = surgery.remove_block(model, x, block=name, calibration=samples, settling=0)
        both = surgery.remove_block(model, x, block=name, calibration=samples)
        bare = problem.accuracy(passed)
        settle(model, passed, batches_for(samples, passed, x))
        found = (bare, problem.accuracy(refitted), problem.accuracy(both), problem.accuracy(passed))
        print(f"| {name} | " + " | ".join(f"{each:.2f}" for each in found) + " |", flush=True)


def measure_budgets(problem: Problem, measure: str, shares: list[float]) -> None:
    """Print what is left within budgets, with units alone and with blocks beside them."""
    model, x = problem.model, problem.example
    whole = getattr(footprint(model, x[:1], latency=measure == "latency_ms"), measure)
    print(f"\n| share of {measure} | options | accuracy | blocks that went | parameters | MACs | seconds |")
    print("|---|---|---:|---|---:|---:|---:|")
    for share in shares:
        limit = share * whole if measure == "latency_ms" else int(share * whole)
        for depth in (False, True):
            print(
                f"| {share:.2f} | {'units and blocks' if depth else 'units'} | {_row(problem, measure, limit, depth)}"
            )


def _row(problem: Problem, measure: str, limit: float, depth: bool) -> str:
    method, budget = methods.Distinctiveness(depth=depth), Budget.model_validate({measure: limit})
    samples, x = problem.calibration, problem.example
    try:
        outcome, seconds = timed(
            lambda: resize(problem.model, None, method, budget=budget, calibration=samples, example_input=x)
        )
    except TopiaristError as error:
        return f"{error} |"
    gone = [name for edit in outcome.plan.edits if isinstance(edit, RemoveBlock) for name in edit.blocks]
    after, kept = outcome.after, problem.accuracy(outcome.model)
    return f"{kept:.2f} | {', '.join(gone) or '-'} | {after.parameters:,} | {after.macs:,} | {seconds:.0f} |"


if __name__ == "__main__":
    main()
