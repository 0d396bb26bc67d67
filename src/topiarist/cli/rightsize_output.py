"""What `topiarist rightsize` shows: a bar on the way, the sentence and a table in the end, or what comes nearest."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from topiarist.cli.output import console, emit, print_rows


def say(text: str, *, quiet: bool) -> None:
    """Tell a person something on the way."""
    if not quiet:
        typer.echo(text, err=True)


@contextmanager
def progress(what: str) -> Iterator[Callable[[float, str], None] | None]:
    """Give something to call with the share that is done, and what is: a bar on a terminal, nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[now]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=1.0, now="")
        yield lambda share, now: bar.update(task, completed=share, now=now)


def show_record(record: Mapping[str, Any]) -> None:
    """Print the sentence, the sizes that were tried, and where everything is."""
    from rich.table import Table

    verdict, out = record["verdict"], Path(record["out"])
    typer.echo(verdict["sentence"] + "\n")
    table = Table(box=None, pad_edge=False)
    for name in ("network", "made by", "accuracy", "parameters", "KB", "MACs", "ms", "p", ""):
        table.add_column(name, justify="left" if name in ("network", "made by", "") else "right")
    tested = {rung["network"]: rung for rung in record["decision"]["rungs"]}
    for network in record["networks"]:
        rung = tested.get(network["id"])
        if rung is None and network["id"] != "baseline":
            continue
        status = "" if rung is None else "proven" if rung["proven"] else "not proven"
        table.add_row(
            network["id"],
            network["method"] or "",
            f"{100 * network['judged_accuracy']:.2f} %",
            f"{network['parameters']:,}",
            f"{network['file_kb']:.1f}",
            f"{network['macs']:,}",
            f"{network['latency_ms']:.3f}",
            "" if rung is None else f"{rung['p']:.2g}",
            f"{status}{', chosen' if network['id'] == verdict['chosen'] else ''}",
        )
    console().print(table)
    typer.echo(f"\naccuracy over {record['plan']['folds']} folds; " + "; ".join(verdict["why"]) + "\n")
    files = {"report": record["report"], "model": str(out / record["exports"]["model"])}
    if record["exports"]["onnx"] is not None:
        files["ONNX"] = str(out / record["exports"]["onnx"])
    print_rows(files)


def show_nearest(record: Mapping[str, Any], *, as_json: bool) -> None:
    """Say that nothing fits, and what comes nearest."""
    typer.echo(f"topiarist: {record['verdict']['sentence']}", err=True)
    for near in record["nearest"]:
        typer.echo(f"  {near['id']}: {near['said']}", err=True)
    if as_json:
        emit(record, as_json=True, show=print)
