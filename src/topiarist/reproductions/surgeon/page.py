"""The page of the Surgeon: the paper's claims, Table 3 and Figure 2 with its numbers beside ours, and evolutions."""

import math
from collections.abc import Mapping, Sequence

import numpy
import pandas

from topiarist.report import (
    Section,
    learning_curves,
    lineage_curves,
    lineage_tree,
    render_page,
    table_of,
    topology_over_time,
)
from topiarist.report.lineage import LineageView, Place
from topiarist.reproductions.claims import Claim, claims_table, verdict_counts
from topiarist.reproductions.findings import drawn_of, file_stem
from topiarist.reproductions.surgeon.comparison import Comparison
from topiarist.reproductions.surgeon.options import TOPOLOGIES, Setting
from topiarist.reproductions.surgeon.tables import HEADINGS, decisions_table, shown_tables, signed

NAMES = {"published": "The Surgeon as published", "ours": "Our Surgeon"}
WORDS: dict[Setting, str] = {"published": "as published", "ours": "ours"}
FEW = 3  # comparisons that are named one by one


def surgeon_figures(comparisons: Sequence[Comparison]) -> dict[str, str]:
    """Draw the average accuracies of each data set (the paper's Figure 2), and a typical evolution of each comparison.

    An evolution has up to three figures (the paper's 3 to 5): its topologies, its accuracies with those of plain
    training, and its tree. Figures are returned by the names of their files.
    """
    drawn: dict[str, str] = {}
    for each in comparisons:
        alike = [one for one in comparisons if (one.data.name, one.setting) == (each.data.name, each.setting)]
        curves = _average_curves(alike)
        if any(value is not None for runs in curves.values() for run in runs for value in run):
            of = f"{each.data.name}, {WORDS[each.setting]} (Figure 2 of the paper)"
            title = f"Average accuracy over epochs: {of}"
            drawn[_average_stem(each)] = learning_curves(curves, title=title, y_label="validation accuracy")
    for each in comparisons:
        lineage, stem = each.typical["surgeon"].evolution, _stem(each)
        of = f"{each.data.name}, {each.topology}, {WORDS[each.setting]}"
        drawn[f"{stem}-topology"] = topology_over_time(lineage, title=f"Topology over time: {of}")
        if any(node.points for node in lineage.nodes):
            title = f"Accuracy along the way: {of}"
            drawn[f"{stem}-accuracy"] = lineage_curves(lineage, title=title, baselines=_plain_curves(each))
        drawn[f"{stem}-lineage"] = lineage_tree(lineage, title=f"What was tried, and what was kept: {of}")
    return drawn


def _stem(of: Comparison) -> str:
    return file_stem(f"{of.data.name} {of.topology} {of.setting}")


def _average_stem(of: Comparison) -> str:
    return file_stem(f"figure2 {of.data.name} {of.setting}")


def _average_curves(comparisons: Sequence[Comparison]) -> dict[str, list[list[float | None]]]:
    """Return validation accuracies over epochs, of the baseline and the Surgeon of each topology."""
    curves = {}
    for each in comparisons:
        plain = [at_epochs(run.curve) for run in each.runs(each.baseline)]
        curves[f"{each.topology}, plain ({HEADINGS[each.baseline]})"] = plain
        winning = [LineageView(run.evolution).winning for run in each.runs("surgeon")]
        lines = [[point for node in line for point in node.points] for line in winning]
        curves[f"{each.topology}, Surgeon"] = [at_epochs(line) for line in lines]
    return curves


def at_epochs(places: Sequence[Place]) -> list[float | None]:
    """Return the accuracy after each whole epoch from 1 on, between known ones on a straight line; None before."""
    known = dict(places)  # of several at one epoch, the last
    if not known:
        return []
    epochs = sorted(known)
    whole = numpy.arange(1, int(epochs[-1]) + 1)
    values = numpy.interp(whole, epochs, [known[epoch] for epoch in epochs])
    return [float(value) if epoch >= epochs[0] else None for epoch, value in zip(whole, values, strict=True)]


def _plain_curves(of: Comparison) -> dict[str, Sequence[Place]]:
    """Return the curves of plain training of the typical seed, at the first topology and at the last."""
    kinds = of.typical
    curves = {f"plain ({HEADINGS[of.baseline]})": kinds[of.baseline].curve}
    if "final" in kinds:
        curves["plain, final topology"] = kinds["final"].curve
    return {name: curve for name, curve in curves.items() if curve}


def surgeon_summary(table: pandas.DataFrame, claims: Sequence[Claim], *, stand_in: bool) -> str:
    """Return the results in a few sentences."""
    if table.empty:
        return "No comparison could be made: no pair of runs ended well. The reasons are below."
    data = "These figures are from scikit-learn's digits, a stand-in for the paper's data. " if stand_in else ""
    said = [_said_of(NAMES[str(name)], rows) for name, rows in table.groupby("setting", sort=False)]
    counts = verdict_counts(claims)
    listed = ", ".join(f"{number} {verdict}" for verdict, number in counts.items())
    return data + " ".join([*said, *([f"Claims of the paper: {listed}."] if claims else [])])


def _said_of(name: str, rows: pandas.DataFrame) -> str:
    """Return the result of one setting: each comparison where there are few, the range where there are many."""
    known = rows[rows["at chance"] == 0]
    if known.empty:
        return f"{name}: no comparison, as every baseline is at chance."
    left_out = len(rows) - len(known)
    chance = f" Baselines at chance: {left_out} of {len(rows)}, not compared." if left_out else ""
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


def surgeon_page(
    comparisons: Sequence[Comparison],
    table: pandas.DataFrame,
    claims: Sequence[Claim],
    figures: Mapping[str, str],
    *,
    stand_in: bool,
    notes: Sequence[str],
    facts: Mapping[str, str],
) -> str:
    """Return the page: claims, the comparisons of each data set with their evolutions, and notes."""
    sections = []
    if stand_in:
        text = (
            "No data were given. These are the handwritten digits of scikit-learn, 8 by 8 pixels: they show that all"
            " works, and stand in no row of the paper. Point --data at the paper's sets."
        )
        sections.append(Section(title="A stand-in", text=text))
    sections += [_claims_section(claims)] if claims else []
    for name in dict.fromkeys(each.data.name for each in comparisons):
        of_data = [each for each in comparisons if each.data.name == name]
        averages = drawn_of(figures, *dict.fromkeys(map(_average_stem, of_data)))
        sections.append(_data_section(name, table[table["data"] == name], averages))
        sections += [_evolution_section(each, figures) for each in of_data]
    if notes:
        sections.append(Section(title="About the runs", text="\n\n".join(notes)))
    return render_page(
        title="The Surgeon: training with topology optimisation",
        summary=surgeon_summary(table, claims, stand_in=stand_in),
        sections=sections,
        footer=facts,
    )


def _claims_section(claims: Sequence[Claim]) -> Section:
    return Section(
        title="What the paper claims, and what was found",
        text="By the published setting: pixels in [0, 1], plain training with SGD as the baseline, accuracy on the part"
        " by which the Surgeon chooses, as in the paper. Intervals are of 95 %, over runs. A number is reproduced where"
        " it lies within an interval that is narrow enough to say something; only all samples of a data set and 100"
        " epochs can test it. What an interval leaves open is not testable either.",
        tables=(claims_table(claims, paper="paper", caption="Claims"),),
    )


def _data_section(name: str, rows: pandas.DataFrame, figures: tuple[str, ...]) -> Section:
    beside = (
        "The paper reports the part by which it chooses."
        if rows["paper, baseline"].notna().any()
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
        " over all networks that were trained, candidates included. Seconds are those of a network in its study,"
        " measurement included; plain training evaluates the validation part after every epoch.",
        figures=figures,
        tables=shown_tables(rows),
    )


def _evolution_section(of: Comparison, figures: Mapping[str, str]) -> Section:
    network = of.typical["surgeon"]
    decisions = decisions_table(network.evolution)
    caption = "Decisions, and why; the accuracy is that of a network at the next decision"
    return Section(
        title=f"An evolution from {of.topology}, {WORDS[of.setting]}: {of.data.name}",
        text=f"{network.data}, seed {network.seed}, of median test accuracy;"
        f" {'-'.join(map(str, TOPOLOGIES[of.topology]))} hidden units at the start,"
        f" {of.parameters_before:,} → {network.parameters:,} parameters, test accuracy"
        f" {network.accuracy['test']:.3f}.{'' if len(decisions) else ' No decision was made.'}",
        figures=drawn_of(figures, *(f"{_stem(of)}-{name}" for name in ("topology", "accuracy", "lineage"))),
        tables=(table_of(decisions, caption),) if len(decisions) else (),
    )
