"""What a command shows: a table for people, one JSON object for programs, a bar while one waits."""

import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import typer

from topiarist.errors import TopiaristError, escaped
from topiarist.files import JsonObject

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 1000  # columns: in a pipe nothing is cut off


class InterruptionError(TopiaristError):
    """The user pressed Ctrl-C; the text says how to resume."""


def say(text: str, *, err: bool = False) -> None:
    """Print a text; control characters, which names in files may hold, are written out."""
    typer.echo(escaped(text), err=err)


def say_table(text: str) -> None:
    """Print a table for programs as it is; on a terminal, control characters are written out."""
    sys.stdout.write(escaped(text) if sys.stdout.isatty() else text)


def emit(result: JsonObject, *, as_json: bool, show: Callable[[JsonObject], None]) -> None:
    """Print the result for a program or for a person."""
    if as_json:
        typer.echo(json.dumps(result))
    else:
        show(result)


def print_rows(rows: Mapping[str, str]) -> None:
    """Print names and values in two columns."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(Text(escaped(name), style="dim"), Text(escaped(value)))
    console().print(table)


def console() -> "Console":
    """Return what prints to standard output: as wide as the terminal, and as wide as need be in a pipe."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=PIPE_WIDTH, file=cast("IO[str]", Unpadded()))


class Unpadded(io.TextIOBase):
    """Standard output without the spaces at the ends of lines, which fill the last column of a table."""

    encoding = "utf-8"  # streams.py: what a stream cannot encode is written out

    def write(self, text: str) -> int:
        """Write lines without what follows their last word."""
        return sys.stdout.write("\n".join(line.rstrip(" ") for line in text.split("\n")))


def measurement_rows(measured: JsonObject) -> dict[str, str]:
    """Return a measurement in words."""
    return quality_rows(measured) | {
        "parameters": f"{measured['parameters']:,}  ({measured['nonzero']:,} not zero)",
        "size": f"{measured['memory_kb']:.1f} KB in memory, {measured['file_kb']:.1f} KB on disk",
        "MACs": f"{measured['macs']:,} per sample",
        "latency": f"{measured['latency_ms']:.3f} ms per sample, ±{measured['latency_spread_ms']:.3f}"
        f" ({measured['threads']} thread{'' if measured['threads'] == 1 else 's'})",
    }


SHARES = ("accuracy", "macro_accuracy", "exact_match")  # metrics that are shown in per cent
WORDS = {"rmse": "RMSE", "mae": "MAE", "mape": "MAPE", "r2": "R²", "roc_auc": "ROC-AUC", "f1": "F1", "brier": "Brier"}


def quality_rows(measured: JsonObject) -> dict[str, str]:
    """Return the metrics of a measurement in words, with the number of samples beside the primary one."""
    from topiarist.statistics.metrics import metrics_of

    primary = measured.get("primary", "accuracy")
    known = {primary, *(metric.name for metric in metrics_of(measured.get("kind", "classes")))}
    rows = {name: shown_metric(name, measured[name]) for name in measured if name in known}
    rows[primary] += f" of {measured['samples']} samples"
    return {metric_word(name): text for name, text in rows.items()}


def metric_word(name: str) -> str:
    """Return what a metric is called in a sentence."""
    return WORDS.get(name, name.replace("_", " "))


def shown_metric(name: str, value: float | None) -> str:
    """Return a metric as text: shares in per cent, all else in four digits."""
    if value is None:
        return "not a finite number"
    if name in SHARES:
        return f"{value:.2%}"
    return f"{value:.4g}" if name in ("rmse", "mae", "mape") else f"{value:.4f}"


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show on a terminal that something is under way."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


@contextmanager
def count_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function to call with how many are done and how many there are: a bar on a terminal, None in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task(what, total=None, visible=False)

    def show(done: int, total: int) -> None:
        bar.start()
        bar.update(task, completed=done, total=total, visible=True)
        if done >= total:
            bar.stop()

    try:
        yield show
    finally:
        bar.stop()


@contextmanager
def epoch_bar(epochs: int, what: str) -> Iterator[Callable[[int, Any], None] | None]:
    """Yield a function to call after each epoch: a bar with the time left on a terminal, None in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[figure]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=epochs, figure="")

        def show(number: int, records: Any) -> None:
            known = [record.validation_accuracy for record in records if record.validation_accuracy is not None]
            figure = f"validation {sum(known) / len(known):.1%}" if known else ""
            other = [record.validation_metric for record in records if record.validation_metric is not None]
            figure = f"validation {sum(other) / len(other):.4g}" if other else figure
            bar.update(task, completed=number, figure=figure)

        yield show


@contextmanager
def share_bar(what: str) -> Iterator[Callable[[float, str], None] | None]:
    """Yield a function to call with the share that is done and what is next: a bar on a terminal, None in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from topiarist.notebooks import progress_bar

    with progress_bar(what) as show:
        yield show


def checkpoint_beside(out: Path | None) -> Path | None:
    """Return the checkpoint of what will be written; None where nothing will be."""
    return None if out is None else out.with_name(f"{out.name}.checkpoint")


@contextmanager
def resumable_from(checkpoint: Path | None) -> Iterator[None]:
    """Print how to resume where Ctrl-C ends the block."""
    try:
        yield
    except KeyboardInterrupt:
        saved = checkpoint is not None and checkpoint.exists()
        hint = "run the same command again to resume" if saved else "nothing was written"
        raise InterruptionError(f"interrupted: {hint}") from None
