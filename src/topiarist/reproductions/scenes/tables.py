"""The tables of the scenes, with the paper's numbers beside ours, and how a page shows them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, replace
from typing import Any

import numpy
import pandas

from topiarist.evolution.pareto import knee, non_dominated
from topiarist.report import Point, Table
from topiarist.reproductions.scenes import paper
from topiarist.reproductions.scenes.evaluation import FEW_BITS
from topiarist.reproductions.scenes.study import TableRow
from topiarist.reproductions.shown import ResultRow, ShownRow, in_parts, with_sd
from topiarist.statistics import StatisticalResult, friedman_two_factors, rank_sum
from topiarist.study.results import Results

Frame = pandas.DataFrame
MODELS: Mapping[tuple[str, bool], tuple[str, int | None]] = {  # network, mixed: name, number in the paper
    ("V", False): ("V(2,2,3,3)", 1),
    ("I", False): ("I(2,1,2)", 2),
    ("E", False): ("ensemble", 3),
    ("V", True): ("V(2,2,3,3), mixed", None),
    ("I", True): ("I(2,1,2), mixed", None),
    ("E", True): ("ensemble, mixed", 4),
}
ACCURACIES = ("micro", "macro")
OF_PAPER = "paper (its own recordings)"
PAPER_MICRO, PAPER_MACRO = f"{OF_PAPER}: micro", f"{OF_PAPER}: macro"
PAPER_NONZERO, PAPER_KB = "paper (48 × 467): non-zero", "paper (48 × 467): KB"
PAPER_MODEL = (PAPER_MICRO, f"{PAPER_MICRO} sd", PAPER_MACRO, f"{PAPER_MACRO} sd", PAPER_NONZERO, PAPER_KB)
SIZES = ("non-zero", "paper's KB", "KB, 32 bits", "KB, 16 bits", f"KB, {FEW_BITS} bits")
PRICE_POINTS = 1.0  # of macro accuracy, for a file of twice the size


def models_table(networks: Frame) -> Frame:
    """Summarise the models, unpruned and pruned; p of Wilcoxon's rank-sum test between the two."""
    rows = []
    for (network, mixed), (name, number) in MODELS.items():
        whole, sparse = (select(networks, network, mixed, pruned) for pruned in (False, True))
        for pruned, some, beside in (("no", whole, sparse[:0]), ("yes", sparse, whole)):
            if len(some):
                known = paper.TABLE_3.get((number or 0, pruned == "yes"))
                p = paper.TABLE_3_P[number] if pruned == "yes" and number is not None else (None, None)
                rows.append({"model": name, "pruned": pruned, **_summary(some, beside, known, p)})
    return Frame(rows)


def depths_table(depths: Frame) -> Frame:
    """Summarise the networks of each depth; p of the rank-sum test against the one that is the paper's best."""
    rows = []
    for name, known in paper.TABLE_4.items():
        some, best = depths[depths["network"] == name], depths[depths["network"] == paper.BEST_DEPTH[name[0]]]
        if len(some):
            other = name not in paper.BEST_DEPTH.values()
            p = (paper.TABLE_4_P,) * 2 if other else (None, None)
            rows.append({"network": name, **_summary(some, best if other else best[:0], known, p)})
    return Frame(rows)


def select(networks: Frame, network: str, mixed: bool, pruned: bool) -> Frame:
    """Return the networks of one model."""
    kind = ("pruned" if pruned else "unpruned") + (", mixed" if mixed else "")
    return networks[(networks["network"] == network) & (networks["kind"] == kind)]


def _summary(some: Frame, beside: Frame, known: paper.PublishedModel | None, p: Sequence[object]) -> dict[str, object]:
    """Return means over networks, p of the test against others, where there are any, and what the paper has."""
    micro, macro = some["micro"], some["macro"]
    tests = {name: rank_sum(some[name].tolist(), beside[name].tolist()).p for name in ACCURACIES if len(beside)}
    published = (None,) * len(PAPER_MODEL) if known is None else astuple(known)
    return {
        "runs": len(some),
        **{"micro": micro.mean(), "micro sd": micro.std(), "macro": macro.mean(), "macro sd": macro.std()},
        **{name: some[name].mean() for name in ("log loss", *SIZES, f"macro, {FEW_BITS} bits")},
        **{f"p, {name}": tests.get(name) for name in ACCURACIES},
        "joint": joint_score(macro.mean(), some["KB, 32 bits"].mean()),
        **dict(zip(PAPER_MODEL, published, strict=True)),
        **{f"{OF_PAPER}: p, {name}": value for name, value in zip(ACCURACIES, p, strict=True)},
    }


def joint_score(macro: float, kilobytes: float) -> float:
    """Return one measure of accuracy and size: points of macro accuracy, less one for each doubling beyond the budget.

    Below the budget a point is added for each halving: of two networks with the same measure, the larger one is better
    by a point for each time that it is twice as large.
    """
    return 100 * macro - PRICE_POINTS * math.log2(kilobytes / paper.BUDGET_KB)


def macro_table(rows: Sequence[TableRow], results: Results, known: Mapping[Any, paper.Figure]) -> Frame:
    """Return macro accuracies of Table 1 or 2, mean and spread over runs and folds, with the paper's."""
    found = []
    for row in rows:
        macros = pandas.Series(_macros(results, row), dtype=float)
        mean, sd = known.get(tuple(row.by.values()), (None, None))
        ours = {"runs": len(macros), "macro": macros.mean(), "macro sd": macros.std()}
        found.append({**row.by, **ours, PAPER_MACRO: mean, f"{PAPER_MACRO} sd": sd})
    return Frame(found)


def mixing_tests(rows: Sequence[TableRow], results: Results) -> tuple[StatisticalResult, StatisticalResult] | None:
    """Return Friedman's tests of pieces and class; None where one of them has one value, or runs are missing."""
    values = [_macros(results, row) for row in rows]
    shape = [len({row.by[factor] for row in rows}) for factor in ("pieces", "class")]
    complete = min(shape) > 1 and bool(values[0]) and len({len(found) for found in values}) == 1
    return friedman_two_factors(numpy.array(values).reshape(*shape, -1)) if complete else None


def _macros(results: Results, row: TableRow) -> list[float]:
    found: list[float] = results.done[results.done["configuration"] == row.name]["macro_accuracy"].tolist()
    return found


def reported() -> Frame:
    """Return what the paper reports of recordings and a system that are not run here."""
    names = {"macro": PAPER_MACRO, "macro_sd": f"{PAPER_MACRO} sd", "log_loss": f"{OF_PAPER}: log loss"}
    names |= {"nonzero": f"{OF_PAPER}: non-zero", "kilobytes": f"{OF_PAPER}: KB"}
    return Frame(map(asdict, paper.REPORTED)).rename(columns=names)


def front_points(table: Frame) -> list[Point]:
    """Return macro accuracy against KB on disk, of packed files of 32 and of few bits, as points of a Pareto front."""
    points = []
    for row in table.to_dict("records"):
        name = f"{row['model']}, {'pruned' if row['pruned'] == 'yes' else 'unpruned'}"
        score, spread = 100 * row["macro"], 100 * row["macro sd"]
        points.append(Point(name=name, size=row["KB, 32 bits"], score=score, spread=spread))
        if row["pruned"] == "yes":
            size, score = row[f"KB, {FEW_BITS} bits"], 100 * row[f"macro, {FEW_BITS} bits"]
            points.append(Point(name=f"{name}, {FEW_BITS} bits", size=size, score=score))
    costs = numpy.array([[point.size, -point.score] for point in points])
    on_front, bend = non_dominated(costs), knee(costs)
    return [replace(p, front=bool(on_front[number]), knee=number == bend) for number, p in enumerate(points)]


def shown(name: str, table: Frame) -> tuple[Table, ...]:
    """Return a table as the page shows it, by its name: in parts where it has many columns."""
    show = {"table3": _shown_model, "table4": _shown_model, "reported": _shown_reported}.get(name, _shown_figure)
    return in_parts(table.to_dict("records"), show)


def _shown_model(row: ResultRow) -> dict[str, list[ShownRow]]:
    """Return accuracies and sizes of a row of Table 3 or 4; KB as the paper counts them with one decimal, as there."""
    model = {name: row[name] for name in ("model", "network", "pruned") if name in row}
    both = {
        name: {"networks": row["runs"], name: with_sd(row, name), "p": row[f"p, {name}"], OF_PAPER: _with_p(row, name)}
        for name in ACCURACIES
    }
    more = {name: row[name] for name in ("log loss", f"macro, {FEW_BITS} bits")}
    counted = {name: row[name] for name in ("non-zero", "paper's KB", PAPER_NONZERO, PAPER_KB)}
    for name in ("paper's KB", PAPER_KB):
        counted[name] = None if pandas.isna(row[name]) else f"{row[name]:,.1f}"
    disk = {name: row[name] for name in (*SIZES[2:], "joint")}
    return {
        "Macro accuracy": [model | both["macro"] | more],
        "Micro accuracy": [model | both["micro"]],
        "Size as the paper counts it": [model | counted],
        "Size on disk": [model | disk],
    }


def _with_p(row: ResultRow, name: str) -> str | None:
    """Return the paper's "0.8797±0.0080, p = 0.0155", or "0.8624±0.0019, p < 0.001", as far as there is one."""
    figure, p = with_sd(row, f"{OF_PAPER}: {name}"), row[f"{OF_PAPER}: p, {name}"]
    if figure is None or pandas.isna(p):
        return figure
    return f"{figure}, p {p}" if isinstance(p, str) else f"{figure}, p = {p:.4f}"


def _shown_figure(row: ResultRow) -> dict[str, list[ShownRow]]:
    own = {name: value for name, value in row.items() if "macro" not in name}
    return {"Macro accuracy": [{**own, "macro": with_sd(row, "macro"), OF_PAPER: with_sd(row, PAPER_MACRO)}]}


def _shown_reported(row: ResultRow) -> dict[str, list[ShownRow]]:
    own = {"system": row["system"], "recordings": row["recordings"], OF_PAPER: with_sd(row, PAPER_MACRO, 3)}
    more = {name: row[f"{OF_PAPER}: {name}"] for name in ("log loss", "non-zero", "KB")}
    caption = "The paper's own figures of the challenge, macro accuracy: nothing is run for them here"
    return {caption: [own | more]}
