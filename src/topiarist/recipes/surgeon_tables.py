"""The tables of the Surgeon, with the paper's numbers beside ours, and the decisions of an evolution."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import pandas

from topiarist.recipes.surgeon import KINDS, Scope, Setting, Topology
from topiarist.recipes.surgeon_data import DataSet
from topiarist.recipes.surgeon_paper import TABLE_3, Figure
from topiarist.recipes.surgeon_runs import Record

Frame = pandas.DataFrame


def table_3(records: Sequence[Record], scope: Scope, data_sets: Sequence[DataSet]) -> Frame:
    """Compare the Surgeon with plain training of the same seeds, for each data set, topology and setting."""
    rows = []
    for each, topology, setting in product(data_sets, scope.topologies, scope.settings):
        pairs = pairs_of(records, each.name, topology, setting)
        if pairs:
            rows.append(
                {
                    "data": each.name,
                    "topology": topology,
                    "setting": setting,
                    "runs": len(pairs),
                    **accuracies_of(pairs),
                    **sizes_of(pairs),
                    **times_of(pairs),
                    **paper_row(each.row, topology),
                }
            )
    return Frame(rows)


def pairs_of(records: Iterable[Record], data: str, topology: Topology, setting: Setting) -> list[tuple[Record, Record]]:
    """Give the baseline and the Surgeon of each seed that has both."""
    found: dict[int, dict[str, Record]] = {}
    for record in records:
        if (record["data"], record["topology"], record["setting"]) == (data, topology, setting):
            found.setdefault(record["seed"], {})[record["kind"]] = record
    return [(both["baseline"], both["surgeon"]) for _, both in sorted(found.items()) if len(both) == 2]


def accuracies_of(pairs: Sequence[tuple[Record, Record]]) -> dict[str, Any]:
    """Give accuracies on the test part, and on the part that the Surgeon chooses by."""
    found: dict[str, Any] = {}
    for part in ("test", "validation"):
        for place, kind in enumerate(KINDS):
            found |= mean_and_sd(f"{kind}, {part}", [pair[place][f"{part}_accuracy"] for pair in pairs])
    return {**found, "points": 100 * (found["surgeon, test"] - found["baseline, test"])}


def sizes_of(pairs: Sequence[tuple[Record, Record]]) -> dict[str, Any]:
    """Give parameters before and after, and the change in per cent."""
    changes = [100 * (after["parameters"] / after["parameters_before"] - 1) for _, after in pairs]
    return {
        "parameters before": pairs[0][1]["parameters_before"],
        **mean_and_sd("parameters after", [after["parameters"] for _, after in pairs]),
        **mean_and_sd("change, %", changes),
    }


def times_of(pairs: Sequence[tuple[Record, Record]]) -> dict[str, Any]:
    """Give seconds, and how many times those of plain training the Surgeon takes; interrupted runs are left out."""
    known = [pair for pair in pairs if None not in (pair[0]["seconds"], pair[1]["seconds"])]
    if not known:
        return {"baseline, s": None, "surgeon, s": None, "time ratio": None}
    plain, surgeon = (sum(pair[place]["seconds"] for pair in known) / len(known) for place in (0, 1))
    return {"baseline, s": plain, "surgeon, s": surgeon, "time ratio": surgeon / plain}


def mean_and_sd(name: str, values: Sequence[float]) -> dict[str, float]:
    """Give mean and spread of values under a name."""
    found = pandas.Series(values, dtype=float)
    return {name: found.mean(), f"{name}, sd": found.std()}


def paper_row(row: str | None, topology: Topology) -> dict[str, float | None]:
    """Give what the paper reports; nothing for data that are not its own."""
    known = None if row is None else TABLE_3[row, topology]
    figures: dict[str, Figure | None] = {
        "paper, baseline": None if known is None else known.baseline,
        "paper, surgeon": None if known is None else known.surgeon,
        "paper, change, %": None if known is None else known.change,
    }
    return {
        name: value
        for column, figure in figures.items()
        for name, value in zip((column, f"{column}, sd"), figure or (None, None), strict=True)
    }


def runs_table(records: Sequence[Record]) -> Frame:
    """Give one row a run, without its lineage."""
    return Frame([{name: value for name, value in each.items() if is_plain(value)} for each in records])


def is_plain(value: object) -> bool:
    """Say whether a value fits into a cell."""
    return not isinstance(value, list | dict)


def typical(records: Iterable[Record], data: str, topology: Topology, setting: Setting) -> Record | None:
    """Give the evolution of median test accuracy, the lower of two; None where there is none."""
    found = [surgeon for _, surgeon in pairs_of(records, data, topology, setting)]
    ranked = sorted(found, key=lambda record: (record["test_accuracy"], record["seed"]))
    return ranked[(len(ranked) - 1) // 2] if ranked else None


def decisions_table(lineage: Mapping[str, Any]) -> Frame:
    """List the decisions of an evolution: how many networks were tried, and of each that went on what became of it."""
    nodes = {node["number"]: node for node in lineage["nodes"]}
    return Frame(
        [
            {
                "epoch": round(each["epoch"], 2),
                "tried": len(each["candidates"]),
                "went on": node["edit"],
                "parameters": node["parameters"],
                "accuracy": node["accuracy"],
                "why": why(each["reason"], node["reason"]),
            }
            for each in lineage["decisions"]
            for node in (nodes[number] for number in each["kept"])
        ]
    )


def why(decided: str, proposed: str) -> str:
    """Say why a network went on: why it was proposed, and what decided, unless that says both."""
    return decided if not proposed or proposed in decided else f"{proposed}; {decided}"
