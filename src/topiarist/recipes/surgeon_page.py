"""The page of the Surgeon: Table 3 with the paper's numbers beside ours, and an evolution for each topology."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas

from topiarist.recipes.findings import drawn_of, file_stem
from topiarist.recipes.surgeon import KINDS, TOPOLOGIES
from topiarist.recipes.surgeon_runs import Record
from topiarist.recipes.surgeon_tables import decisions_table
from topiarist.report import (
    Section,
    lineage_curves,
    lineage_tree,
    render_page,
    table_of,
    topology_over_time,
)

Frame = pandas.DataFrame
WORDS = {"published": "as published", "ours": "ours"}
NAMES = {"published": "The Surgeon as published", "ours": "Our Surgeon"}
FIGURES = ("topology", "accuracy", "lineage")  # of an evolution, in the order in which they are read
DECISIONS = "Decisions, and why; the accuracy is what a network came to before the next one"
FEW = 3  # comparisons that are named one by one


@dataclass(frozen=True, kw_only=True)
class Found:
    """Everything that the page shows; evolutions are those of the first data set."""

    table: Frame
    runs: Frame
    evolutions: Sequence[Record]
    stand_in: bool
    notes: tuple[str, ...]


def figures_of(found: Found) -> dict[str, str]:
    """Draw every figure, by the name of its file."""
    return {
        f"{stem_of(record)}-{name}": svg for record in found.evolutions for name, svg in figures_of_one(record).items()
    }


def figures_of_one(record: Record) -> dict[str, str]:
    """Draw an evolution: its topologies, its accuracies unless it diverged at once, and its tree."""
    lineage, of = record["lineage"], f"{record['topology']}, {WORDS[record['setting']]}"
    drawn = {
        "topology": topology_over_time(lineage, title=f"Topology over time: {of}"),
        "lineage": lineage_tree(lineage, title=f"What was tried, and what went on: {of}"),
    }
    if any(node["points"] for node in lineage["nodes"]):
        drawn["accuracy"] = lineage_curves(lineage, title=f"Accuracy along the way: {of}")
    return drawn


def stem_of(record: Record) -> str:
    """Give the beginning of the names of an evolution's figures."""
    return file_stem(f"{record['topology']} {record['setting']}")


def summary_of(found: Found) -> str:
    """Say in a few sentences what came out."""
    if found.table.empty:
        return "No comparison could be made: no pair of runs ended well. The reasons are below."
    data = "These figures are from scikit-learn's digits, a stand-in for the paper's data. " if found.stand_in else ""
    return data + " ".join(said_of(NAMES[str(name)], rows) for name, rows in found.table.groupby("setting", sort=False))


def said_of(name: str, rows: Frame) -> str:
    """Say what one setting came to: each comparison where there are few, the range where there are many."""
    times = rows["time ratio"].astype(float).mean()
    took = "" if math.isnan(times) else f", in {times:.1f} × the time"
    if len(rows) > FEW:
        points = rows["points"]
        return (
            f"{name} changes test accuracy by {points.mean():+.1f} points on average over {len(rows)} comparisons"
            f" ({points.min():+.1f} to {points.max():+.1f}){took}."
        )
    listed = ", ".join(
        f"{row['baseline, test']:.3f} → {row['surgeon, test']:.3f} ({row['data']}, {row['topology']})"
        for row in rows.to_dict("records")
    )
    return f"{name} against plain training, on the test part: {listed}{took}."


def sections_of(found: Found, figures: Mapping[str, str]) -> list[Section]:
    """Put tables and figures in order, each with what it says."""
    sections = [comparison_of(str(name), rows) for name, rows in grouped(found.table)]
    for record in found.evolutions:
        drawn = drawn_of(figures, *(f"{stem_of(record)}-{name}" for name in FIGURES))
        sections.append(evolution_of(record, drawn))
    return sections


def grouped(table: Frame) -> Iterator[tuple[str, Frame]]:
    """Give the rows of each data set."""
    if not table.empty:
        yield from ((str(name), rows) for name, rows in table.groupby("data", sort=False))


def comparison_of(name: str, rows: Frame) -> Section:
    """Give the section of a data set."""
    known = bool(rows["paper, baseline"].notna().any())
    beside = (
        "The paper reports the part by which it chooses."
        if known
        else "These data are not in the paper, and are compared with no row of it."
    )
    return Section(
        title=f"Table 3: {name}",
        text="Means ± standard deviations over seeds. Plain training has the same optimizer, schedule, epochs, samples"
        " and first weights as the Surgeon beside it. The Surgeon chooses by the validation part, so that its figure"
        f" there flatters it; no decision ever saw the test part. {beside}",
        tables=(
            table_of(honest_columns(rows), "Accuracy on the test part"),
            table_of(chosen_columns(rows, known=known), "Accuracy on the part by which the Surgeon chooses"),
            table_of(size_columns(rows), "Parameters"),
            table_of(time_columns(rows), "Seconds of training, and how many times those of plain training"),
        ),
    )


def honest_columns(rows: Frame) -> Frame:
    """Give the columns that say how good the networks are on samples that nobody saw."""
    shown = first_columns(rows)
    for kind in KINDS:
        shown[kind] = with_spread(rows, f"{kind}, test", 3)
    shown["points"] = [f"{points:+.1f}".replace("-", "−") for points in rows["points"]]
    return shown


def chosen_columns(rows: Frame, *, known: bool) -> Frame:
    """Give the columns that say how good the networks are where the Surgeon looks, with the paper's beside."""
    shown = first_columns(rows)
    for kind in KINDS:
        shown[kind] = with_spread(rows, f"{kind}, validation", 3)
    for kind in KINDS if known else ():
        shown[f"paper, {kind}"] = with_spread(rows, f"paper, {kind}", 2)
    return shown


def size_columns(rows: Frame) -> Frame:
    """Give the columns that say how large the networks are, with the paper's beside where they are known."""
    shown = first_columns(rows)
    shown["before"], shown["after"] = rows["parameters before"], with_spread(rows, "parameters after", 0)
    shown["change, %"] = with_spread(rows, "change, %", 1, sign="+")
    if rows["paper, change, %"].notna().any():
        shown["paper, change, %"] = with_spread(rows, "paper, change, %", 1, sign="+")
    return shown


def time_columns(rows: Frame) -> Frame:
    """Give the columns that say what the networks took."""
    shown = first_columns(rows)
    for kind in KINDS:
        shown[kind] = rows[f"{kind}, s"]
    shown["time ratio"] = rows["time ratio"]
    return shown


def first_columns(rows: Frame) -> Frame:
    """Give what tells the rows of a table apart."""
    return rows[["topology", "setting", "runs"]].copy()


def with_spread(rows: Frame, name: str, places: int, *, sign: str = "") -> list[str | None]:
    """Write a column with its spread, where there is one."""
    written: list[str | None] = []
    for mean, sd in zip(rows[name].astype(float), rows[f"{name}, sd"].astype(float), strict=True):
        text = None if math.isnan(mean) else f"{mean:{sign},.{places}f}".replace("-", "−")
        written.append(text if text is None or math.isnan(sd) else f"{text} ± {sd:,.{places}f}")
    return written


def evolution_of(record: Record, figures: tuple[str, ...]) -> Section:
    """Give the section of one evolution."""
    sizes = "-".join(map(str, TOPOLOGIES[record["topology"]]))
    decisions = decisions_table(record["lineage"])
    return Section(
        title=f"An evolution from {record['topology']}, {WORDS[record['setting']]}",
        text=f"{record['data']}, seed {record['seed']}, of median test accuracy; {sizes} hidden units at the start,"
        f" {record['parameters_before']:,} → {record['parameters']:,} parameters, test accuracy"
        f" {record['test_accuracy']:.3f}.{'' if len(decisions) else ' The training is too short for a decision.'}",
        figures=figures,
        tables=(table_of(decisions, DECISIONS),) if len(decisions) else (),
    )


def page_of(found: Found, figures: Mapping[str, str], facts: Mapping[str, str]) -> str:
    """Make the page."""
    notice = Section(
        title="A stand-in",
        text="No data were given. These are the handwritten digits of scikit-learn, 8 by 8 pixels: they show that all"
        " works, and stand in no row of the paper. Point --data at the paper's sets.",
    )
    notes = Section(title="About the runs", text="\n\n".join(found.notes))
    return render_page(
        title="The Surgeon: training with topology optimisation",
        summary=summary_of(found),
        sections=[
            *([notice] if found.stand_in else []),
            *sections_of(found, figures),
            *([notes] if found.notes else []),
        ],
        footer=facts,
    )
