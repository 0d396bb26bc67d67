"""The tables of the scenes as the page shows them: a mean and its deviation in one cell, fewer columns at a time."""

from collections.abc import Mapping
from typing import Any

import pandas

from topiarist.report import Table, table_of
from topiarist.reproductions.scenes import tables as names
from topiarist.reproductions.scenes.judging import FEW_BITS

Frame = pandas.DataFrame


def with_spread(row: Mapping[Any, Any], mean: str, deviation: str, *, places: int = 4) -> str | None:
    """Return "0.8890±0.0058", without the deviation where there is one run, None where there is no value."""
    if pandas.isna(row[mean]):
        return None
    spread = "" if pandas.isna(row[deviation]) else f"±{row[deviation]:.{places}f}"
    return f"{row[mean]:.{places}f}{spread}"


def with_p(row: Mapping[Any, Any], mean: str, deviation: str, p: str) -> str | None:
    """Return "0.8797±0.0080, p = 0.0155", as far as there is one."""
    figure = with_spread(row, mean, deviation)
    return figure if figure is None or pandas.isna(row[p]) else f"{figure}, p = {row[p]:.4f}"


def with_tenths(table: Frame) -> Frame:
    """Return a table whose KB as the paper counts them have one decimal, as in the paper."""
    shown = table.astype(dict.fromkeys(("paper's KB", names.PAPER_KB), object))
    for name in ("paper's KB", names.PAPER_KB):
        shown[name] = [None if pandas.isna(size) else f"{size:,.1f}" for size in table[name]]
    return shown


def models_shown(table: Frame) -> tuple[Table, ...]:
    """Return Table 3 in three parts: macro accuracy, micro accuracy and size."""
    rows = table.to_dict("records")
    shared = [{"model": row["model"], "pruned": row["pruned"], "networks": row["runs"]} for row in rows]
    macro = [
        {
            "macro": with_spread(row, "macro", "macro sd"),
            "p": row["p, macro"],
            names.OF_PAPER: with_p(row, names.PAPER_MACRO, names.PAPER_MACRO_SD, names.PAPER_P_MACRO),
            "log loss": row["log loss"],
            f"macro, {FEW_BITS} bits": row[f"macro, {FEW_BITS} bits"],
        }
        for row in rows
    ]
    micro = [
        {
            "micro": with_spread(row, "micro", "micro sd"),
            "p": row["p, micro"],
            names.OF_PAPER: with_p(row, names.PAPER_MICRO, names.PAPER_MICRO_SD, names.PAPER_P_MICRO),
        }
        for row in rows
    ]
    columns = ("model", "pruned", "non-zero", "paper's KB", names.PAPER_NONZERO, names.PAPER_KB)
    disk = ("KB, 32 bits", "KB, 16 bits", f"KB, {FEW_BITS} bits", "joint")
    return (
        joined(shared, macro, "Macro accuracy"),
        joined(shared, micro, "Micro accuracy"),
        table_of(with_tenths(table)[list(columns)], "Size as the paper counts it"),
        table_of(table[["model", "pruned", *disk]], "Size on disk"),
    )


def depths_shown(table: Frame) -> tuple[Table, ...]:
    """Return Table 4 in two parts: accuracies, and size."""
    rows = table.to_dict("records")
    shared = [{"network": row["network"], "runs": row["runs"]} for row in rows]
    accuracies = [
        {
            "macro": with_spread(row, "macro", "macro sd"),
            "p, macro": row["p, macro"],
            names.PAPER_MACRO: with_spread(row, names.PAPER_MACRO, names.PAPER_MACRO_SD),
            "micro": with_spread(row, "micro", "micro sd"),
            "p, micro": row["p, micro"],
            names.PAPER_MICRO: with_spread(row, names.PAPER_MICRO, names.PAPER_MICRO_SD),
            f"{names.OF_PAPER}: p": row[f"{names.OF_PAPER}: p"],
        }
        for row in rows
    ]
    sizes = with_tenths(table)[["network", "non-zero", "paper's KB", names.PAPER_NONZERO, names.PAPER_KB]]
    return joined(shared, accuracies, "Accuracy"), table_of(sizes, "Size as the paper counts it")


def figures_shown(table: Frame) -> Table:
    """Return Table 1 or 2: our macro accuracy and the paper's."""
    rows = table.to_dict("records")
    own = [name for name in table.columns if name not in ("macro", "macro sd", names.PAPER_MACRO, names.PAPER_MACRO_SD)]
    shared = [{name: row[name] for name in own} for row in rows]
    shown = [
        {
            "macro": with_spread(row, "macro", "macro sd"),
            names.OF_PAPER: with_spread(row, names.PAPER_MACRO, names.PAPER_MACRO_SD),
        }
        for row in rows
    ]
    return joined(shared, shown, "Macro accuracy")


def reported_shown() -> Table:
    """Return what the paper reports and no run here can give."""
    rows = names.reported().to_dict("records")
    shared = [{"system": row["system"], "recordings": row["recordings"]} for row in rows]
    shown = [
        {
            names.OF_PAPER: with_spread(row, names.PAPER_MACRO, names.PAPER_MACRO_SD, places=3),
            **{name: row[f"{names.OF_PAPER}: {name}"] for name in ("log loss", "non-zero", "KB")},
        }
        for row in rows
    ]
    return joined(
        shared, shown, "The paper's own figures of the challenge, macro accuracy: nothing is run for them here"
    )


def joined(left: list[dict[str, Any]], right: list[dict[str, Any]], caption: str) -> Table:
    """Put the columns of two lists of rows side by side."""
    return table_of(pandas.DataFrame([{**one, **two} for one, two in zip(left, right, strict=True)]), caption)
