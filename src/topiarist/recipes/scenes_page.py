"""The page of the scenes: the paper's tables with its numbers beside ours, the Pareto front, and what ours add."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas

from topiarist.recipes.findings import drawn_of
from topiarist.recipes.scenes_judging import FEW_BITS, PRICE_POINTS
from topiarist.recipes.scenes_paper import BUDGET_KB, TABLE_2_P
from topiarist.recipes.scenes_tables import front_points
from topiarist.report import Section, Table, learning_curves, pareto_figure, render_page, table_of
from topiarist.study.statistics import Finding, Interval

Frame = pandas.DataFrame


@dataclass(frozen=True, kw_only=True)
class Found:
    """Everything that the page shows; `pruned_when` says from when to when networks are pruned."""

    tables: Mapping[str, Frame]
    mixing: tuple[Finding, Finding] | None
    gains: Mapping[str, Interval]
    losses: Mapping[str, list[list[float | None]]]
    sparsities: Mapping[str, list[list[float | None]]]
    pruned_when: str
    stand_in: bool
    notes: tuple[str, ...]


def figures_of(found: Found) -> dict[str, str]:
    """Draw every figure, by the name of its file."""
    drawn = {}
    if len(found.tables["table3"]):
        drawn["accuracy-against-size"] = pareto_figure(
            front_points(found.tables["table3"]),
            size_label="KB of the packed file",
            score_label="macro accuracy, %",
            title="Accuracy against size on disk",
        )
    curves = {
        "sparsity": (found.sparsities, "V(2,2,3,3): how sparse its kernels are", "fraction of zeros"),
        "training-loss": (found.losses, "V(2,2,3,3): loss while training", "loss on the training part"),
    }
    for name, (runs, title, y_label) in curves.items():
        if runs:
            drawn[name] = learning_curves(runs, title=title, y_label=y_label)
    return drawn


def summary_of(found: Found) -> str:
    """Say in a few sentences what came out."""
    rows = {(row["model"], row["pruned"]): row for row in found.tables["table3"].to_dict("records")}
    alone, together = rows.get(("V(2,2,3,3)", "yes")), rows.get(("ensemble", "yes"))
    if alone is None or together is None:
        return "Some networks could not be made, and there is no ensemble to judge. The rest is below."
    data = "These figures are from synthesised scenes, not from recordings. " if found.stand_in else ""
    whole = rows.get(("V(2,2,3,3)", "no"))
    lost = "" if whole is None else f" ({100 * (alone['macro'] - whole['macro']):+.1f} points against unpruned)"
    gain, size = found.gains["pruned"], together["KB, 32 bits"]
    fits = f"{'below' if size < BUDGET_KB else 'above'} the {BUDGET_KB:.0f} KB of the challenge"
    return (
        f"{data}A pruned V reaches {100 * alone['macro']:.1f} % macro accuracy{lost} in a file of"
        f" {alone['KB, 32 bits']:.0f} KB. The pruned ensemble of six reaches {100 * together['macro']:.1f} %,"
        f" {100 * gain.value:+.1f} points above its mean member (95 % interval {100 * gain.low:+.1f} to"
        f" {100 * gain.high:+.1f}), in {size:.0f} KB, {fits}; with {FEW_BITS} bits a weight,"
        f" {100 * together[f'macro, {FEW_BITS} bits']:.1f} % in {together[f'KB, {FEW_BITS} bits']:.0f} KB."
    )


def sections_of(found: Found, figures: Mapping[str, str]) -> list[Section]:
    """Put tables and figures in order, each with what it says."""
    tables = found.tables
    sections = [
        Section(
            title="Table 3: unpruned and pruned models",
            text="Means over runs (and folds) on the test part; p is that of Wilcoxon's two-sided rank-sum test between"
            " pruned and unpruned, which takes all of them as independent. The paper counts 4 bytes for each number"
            " that is not zero; beside that stands what a packed file takes on disk, with 32, 16 and"
            f" {FEW_BITS} bits a weight.",
            tables=models_of(tables["table3"]),
        ),
        Section(
            title="Accuracy against size",
            text="The front that the paper asks for, and one measure that joins the two: points of macro accuracy, less"
            f" {PRICE_POINTS:g} for each doubling of the file beyond {BUDGET_KB:.0f} KB, and as much more for each"
            " halving below it (joint, in the table of sizes).",
            figures=drawn_of(figures, "accuracy-against-size"),
        ),
        Section(
            title="Pruning while training",
            text="Sparsity follows s = s_f + (s_i − s_f)(1 − (t − t₀)/(nΔt))³"
            f" {found.pruned_when}; then the masks are held.",
            figures=drawn_of(figures, "sparsity", "training-loss"),
        ),
    ]
    captions = {
        "table1": ("Table 1: mel bands and windows", "Unpruned V(2,2,3,3)."),
        "table2": ("Table 2: block mixing", mixing_text(found.mixing)),
        "table4": ("Table 4: depths", "Unpruned networks."),
    }
    for name, (title, text) in captions.items():
        if name in tables and len(tables[name]):
            sections.append(Section(title=title, text=text, tables=(table_of(tables[name], "Macro accuracy"),)))
    return sections


def models_of(table: Frame) -> tuple[Table, ...]:
    """Give Table 3 in two halves, how good and how large the models are; nothing where there are none."""
    if table.empty:
        return ()
    return table_of(accuracies_of(table), "Accuracy"), table_of(sizes_of(table), "Size")


def accuracies_of(table: Frame) -> Frame:
    """Give the columns of Table 3 that say how good the models are."""
    names = ("model", "pruned", "runs", "micro", "macro", "sd", "paper, macro", "log loss", "p, micro", "p, macro")
    return table[[*names, "paper, p", f"macro, {FEW_BITS} bits"]]


def sizes_of(table: Frame) -> Frame:
    """Give the columns of Table 3 that say how large the models are."""
    sizes = [name for name in table.columns if "KB" in name]
    return table[["model", "pruned", "non-zero", *sizes, "joint"]]


def mixing_text(tested: tuple[Finding, Finding] | None) -> str:
    """Say what Friedman's test with two factors finds."""
    said = "Pruned V(2,2,3,3), trained on as many mixtures as clips."
    if tested is None:
        return said
    pieces, classes = tested
    return (
        f"{said} Friedman's test with two factors: pieces p = {pieces.p:.4f} (paper {TABLE_2_P['pieces']:.4f}), class"
        f" p = {classes.p:.4f} (paper {TABLE_2_P['class']:.4f})."
    )


def page_of(found: Found, figures: Mapping[str, str], facts: Mapping[str, str]) -> str:
    """Make the page."""
    notice = Section(
        title="A stand-in",
        text="No data were given. The scenes are synthesised: they have the classes and cities of the challenge, and"
        " prove nothing about recordings. Point --data at the challenge's folder, or at one with a folder a class.",
    )
    notes = Section(title="About the clips", text="\n\n".join(found.notes))
    return render_page(
        title="Scenes: ensembles of pruned networks",
        summary=summary_of(found),
        sections=[
            *([notice] if found.stand_in else []),
            *sections_of(found, figures),
            *([notes] if found.notes else []),
        ],
        footer=facts,
    )
