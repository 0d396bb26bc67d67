"""The tables of the scenes, with the paper's numbers beside ours."""

from collections.abc import Mapping
from typing import Any

import numpy
import pandas

from topiarist.evolution.pareto import knee, non_dominated
from topiarist.recipes import scenes_paper as paper
from topiarist.recipes.scenes import DEPTHS, Plan, depth_name, table_1_name, table_2_name
from topiarist.recipes.scenes_judging import FEW_BITS, Judged, joint_score
from topiarist.study.results import Results
from topiarist.study.statistics import Finding, friedman_two_factors, rank_sum

Frame = pandas.DataFrame
MODELS: Mapping[tuple[str, bool], tuple[str, int | None]] = {  # network, mixed: name, number in the paper
    ("V", False): ("V(2,2,3,3)", 1),
    ("I", False): ("I(2,1,2)", 2),
    ("E", False): ("ensemble", 3),
    ("V", True): ("V(2,2,3,3), mixed", None),
    ("I", True): ("I(2,1,2), mixed", None),
    ("E", True): ("ensemble, mixed", 4),
}
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
            known = paper.TABLE_3.get((number or 0, pruned))
            rows.append(
                {
                    "model": name,
                    "pruned": "yes" if pruned else "no",
                    "runs": len(some),
                    "micro": some["micro"].mean(),
                    "macro": some["macro"].mean(),
                    "sd": some["macro"].std(),
                    "paper, macro": None if known is None else known[1],
                    "log loss": some["log loss"].mean(),
                    **{size: some[size].mean() for size in SIZES},
                    f"macro, {FEW_BITS} bits": some[f"macro, {FEW_BITS} bits"].mean(),
                    "p, micro": rank_sum(some["micro"].tolist(), both[False]["micro"].tolist()).p if tested else None,
                    "p, macro": rank_sum(some["macro"].tolist(), both[False]["macro"].tolist()).p if tested else None,
                    "paper, p": paper.TABLE_3_P[number][1] if pruned and number is not None else None,
                    "joint": joint_score(some["macro"].mean(), some["KB, 32 bits"].mean()),
                }
            )
    return pandas.DataFrame(rows)


def select(rows: Frame, network: str, mixed: bool, pruned: bool) -> Frame:
    """Give the runs of one model."""
    kinds = [kind for kind in rows["kind"].unique() if split_kind(kind) == (pruned, mixed)]
    return rows[(rows["network"] == network) & rows["kind"].isin(kinds)]


def front_points(table: Frame) -> list[dict[str, Any]]:
    """Give macro accuracy against KB on disk, of packed files of 32 and of few bits, as points of a Pareto front."""
    points = []
    for row in table.to_dict("records"):
        name = f"{row['model']}, {'pruned' if row['pruned'] == 'yes' else 'unpruned'}"
        points.append(
            {"name": name, "size": row["KB, 32 bits"], "score": 100 * row["macro"], "spread": 100 * row["sd"]}
        )
        if row["pruned"] == "yes":
            size, score = row[f"KB, {FEW_BITS} bits"], 100 * row[f"macro, {FEW_BITS} bits"]
            points.append({"name": f"{name}, {FEW_BITS} bits", "size": size, "score": score})
    costs = numpy.array([[point["size"], -point["score"]] for point in points])
    on_front, bend = non_dominated(costs), knee(costs)
    return [{**point, "front": bool(on_front[number]), "knee": number == bend} for number, point in enumerate(points)]


def table_1(plan: Plan, results: Results) -> Frame:
    """Give macro accuracies by mel bands and window."""
    return pandas.DataFrame(
        {
            "bands": bands,
            "window": window,
            **summary(results, table_1_name(bands, window)),
            **dict(zip(("paper", "paper, sd"), paper.TABLE_1.get((bands, window), (None, None)), strict=True)),
        }
        for bands in plan.scope.bands
        for window in plan.scope.windows
    )


def table_2(plan: Plan, results: Results) -> tuple[Frame, tuple[Finding, Finding] | None]:
    """Give macro accuracies by pieces and class of mixing, and Friedman's test of each factor."""
    rows, values = [], []
    for pieces in plan.scope.pieces:
        for within in plan.mixed_within:
            found = macros(results, table_2_name(pieces, within))
            values.append(found)
            known = paper.TABLE_2.get((pieces, within))
            figures = summary(results, table_2_name(pieces, within))
            rows.append({"pieces": pieces, "class": within, **figures, "paper": known})
    shape = len(plan.scope.pieces), len(plan.mixed_within)
    complete = len({len(found) for found in values}) == 1 and min(shape) > 1 and bool(values[0])
    tested = friedman_two_factors(numpy.array(values).reshape(*shape, -1)) if complete else None
    return pandas.DataFrame(rows), tested


def table_4(results: Results) -> Frame:
    """Give macro accuracies by depth."""
    rows = []
    for family, depths in DEPTHS.items():
        for name in (depth_name(family, blocks) for blocks in depths):
            label = f"table 4: {name}"
            sizes = results.done[results.done["configuration"] == label]["parameters"]
            rows.append(
                {
                    "network": name,
                    **summary(results, label),
                    "parameters": None if sizes.empty else int(sizes.iloc[0]),
                    "paper": paper.TABLE_4[name][0],
                    "paper, sd": paper.TABLE_4[name][1],
                }
            )
    return pandas.DataFrame(rows)


def macros(results: Results, label: str) -> list[float]:
    """Give the macro accuracies of a configuration, by run and fold."""
    found: list[float] = results.done[results.done["configuration"] == label]["macro_accuracy"].tolist()
    return found


def summary(results: Results, label: str) -> dict[str, Any]:
    """Give mean and spread of the macro accuracies of a configuration."""
    found = pandas.Series(macros(results, label), dtype=float)
    return {"runs": len(found), "macro": found.mean(), "sd": found.std()}
