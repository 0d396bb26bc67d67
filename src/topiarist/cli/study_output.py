"""What `topiarist study` prints."""

import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from topiarist.cli.output import console, print_rows
from topiarist.errors import escaped
from topiarist.files import JsonObject

if TYPE_CHECKING:
    from topiarist.study.comparison import TestName
    from topiarist.study.engine import OnProgress
    from topiarist.study.ledger import StudyProgress
    from topiarist.study.results import Results

STOPPING = (signal.SIGINT, signal.SIGTERM)
INTERVAL = "95 % interval"
WIDE = 110


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Stop cleanly on Ctrl-C or a request to end the process; a second one changes nothing."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # a cluster that is stopped would complain at length
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True
        for number in STOPPING:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in STOPPING}
    try:
        yield
    finally:
        if not stopped:  # otherwise the process is about to end
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def study_bar(name: str) -> Iterator["OnProgress | None"]:
    """Yield a function to call when a result comes: a bar with the time left on a terminal, None in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as rich_progress
    from rich.console import Console

    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.TextColumn("{task.fields[figure]}"),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TextColumn("left:"),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(
        *columns, console=Console(stderr=True), transient=True, speed_estimate_period=3600
    ) as bar:
        task = bar.add_task(name, total=1.0, figure="starting")

        def show(progress: "StudyProgress") -> None:
            failed = f", {progress.failed} failed" if progress.failed else ""
            bar.update(task, completed=progress.share, figure=f"{progress.done}/{progress.cells} cells{failed}")

        yield show


def status_of(folder: Path) -> JsonObject:
    """Return the progress of the study in a folder, and how long the rest may take."""
    from topiarist.study.lock import is_running
    from topiarist.study.results import Results

    results = Results.read(folder)
    progress, facts = results.progress, results.facts
    running, driver = is_running(folder), facts.get("driver", {})
    computed = sum(row["seconds"] or 0.0 for row in results.rows)
    known = sum(row["cost"] for row in results.rows if row["state"] == "done")
    waiting = sum(row["cost"] for row in results.rows if row["state"] == "waiting")
    workers = driver.get("workers")
    left = computed / known * waiting / (workers if isinstance(workers, int) and workers > 0 else 1) if known else None
    return {
        "study": facts.get("declaration", {}).get("name", folder.name),
        "folder": str(folder),
        "running": running,
        "driver": driver if running else None,
        "cells": progress.cells,
        "done": progress.done,
        "failed": progress.failed,
        "waiting": progress.cells - progress.done - progress.failed,
        "share_of_work": progress.share,
        "compute_seconds": computed,
        "seconds_left": left if waiting else 0.0,
        "failures": sorted({row["reason"] or "unknown" for row in results.rows if row["state"] == "failed"}),
    }


def show_status(status: JsonObject) -> None:
    """Print the progress of a study."""
    rows = {"study": f"{status['study']} in {status['folder']}"}
    failed = f", {status['failed']} failed" if status["failed"] else ""
    rows["cells"] = f"{status['done']} of {status['cells']} done{failed} ({status['share_of_work']:.0%} of the work)"
    rows["computed"] = duration(status["compute_seconds"])
    if status["waiting"]:
        driver = status["driver"] or {}
        workers = driver.get("workers", 1)
        state = f"yes, by process {driver.get('process')} on {driver.get('machine')}, {workers} workers"
        rows["running"] = state if status["running"] else f"no: topiarist study resume {status['folder']}"
        left = status["seconds_left"]
        rows["left"] = "unknown" if left is None else f"about {duration(left)}"
    else:
        rows["results"] = f"topiarist study results {status['folder']}"
    if status["failures"]:
        rows["failed"] = "\n".join(status["failures"])
    print_rows(rows)


def duration(seconds: float) -> str:
    """Return a time in words."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, hours = round(seconds / 60), seconds / 3600
    return f"{minutes} min" if minutes < 120 else f"{hours:.1f} h"


def show_results(
    results: "Results", *, metric: str, baseline: str | None, margin: float | None, size: str, test: "TestName"
) -> None:
    """Print configurations, tests and the Pareto front, and the decision where one is asked for."""
    from rich.table import Table
    from rich.text import Text

    screen = console()
    rows = result_rows(results, metric=metric, baseline=baseline, size=size, test=test)
    if screen.width < WIDE:
        rows = [{name: cell for name, cell in row.items() if name != INTERVAL} for row in rows]
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in rows[0]:
        text = name in ("configuration", "front")
        table.add_column(name, justify="left" if text else "right", no_wrap=name != "configuration")
    for row in rows:
        table.add_row(*(Text(escaped(cell)) for cell in row.values()))
    screen.print(table)
    for note in notes_of(results, baseline=baseline, metric=metric, test=test):
        screen.print(Text(escaped(note), style="dim"))
    if margin is not None:
        screen.print(Text(escaped(decision_text(results, margin, baseline, metric, size))))


def result_rows(
    results: "Results", *, metric: str, baseline: str | None, size: str, test: "TestName"
) -> list[dict[str, str]]:
    """Return one row per configuration, as text."""
    from topiarist.report.cells import signed

    front = {row["configuration"]: row for row in results.front(metric, sizes=[size]).table.to_dict("records")}
    tests = tests_of(results, baseline=baseline, metric=metric, test=test)
    compared = {row["configuration"]: row for row in tests}
    rows = []
    for row in results.summary(metric).to_dict("records"):
        label = row["configuration"]
        against, place = compared.get(label), front[label]
        rows.append(
            {
                "configuration": label,
                metric: figure(row["mean"], row["sd"]),
                INTERVAL: "" if row["n"] < 2 else f"{row['low']:.4f} – {row['high']:.4f}",
                size: f"{row[size]:,.4g}" if row[size] % 1 else f"{row[size]:,.0f}",
                "difference": signed(against["difference"], 4) if against else "baseline" if compared else "",
                "p (Holm)": f"{against['holm_p']:.4f}" if against else "",
                "front": "knee" if place["knee"] else "front" if place["front"] else "",
            }
        )
    return rows


def tests_of(results: "Results", *, baseline: str | None, metric: str, test: "TestName") -> list[JsonObject]:
    """Return the comparisons with the baseline, where there are enough runs to compare."""
    scores = results.scores(metric)
    if len(scores) < 2 or min(map(len, scores.values())) < 2:
        return []
    return [
        {str(name): value for name, value in row.items()}
        for row in results.compare(baseline, metric, test=test).to_dict("records")
    ]


def figure(mean: float, sd: float | None) -> str:
    """Return a mean with its standard deviation."""
    return f"{mean:.4f}" if sd is None else f"{mean:.4f} ± {sd:.4f}"


def notes_of(results: "Results", *, baseline: str | None, metric: str, test: "TestName") -> list[str]:
    """Return which test was made, and what to be careful about."""
    unfinished = sum(row["state"] == "waiting" for row in results.rows)
    failed = sum(row["state"] == "failed" for row in results.rows)
    notes = [f"{unfinished} cells are not done yet"] if unfinished else []
    notes += [f"{failed} cells failed: see --format csv --table cells"] if failed else []
    tests = tests_of(results, baseline=baseline, metric=metric, test=test)
    said = dict.fromkeys(note for row in tests if row["notes"] for note in row["notes"].split("; "))
    made = [f"test: {tests[0]['test']} against the baseline, p corrected by Holm"] if tests else []
    return [*notes, *made, *said]


def decision_text(results: "Results", margin: float, baseline: str | None, metric: str, size: str) -> str:
    """Return which configuration is the smallest that is good enough."""
    decision = results.smallest(margin, baseline, metric, size=size)
    if decision.chosen == decision.baseline:
        return f"smallest: none is proven to be within {margin:g} of '{decision.baseline}'"
    verdict = next(verdict for verdict in decision.verdicts if verdict.name == decision.chosen)
    return (
        f"smallest: '{decision.chosen}' is not worse than '{decision.baseline}' by more than {margin:g}"
        f" (difference {verdict.difference:+.4f}, p = {verdict.adjusted_p:.4f})"
    )
