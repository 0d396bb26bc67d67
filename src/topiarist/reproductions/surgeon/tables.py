"""The tables of the Surgeon, with the paper's numbers beside ours, and the decisions of an evolution."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas

from topiarist.reproductions.surgeon.data import DataSet
from topiarist.reproductions.surgeon.paper import TABLE_3, Figure
from topiarist.reproductions.surgeon.statistics import is_at_chance, mean_interval
from topiarist.reproductions.surgeon.study import KINDS, PLAIN, Kind, Scope, Setting, Topology
from topiarist.reproductions.surgeon.training import Record

Frame = pandas.DataFrame
Part = str
AT_CHANCE = "baseline at chance: no comparison"


@dataclass(frozen=True)
class Cell:
    """The runs of one data set, topology and setting: for each seed, by kind; all but "final" are always there."""

    data: DataSet
    topology: Topology
    setting: Setting
    seeds: tuple[Mapping[str, Record], ...]

    @property
    def baseline(self) -> Kind:
        """Return the optimizer of plain training that has the better mean accuracy on the validation part."""
        return max(PLAIN, key=lambda kind: sum(self.values(kind, "validation_accuracy")))

    @property
    def with_final(self) -> tuple[Mapping[str, Record], ...]:
        """Return the seeds in which the topology that the Surgeon ended with was trained plainly."""
        return tuple(each for each in self.seeds if "final" in each)

    @property
    def changes(self) -> list[float]:
        """Return by how many per cent the Surgeon changed the number of parameters, seed by seed."""
        runs = [each["surgeon"] for each in self.seeds]
        return [100 * (each["parameters"] / each["parameters_before"] - 1) for each in runs]

    def values(self, kind: Kind, name: str) -> list[float]:
        """Return one figure of each seed that has a run of this kind."""
        return [each[kind][name] for each in self.seeds if kind in each]

    def at_chance(self, kind: Kind, part: Part = "test") -> list[bool]:
        """Return for each seed whether a run ended where answering one class would."""
        return [
            is_at_chance(
                each[kind][f"{part}_accuracy"],
                majority=each[kind][f"{part}_majority"],
                samples=each[kind][f"{part}_samples"],
            )
            for each in self.seeds
            if kind in each
        ]

    def differences(self, first: Kind, second: Kind, part: Part) -> list[float]:
        """Return by how much the first kind is more accurate than the second, seed by seed."""
        name = f"{part}_accuracy"
        return [each[first][name] - each[second][name] for each in self.seeds if {first, second} <= set(each)]


def cells_of(records: Sequence[Record], scope: Scope, data_sets: Sequence[DataSet]) -> list[Cell]:
    """Group runs; a cell has at least one seed in which plain training and the Surgeon ended well."""
    found: dict[tuple[Any, ...], dict[tuple[int, int], dict[str, Record]]] = {}
    for each in records:
        seeds = found.setdefault((each["data"], each["topology"], each["setting"]), {})
        seeds.setdefault((each["seed"], each["repeat"]), {})[each["kind"]] = each
    cells = []
    for data, topology, setting in product(data_sets, scope.topologies, scope.settings):
        known = found.get((data.name, topology, setting), {})
        whole = tuple(kinds for _, kinds in sorted(known.items()) if set(KINDS) - {"final"} <= set(kinds))
        if whole:
            cells.append(Cell(data, topology, setting, whole))
    return cells


def table_3(cells: Sequence[Cell]) -> Frame:
    """Compare the Surgeon with plain training of the same seeds, for each data set, topology and setting."""
    return Frame([row_of(cell) for cell in cells])


def row_of(cell: Cell) -> dict[str, Any]:
    """Return the row of a cell."""
    return {
        "data": cell.data.name,
        "topology": cell.topology,
        "setting": cell.setting,
        "runs": len(cell.seeds),
        "baseline": cell.baseline,
        **accuracies_of(cell),
        **gains_of(cell),
        **sizes_of(cell),
        **costs_of(cell),
        **paper_row(cell.data.row, cell.topology),
    }


def accuracies_of(cell: Cell) -> dict[str, Any]:
    """Return accuracies on the test part, and on the part that the Surgeon chooses by."""
    found: dict[str, Any] = {}
    for part, kind in product(("test", "validation"), KINDS):
        found |= mean_and_sd(f"{kind}, {part}", cell.values(kind, f"{part}_accuracy"))
    return found | {f"{kind}, at chance": sum(cell.at_chance(kind)) for kind in KINDS}


def gains_of(cell: Cell) -> dict[str, Any]:
    """Return what the Surgeon gains on the baseline and on its own last topology; nothing on one at chance."""
    found: dict[str, Any] = {}
    for name, kind in (("", cell.baseline), (" on final", "final")):
        dead = sum(cell.at_chance(kind))
        for part in ("test", "validation"):
            known = [] if dead else cell.differences("surgeon", kind, part)
            low, high = mean_interval(known) or (None, None)
            mean = sum(known) / len(known) if known else None
            points = {"": mean, ", low": low, ", high": high}
            found |= {f"gain{name}, {part}{end}": None if v is None else 100 * v for end, v in points.items()}
            plain = cell.values(kind, f"{part}_accuracy")
            relative = None if mean is None or not sum(plain) else 100 * mean / (sum(plain) / len(plain))
            found |= {f"relative gain{name}, {part}, %": relative}
        found |= {f"at chance{name}": dead}
    return found


def sizes_of(cell: Cell) -> dict[str, Any]:
    """Return parameters before and after, and the change in per cent."""
    runs = [each["surgeon"] for each in cell.seeds]
    return {
        "parameters before": runs[0]["parameters_before"],
        **mean_and_sd("parameters after", [each["parameters"] for each in runs]),
        **mean_and_sd("change, %", cell.changes),
    }


def costs_of(cell: Cell) -> dict[str, Any]:
    """Return seconds and work of each kind, and how many times those of plain training the Surgeon takes.

    Work is samples times multiply-accumulates of a forward pass, over all networks that were trained. Seconds of
    interrupted runs are not known, and are left out.
    """
    found: dict[str, Any] = {}
    for kind in KINDS:
        seconds = [value for value in cell.values(kind, "seconds") if value is not None]
        work = cell.values(kind, "sample_macs")
        found[f"{kind}, s"] = sum(seconds) / len(seconds) if seconds else None
        found[f"{kind}, sample MACs"] = sum(work) / len(work) if work else None
    for name, kind, seeds in (("", cell.baseline, cell.seeds), (" to final", "final", cell.with_final)):
        for ratio, figure in (("time ratio", "seconds"), ("work ratio", "sample_macs")):
            pairs = [(each["surgeon"][figure], each[kind][figure]) for each in seeds]
            known = [pair for pair in pairs if None not in pair]
            plain = sum(pair[1] for pair in known)
            found[f"{ratio}{name}"] = sum(pair[0] for pair in known) / plain if plain else None
    return found


def mean_and_sd(name: str, values: Sequence[float]) -> dict[str, float]:
    """Return mean and spread of values under a name."""
    found = pandas.Series(values, dtype=float)
    return {name: found.mean(), f"{name}, sd": found.std()}


def paper_row(row: str | None, topology: Topology) -> dict[str, float | None]:
    """Return what the paper reports; nothing for data that are not its own."""
    known = None if row is None else TABLE_3[row, topology]
    figures: dict[str, Figure | None] = {
        "paper, baseline": None if known is None else known.baseline,
        "paper, surgeon": None if known is None else known.surgeon,
        "paper, change, %": None if known is None else known.change,
    }
    found = {
        name: value
        for column, figure in figures.items()
        for name, value in zip((column, f"{column}, sd"), figure or (None, None), strict=True)
    }
    return {**found, "paper, relative gain, %": None if known is None else known.gain}


def runs_table(records: Sequence[Record]) -> Frame:
    """Return one row per run, without its lineage, its plan and its curve."""
    plain = [{name: value for name, value in each.items() if not isinstance(value, list | dict)} for each in records]
    return Frame(plain)


def typical(cell: Cell) -> Mapping[str, Record]:
    """Return the runs of the seed in which the Surgeon has its median test accuracy, the lower of two."""
    ranked = sorted(cell.seeds, key=lambda kinds: kinds["surgeon"]["test_accuracy"])
    return ranked[(len(ranked) - 1) // 2]


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


def dead_ends(records: Iterable[Record]) -> list[Record]:
    """Return the runs of the published Surgeon that ended with a network without a hidden layer."""
    found = []
    for each in records:
        if each["kind"] == "surgeon" and each["setting"] == "published":
            best = next((node for node in each["lineage"]["nodes"] if node["fate"] == "best"), None)
            if best is not None and each["lineage"]["nodes"][0]["widths"] and not best["widths"]:
                found.append(each)
    return found
