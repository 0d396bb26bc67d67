"""The tables of the scenes, with the paper's numbers beside ours."""

from collections.abc import Mapping
from dataclasses import astuple, replace
from typing import Any

import numpy
import pandas

from topiarist.evolution.pareto import knee, non_dominated
from topiarist.report import Point
from topiarist.reproductions.scenes import paper
from topiarist.reproductions.scenes.judging import FEW_BITS, Judged, joint_score
from topiarist.reproductions.scenes.study import Plan, table_1_name, table_2_name
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
OF_PAPER = "paper (its own recordings)"
PAPER_MICRO, PAPER_MICRO_SD = f"{OF_PAPER}: micro", f"{OF_PAPER}: micro sd"
PAPER_MACRO, PAPER_MACRO_SD = f"{OF_PAPER}: macro", f"{OF_PAPER}: macro sd"
PAPER_P_MICRO, PAPER_P_MACRO = f"{OF_PAPER}: p, micro", f"{OF_PAPER}: p, macro"
PAPER_NONZERO, PAPER_KB = "paper (48 × 467): non-zero", "paper (48 × 467): KB"
SIZES = ("non-zero", "paper's KB", "KB, 32 bits", "KB, 16 bits", f"KB, {FEW_BITS} bits")


def split_kind(kind: str) -> tuple[bool, bool]:
    """Say whether a kind is pruned, and whether it is mixed."""
    return kind.startswith("pruned"), kind.endswith("mixed")


def table_3(judged: Judged) -> Frame:
    """Summarise the models, unpruned and pruned; p of Wilcoxon's rank-sum test between the two."""
    rows = []
    for (network, mixed), (name, number) in MODELS.items():
        both = {pruned: select(judged.rows, network, mixed, pruned) for pruned in (False, True)}
        for pruned, some in both.items():
            if not len(some):
                continue
            tested = pruned and len(both[False]) > 0
            rows.append(
                {
                    "model": name,
                    "pruned": "yes" if pruned else "no",
                    "runs": len(some),
                    **accuracies_of(some),
                    "log loss": some["log loss"].mean(),
                    **{size: some[size].mean() for size in SIZES},
                    f"macro, {FEW_BITS} bits": some[f"macro, {FEW_BITS} bits"].mean(),
                    "p, micro": rank_sum(some["micro"].tolist(), both[False]["micro"].tolist()).p if tested else None,
                    "p, macro": rank_sum(some["macro"].tolist(), both[False]["macro"].tolist()).p if tested else None,
                    "joint": joint_score(some["macro"].mean(), some["KB, 32 bits"].mean()),
                    **published_model(paper.TABLE_3.get((number or 0, pruned))),
                    PAPER_P_MICRO: paper.TABLE_3_P[number][0] if pruned and number is not None else None,
                    PAPER_P_MACRO: paper.TABLE_3_P[number][1] if pruned and number is not None else None,
                }
            )
    return pandas.DataFrame(rows)


def accuracies_of(some: Frame) -> dict[str, Any]:
    """Return mean and standard deviation of micro and macro accuracy."""
    return {
        "micro": some["micro"].mean(),
        "micro sd": some["micro"].std(),
        "macro": some["macro"].mean(),
        "macro sd": some["macro"].std(),
    }


def published_model(known: paper.Model | None) -> dict[str, Any]:
    """Return the paper's row of a model; empty cells where it has none."""
    names = (PAPER_MICRO, PAPER_MICRO_SD, PAPER_MACRO, PAPER_MACRO_SD, PAPER_NONZERO, PAPER_KB)
    values = (None,) * len(names) if known is None else astuple(known)
    return dict(zip(names, values, strict=True))


def select(rows: Frame, network: str, mixed: bool, pruned: bool) -> Frame:
    """Give the runs of one model."""
    kinds = [kind for kind in rows["kind"].unique() if split_kind(kind) == (pruned, mixed)]
    return rows[(rows["network"] == network) & rows["kind"].isin(kinds)]


def front_points(table: Frame) -> list[Point]:
    """Return macro accuracy against KB on disk, of packed files of 32 and of few bits, as points of a Pareto front."""
    points: list[Point] = []
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


def table_1(plan: Plan, results: Results) -> Frame:
    """Return macro accuracies by mel bands and window."""
    return pandas.DataFrame(
        {
            "bands": bands,
            "window": window,
            **summary(results, table_1_name(bands, window)),
            **published_figure(paper.TABLE_1.get((bands, window))),
        }
        for bands in plan.scope.bands
        for window in plan.scope.windows
    )


def table_2(plan: Plan, results: Results) -> tuple[Frame, tuple[StatisticalResult, StatisticalResult] | None]:
    """Return macro accuracies by pieces and class of mixing, and Friedman's test of each factor."""
    rows, values = [], []
    for pieces in plan.scope.pieces:
        for within in plan.mixed_within:
            values.append(macros(results, table_2_name(pieces, within)))
            figures = summary(results, table_2_name(pieces, within))
            known = published_figure(paper.TABLE_2.get((pieces, within)))
            rows.append({"pieces": pieces, "class": within, **figures, **known})
    shape = len(plan.scope.pieces), len(plan.mixed_within)
    complete = len({len(found) for found in values}) == 1 and min(shape) > 1 and bool(values[0])
    tested = friedman_two_factors(numpy.array(values).reshape(*shape, -1)) if complete else None
    return pandas.DataFrame(rows), tested


def published_figure(known: paper.Figure | None) -> dict[str, Any]:
    """Return a macro accuracy of the paper with its standard deviation."""
    return dict(zip((PAPER_MACRO, PAPER_MACRO_SD), known or (None, None), strict=True))


def table_4(rows: Frame) -> Frame:
    """Summarise the networks of each depth; p of the rank-sum test against the one that is the paper's best."""
    found = []
    for name, known in paper.TABLE_4.items():
        some, best = rows[rows["network"] == name], rows[rows["network"] == paper.BEST_DEPTH[name[0]]]
        if not len(some):
            continue
        tested = len(best) > 0 and name != paper.BEST_DEPTH[name[0]]
        found.append(
            {
                "network": name,
                "runs": len(some),
                **accuracies_of(some),
                "non-zero": some["non-zero"].mean(),
                "paper's KB": some["paper's KB"].mean(),
                "p, micro": rank_sum(some["micro"].tolist(), best["micro"].tolist()).p if tested else None,
                "p, macro": rank_sum(some["macro"].tolist(), best["macro"].tolist()).p if tested else None,
                **published_model(known),
                f"{OF_PAPER}: p": paper.TABLE_4_P if name != paper.BEST_DEPTH[name[0]] else None,
            }
        )
    return pandas.DataFrame(found)


def reported() -> Frame:
    """Return what the paper reports of recordings and a system that are not run here."""
    return pandas.DataFrame(
        {
            "system": row.system,
            "recordings": row.recordings,
            PAPER_MACRO: row.macro,
            PAPER_MACRO_SD: row.macro_sd,
            f"{OF_PAPER}: log loss": row.log_loss,
            f"{OF_PAPER}: non-zero": row.nonzero,
            f"{OF_PAPER}: KB": row.kilobytes,
        }
        for row in paper.REPORTED
    )


def macros(results: Results, label: str) -> list[float]:
    """Give the macro accuracies of a configuration, by run and fold."""
    found: list[float] = results.done[results.done["configuration"] == label]["macro_accuracy"].tolist()
    return found


def summary(results: Results, label: str) -> dict[str, Any]:
    """Give mean and spread of the macro accuracies of a configuration."""
    found = pandas.Series(macros(results, label), dtype=float)
    return {"runs": len(found), "macro": found.mean(), "macro sd": found.std()}
