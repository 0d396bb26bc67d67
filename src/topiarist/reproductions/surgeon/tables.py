"""Table 3 of the Surgeon with the paper's numbers beside ours, how a page shows it, and the tables of single runs."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from statistics import fmean

import pandas

from topiarist.evolution.lineage import Lineage
from topiarist.report import Table
from topiarist.reproductions.claims import mean_interval
from topiarist.reproductions.shown import ResultRow, ShownRow, in_parts, with_sd
from topiarist.reproductions.surgeon.comparison import Comparison, TrainedNetwork
from topiarist.reproductions.surgeon.data import DataSet, PartName
from topiarist.reproductions.surgeon.paper import RUNS, TABLE_3
from topiarist.reproductions.surgeon.study import KINDS, Kind

Frame = pandas.DataFrame
Figures = dict[str, float | None]
AT_CHANCE = "baseline at chance: no comparison"
HEADINGS: dict[Kind, str] = {"sgd": "SGD", "adam": "Adam", "surgeon": "Surgeon", "final": "final topology"}
JUDGED: tuple[PartName, ...] = ("test", "validation")


def table_3(comparisons: Sequence[Comparison]) -> Frame:
    """Compare the Surgeon with plain training of the same seeds, for each data set, topology and setting."""
    return Frame(
        {
            "data": each.data.name,
            "topology": each.topology,
            "setting": each.setting,
            "runs": len(each.seeds),
            "baseline": each.baseline,
            **_accuracies(each),
            **_gains(each, "", each.baseline),
            **_gains(each, " on final", "final"),
            "parameters before": each.parameters_before,
            **_mean_and_sd("parameters after", [run.parameters for run in each.runs("surgeon")]),
            **_mean_and_sd("change, %", each.changes),
            **_costs(each),
            **_published(each),
        }
        for each in comparisons
    )


def _accuracies(of: Comparison) -> Figures:
    found: Figures = {}
    for part, kind in product(JUDGED, KINDS):
        found |= _mean_and_sd(f"{kind}, {part}", [run.accuracy[part] for run in of.runs(kind)])
    return found | {f"{kind}, at chance": sum(of.at_chance(kind)) for kind in KINDS}


def _gains(of: Comparison, name: str, beside: Kind) -> Figures:
    """Return what the Surgeon gains on plain training, in points with an interval and relative; nothing on chance."""
    dead = sum(of.at_chance(beside))
    found: Figures = {}
    for part in JUDGED:
        gains, plain = of.gains("surgeon", beside, part), [run.accuracy[part] for run in of.runs(beside)]
        ends = (f"gain{name}, {part}", f"gain{name}, {part}, low", f"gain{name}, {part}, high")
        points: list[float | None] = [None] * 3
        if gains and not dead:
            interval = mean_interval(gains)
            known = (fmean(gains), None, None) if interval is None else (interval.value, interval.low, interval.high)
            points = [None if value is None else 100 * value for value in known]
        found |= dict(zip(ends, points, strict=True))
        level = sum(plain) / len(plain) if plain else 0.0
        found[f"relative gain{name}, {part}, %"] = points[0] / level if level and points[0] is not None else None
    return {**found, f"at chance{name}": dead}


def _costs(of: Comparison) -> Figures:
    """Return seconds and work of each kind, and how many times those of plain training the Surgeon takes."""
    found: Figures = {}
    for kind in KINDS:
        found[f"{kind}, s"] = pandas.Series([run.seconds for run in of.runs(kind)], dtype=float).mean()
        found[f"{kind}, sample MACs"] = pandas.Series([run.sample_macs for run in of.runs(kind)], dtype=float).mean()
    for name, kind in (("", of.baseline), (" to final", "final")):
        pairs = of.pairs("surgeon", kind)
        seconds, work = sum(plain.seconds for _, plain in pairs), sum(plain.sample_macs for _, plain in pairs)
        found[f"time ratio{name}"] = sum(run.seconds for run, _ in pairs) / seconds if seconds else None
        found[f"work ratio{name}"] = sum(run.sample_macs for run, _ in pairs) / work if work else None
    return found


def _mean_and_sd(name: str, values: Sequence[float]) -> Figures:
    found = pandas.Series(values, dtype=float)
    return {name: found.mean(), f"{name}, sd": found.std()}


def _published(of: Comparison) -> Figures:
    known = None if of.data.row is None else TABLE_3[of.data.row, of.topology]
    found: Figures = {}
    for column, name in (("baseline", "baseline"), ("surgeon", "surgeon"), ("change, %", "change")):
        mean, sd = (None if known is None else getattr(known, name)) or (None, None)
        found |= {f"paper, {column}": mean, f"paper, {column}, sd": sd}
    return {**found, "paper, relative gain, %": None if known is None else known.gain}


def shown_tables(table: Frame) -> tuple[Table, ...]:
    """Return Table 3 of one data set in parts that fit a page."""
    first_of_topology = ~table["topology"].duplicated()
    known = table.assign(paper=table["paper, baseline"].notna() & first_of_topology)
    return in_parts(known.to_dict("records"), _shown)


def _shown(row: ResultRow) -> dict[str, list[ShownRow]]:
    """Return what each part shows of a comparison; the paper's row stands below the first of its topology."""
    first = {name: row[name] for name in ("topology", "setting", "runs")}
    kind, baseline = row["baseline"], HEADINGS[row["baseline"]]
    gains = {
        "baseline": baseline,
        "gain on it, points": _with_interval(row, ""),
        "gain on final topology, points": _with_interval(row, " on final"),
    }
    ours = {
        "runs": str(row["runs"]),
        "baseline": f"{_with_sd(row, f'{kind}, validation', 3)} ({baseline})",
        "Surgeon": _with_sd(row, "surgeon, validation", 3),
        "relative gain, %": AT_CHANCE if row["at chance"] else signed(row["relative gain, validation, %"], 1),
        "parameters, %": _with_sd(row, "change, %", 1, sign="+"),
    }
    published = {
        "topology": row["topology"],
        "setting": "paper",
        "runs": str(RUNS),
        "baseline": _with_sd(row, "paper, baseline", 2),
        "Surgeon": _with_sd(row, "paper, surgeon", 2),
        "relative gain, %": signed(row["paper, relative gain, %"], 2),
        "parameters, %": _with_sd(row, "paper, change, %", 1, sign="+"),
    }
    sizes = {
        "before": row["parameters before"],
        "after": _with_sd(row, "parameters after", 0),
        "change, %": _with_sd(row, "change, %", 1, sign="+"),
    }
    accuracies = {HEADINGS[kind]: _accuracy(row, kind) for kind in KINDS}
    work = {HEADINGS[kind]: row[f"{kind}, sample MACs"] / 1e9 for kind in KINDS} | _ratios(row, "work ratio")
    seconds = {HEADINGS[kind]: row[f"{kind}, s"] for kind in KINDS} | _ratios(row, "time ratio")
    return {
        "Accuracy on the test part; SGD, Adam and final topology are plain training": [first | accuracies],
        "What the Surgeon gains on the test part": [first | gains],
        "Table 3: accuracy on the part by which the Surgeon chooses": [first | ours, *([published] * row["paper"])],
        "Parameters of the Surgeon's networks": [first | sizes],
        "Work in 10⁹ sample·MACs, and how many times that of plain training": [first | work],
        "Seconds, and how many times those of plain training": [first | seconds],
    }


def _accuracy(row: ResultRow, kind: Kind) -> str | None:
    """Return a mean, or that a run ended at chance."""
    dead = row[f"{kind}, at chance"]
    return f"at chance in {dead} of {row['runs']}" if dead else _with_sd(row, f"{kind}, test", 3)


def _ratios(row: ResultRow, name: str) -> dict[str, object]:
    found = {"Surgeon / baseline": row[name], "Surgeon / final": row[f"{name} to final"]}
    return {heading: None if pandas.isna(value) else f"{value:.2f} ×" for heading, value in found.items()}


def signed(value: float | None, places: int) -> str | None:
    """Return a number with its sign and a true minus, None where it is not known."""
    return None if value is None or math.isnan(value) else f"{value:+.{places}f}".replace("-", "−")


def _with_interval(row: ResultRow, name: str) -> str | None:
    """Return a gain with its interval, or that what it would be a gain on is at chance."""
    mean, low, high = (signed(row[f"gain{name}, test{end}"], 1) for end in ("", ", low", ", high"))
    dead = row[f"at chance{name}"]
    if dead:
        return f"{AT_CHANCE} ({dead} of {row['runs']} runs)"
    return mean if low is None else f"{mean} [{low}, {high}]"


def _with_sd(row: ResultRow, name: str, places: int, *, sign: str = "") -> str | None:
    return with_sd(row, name, places, ending=", sd", sign=sign)


def runs_table(networks: Sequence[TrainedNetwork], data_sets: Sequence[DataSet]) -> Frame:
    """Return one row per network, without its curve and its lineage."""
    parts = {data.name: data.parts for data in data_sets}
    rows = []
    for each in networks:
        figures = {name: value for name, value in asdict(each).items() if name not in ("accuracy", "curve", "lineage")}
        figures |= {f"{part}_accuracy": value for part, value in each.accuracy.items()}
        figures |= {f"{name}_samples": part.samples for name, part in parts[each.data].items()}
        rows.append(figures | {f"{name}_majority": parts[each.data][name].majority for name in JUDGED})
    return Frame(rows)


def decisions_table(lineage: Lineage) -> Frame:
    """List the decisions of an evolution: how many networks were tried, and the fate of each that was kept."""
    return Frame(
        {
            "epoch": round(each.epoch, 2),
            "tried": len(each.candidates),
            "kept": node.edit,
            "parameters": node.parameters,
            "accuracy": node.accuracy,
            "why": each.reason if node.reason in each.reason else f"{node.reason}; {each.reason}",
        }
        for each in lineage.decisions
        for node in (lineage.nodes[number] for number in each.kept)
    )
