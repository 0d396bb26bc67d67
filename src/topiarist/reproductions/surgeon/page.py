"""The page of the Surgeon: the paper's claims, Table 3 and Figure 2 with its numbers beside ours, and evolutions."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas

from topiarist.report import Section, render_page, table_of
from topiarist.reproductions.claims import Claim as Verdict
from topiarist.reproductions.findings import drawn_of
from topiarist.reproductions.surgeon.claims import claims_table
from topiarist.reproductions.surgeon.columns import (
    accuracy_columns,
    cost_columns,
    gain_columns,
    paper_columns,
    signed,
    size_columns,
    time_columns,
)
from topiarist.reproductions.surgeon.figures import FIGURES, WORDS, average_stem, stem_of
from topiarist.reproductions.surgeon.study import TOPOLOGIES
from topiarist.reproductions.surgeon.tables import Cell, decisions_table, typical

Frame = pandas.DataFrame
NAMES = {"published": "The Surgeon as published", "ours": "Our Surgeon"}
DECISIONS = "Decisions, and why; the accuracy is what a network came to before the next one"
PLAINLY = "SGD, Adam and final topology are plain training"
FEW = 3  # comparisons that are named one by one


@dataclass(frozen=True, kw_only=True)
class Found:
    """Everything that the page shows."""

    cells: Sequence[Cell]
    table: Frame
    runs: Frame
    claims: Sequence[Verdict]
    stand_in: bool
    notes: tuple[str, ...]


def summary_of(found: Found) -> str:
    """Say in a few sentences what came out."""
    if found.table.empty:
        return "No comparison could be made: no pair of runs ended well. The reasons are below."
    data = "These figures are from scikit-learn's digits, a stand-in for the paper's data. " if found.stand_in else ""
    said = [said_of(NAMES[str(name)], rows) for name, rows in found.table.groupby("setting", sort=False)]
    return data + " ".join([*said, *said_of_claims(found.claims)])


def said_of_claims(claims: Sequence[Verdict]) -> list[str]:
    """Count the claims of the paper by their verdicts."""
    counts = Counter(each.verdict for each in claims)
    listed = ", ".join(f"{number} {verdict}" for verdict, number in counts.items())
    return [f"Claims of the paper: {listed}."] if claims else []


def said_of(name: str, rows: Frame) -> str:
    """Say what one setting came to: each comparison where there are few, the range where there are many."""
    known = rows[rows["at chance"] == 0]
    left_out = len(rows) - len(known)
    chance = f" Baselines at chance: {left_out} of {len(rows)}, not compared." if left_out else ""
    if known.empty:
        return f"{name}: no comparison, as every baseline is at chance."
    cost = known["work ratio to final"].astype(float).mean()
    took = "" if math.isnan(cost) else f", at {cost:.1f} × the work of plain training at the final topology"
    points = known["gain, test"].astype(float)
    if len(known) > FEW:
        return (
            f"{name} changes test accuracy by {signed(points.mean(), 1)} points on average, over {len(known)}"
            f" comparisons with the better of SGD and Adam ({signed(points.min(), 1)} to {signed(points.max(), 1)})"
            f"{took}.{chance}"
        )
    listed = ", ".join(
        f"{row[row['baseline'] + ', test']:.3f} → {row['surgeon, test']:.3f} ({row['data']}, {row['topology']})"
        for row in known.to_dict("records")
    )
    return f"{name} against the better of SGD and Adam, on the test part: {listed}{took}.{chance}"


def sections_of(found: Found, figures: Mapping[str, str]) -> list[Section]:
    """Put tables and figures in order, each with what it says."""
    sections = [claims_section(found.claims)] if found.claims else []
    for name in dict.fromkeys(cell.data.name for cell in found.cells):
        cells = [cell for cell in found.cells if cell.data.name == name]
        averages = drawn_of(figures, *dict.fromkeys(average_stem(cell) for cell in cells))
        sections.append(comparison_of(name, found.table[found.table["data"] == name], averages))
        sections += [
            evolution_of(cell, drawn_of(figures, *(f"{stem_of(cell)}-{figure}" for figure in FIGURES)))
            for cell in cells
        ]
    return sections


def claims_section(claims: Sequence[Verdict]) -> Section:
    """Return the claims of the paper with their verdicts."""
    return Section(
        title="What the paper claims, and what came out",
        text="By the published setting: pixels in [0, 1], plain training with SGD as the baseline, accuracy on the part"
        " by which the Surgeon chooses, as in the paper. Intervals are of 95 %, over runs. A number is reproduced where"
        " it lies within an interval that is narrow enough to say something; only all samples of a data set and 100"
        " epochs can test it. What an interval leaves open is not testable either.",
        tables=(table_of(claims_table(claims), "Claims"),),
    )


def comparison_of(name: str, rows: Frame, figures: tuple[str, ...]) -> Section:
    """Return the section of a data set."""
    known = bool(rows["paper, baseline"].notna().any())
    beside = (
        "The paper reports the part by which it chooses."
        if known
        else "These data are not in the paper, and are compared with no row of it: not testable on this data."
    )
    return Section(
        title=f"Table 3: {name}",
        text="Means ± standard deviations over runs; gains in points with 95 % intervals over runs. Plain training has"
        " the schedule, epochs, samples and first weights of the Surgeon beside it, with SGD and with Adam; the better"
        " by the validation part is the baseline. Plain training at the final topology is that of the Surgeon's last"
        " network, from new weights, with the Surgeon's optimizer. Inputs lie in [0, 1] as published, and are z-scores"
        " with ours. The Surgeon chooses by the validation part, so that its figure there flatters it; no decision"
        f" ever saw the test part. {beside}\n\nWork is samples trained on times multiply-accumulates of a forward pass,"
        " over all networks that were trained, candidates included. Seconds of plain training include a look at the"
        " validation part after every epoch.",
        figures=figures,
        tables=(
            table_of(accuracy_columns(rows), f"Accuracy on the test part; {PLAINLY}"),
            table_of(gain_columns(rows), "What the Surgeon gains on the test part"),
            table_of(paper_columns(rows), "Table 3: accuracy on the part by which the Surgeon chooses"),
            table_of(size_columns(rows), "Parameters of the Surgeon's networks"),
            table_of(cost_columns(rows), "Work in 10⁹ sample·MACs, and how many times that of plain training"),
            table_of(time_columns(rows), "Seconds of training, and how many times those of plain training"),
        ),
    )


def evolution_of(cell: Cell, figures: tuple[str, ...]) -> Section:
    """Return the section of one evolution."""
    record = typical(cell)["surgeon"]
    sizes = "-".join(map(str, TOPOLOGIES[cell.topology]))
    decisions = decisions_table(record["lineage"])
    return Section(
        title=f"An evolution from {cell.topology}, {WORDS[cell.setting]}: {cell.data.name}",
        text=f"{record['data']}, seed {record['seed']}, of median test accuracy; {sizes} hidden units at the start,"
        f" {record['parameters_before']:,} → {record['parameters']:,} parameters, test accuracy"
        f" {record['test_accuracy']:.3f}.{'' if len(decisions) else ' No decision was made.'}",
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
