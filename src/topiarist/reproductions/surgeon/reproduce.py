"""Runs the comparison of the Surgeon with plain training and writes its tables, figures and page."""

import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from topiarist.errors import TopiaristWarning
from topiarist.parallel import check_workers
from topiarist.threads import usable_cores
from topiarist.reproductions.findings import versions, write_findings
from topiarist.reproductions.surgeon.claims import claims_of, claims_table
from topiarist.reproductions.surgeon.data import Asked, DataSet, read_data_sets
from topiarist.reproductions.surgeon.figures import figures_of
from topiarist.reproductions.surgeon.page import Found, page_of, summary_of
from topiarist.reproductions.surgeon.runs import OnRun, Ran, Samples, run_all
from topiarist.reproductions.surgeon.study import FULL, PAPER_REPEATS, PAPER_SEEDS, Run, Scope, runs_of
from topiarist.reproductions.surgeon.tables import cells_of, dead_ends, runs_table, table_3

RUNS = "runs"


def reproduce_surgeon(
    out: Path,
    *,
    data: Sequence[Asked] = (),
    scope: Scope = FULL,
    seed: int = 0,
    workers: int | None = 1,
    cluster: str | None = None,
    on_run: OnRun | None = None,
) -> dict[str, Any]:
    """Reproduce the paper's Table 3 and Figure 2, and add ours; the same call after an interruption resumes.

    Without `data`, digits stand in for them. `scope` says how much is run; a larger one, in the same folder, uses what
    is there. Writes `index.html`, `tables/`, `figures/` and, in `runs/`, a record of each run. `on_run` hears how much
    is done of how much. Without a number of workers there is one a core.
    """
    count = usable_cores() if workers is None else workers
    check_workers(count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)  # the page says it
        data_sets = read_data_sets(data)
        runs = runs_of(scope, [each.name for each in data_sets], seed=seed)
        samples = Samples({each.name: each.source for each in data_sets})
        check_data(runs, samples)
        ran = run_all(runs, samples, out / RUNS, workers=count, cluster=cluster, on_run=on_run)
    found = gather(ran, scope, data_sets, stand_in=not data)
    return write_found(out, found, facts_of(runs, scope, ran), failed=len(ran.failures))


def check_data(runs: Sequence[Run], samples: Samples) -> None:
    """Refuse data that no run could work with, before the first."""
    for run in {run.data: run for run in runs}.values():
        samples.of(run)


def gather(ran: Ran, scope: Scope, data_sets: Sequence[DataSet], *, stand_in: bool) -> Found:
    """Bring what was found into tables, and judge the paper's claims by it."""
    cells = cells_of(ran.records, scope, data_sets)
    return Found(
        cells=cells,
        table=table_3(cells),
        runs=runs_table(ran.records),
        claims=claims_of(cells),
        stand_in=stand_in,
        notes=(*(note for each in data_sets for note in each.notes), *dead_end_notes(ran), *failure_notes(ran)),
    )


def dead_end_notes(ran: Ran) -> tuple[str, ...]:
    """Say in how many runs of the published Surgeon the only hidden layer was folded."""
    found = dead_ends(ran.records)
    total = sum(each["kind"] == "surgeon" and each["setting"] == "published" for each in ran.records)
    if not found:
        return ()
    listed = ", ".join(f"{each['data']}, {each['topology']}, seed {each['seed']}" for each in found)
    return (
        f"{len(found)} of {total} runs of the published Surgeon ended without a hidden layer: the last one was folded"
        " into the output, the network became linear, and as input and output layers never change, it could only be"
        f" trained on ({listed}).",
    )


def failure_notes(ran: Ran) -> tuple[str, ...]:
    """Say how many runs failed, and why."""
    if not ran.failures:
        return ()
    total = len(ran.records) + len(ran.failures)
    reasons = "; ".join(dict.fromkeys(ran.failures.values()))
    return (f"{len(ran.failures)} of {total} runs failed, and the same command tries them again: {reasons}",)


def write_found(out: Path, found: Found, facts: dict[str, str], *, failed: int) -> dict[str, Any]:
    """Write what was found, and say where."""
    figures, table = figures_of(found.cells), found.table
    tables = {"claims": claims_table(found.claims), "table3": table, "runs": found.runs}
    return {
        **write_findings(out, tables, figures, page_of(found, figures, facts)),
        "stand_in": found.stand_in,
        "summary": summary_of(found),
        "failed": failed,
        "failed_in": [],
        "notes": list(found.notes),
        "claims": [asdict(each) for each in found.claims],
        "rows": table.astype(object).where(table.notna(), None).to_dict("records"),
    }


def facts_of(runs: Sequence[Run], scope: Scope, ran: Ran) -> dict[str, str]:
    """Say how the figures came about, so that they can be made again."""
    sizes = {
        record["data"]: f"{record['data']}: {record['train_samples']:,} to train on, {record['validation_samples']:,}"
        f" to choose by, {record['test_samples']:,} to test"
        for record in ran.records
    }
    trainings = {}
    for run in runs:
        course, inputs = run.method.course, "z-scores" if run.scaling == "zscore" else "[0, 1]"
        trainings[run.setting] = (
            f"{run.setting}: {course.epochs} epochs, batch {course.batch_size}, {course.optimizer}"
            f" {course.learning_rate:g}, {course.schedule.name} rate, inputs {inputs}"
        )
    seeds = f"{scope.seeds} seed(s), from {min(run.seed for run in runs)}"
    if scope.paper_seeds:
        seeds = f"the paper's seeds {', '.join(map(str, PAPER_SEEDS))}, {PAPER_REPEATS} runs of each"
    return {
        "Data": "; ".join(sizes.values()),
        "Repeats": seeds,
        "Training": "; ".join(trainings.values()),
        "Runs": str(len(runs)),
        "Paper": "Schiessler, Aydin, Linka and Cyron, Neural network surgery: Combining training with topology"
        " optimization, 2021",
        "Versions": versions(),
    }
