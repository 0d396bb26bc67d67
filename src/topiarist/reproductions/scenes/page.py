"""The page of the scenes: claims, the paper's tables with its numbers beside ours, the Pareto front, what ours add."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas

from topiarist.report import Section, Table, learning_curves, pareto_figure, render_page
from topiarist.reproductions.claims import Claim as Verdict
from topiarist.reproductions.claims import claims_table as verdict_table
from topiarist.reproductions.findings import drawn_of
from topiarist.reproductions.scenes.figure import described, mixture_figure
from topiarist.reproductions.scenes.judging import FEW_BITS, PRICE_POINTS
from topiarist.reproductions.scenes.mixing import Example
from topiarist.reproductions.scenes.paper import BUDGET_KB, TABLE_2_P
from topiarist.reproductions.scenes.scope import Scope
from topiarist.reproductions.scenes.shown import depths_shown, figures_shown, models_shown, reported_shown
from topiarist.reproductions.scenes.tables import OF_PAPER, front_points
from topiarist.reproductions.scenes.verdicts import counts_of
from topiarist.statistics import Finding, Interval

Frame = pandas.DataFrame


@dataclass(frozen=True, kw_only=True)
class Found:
    """Everything that the page shows; `example` is a mixture of wave forms, where they are mixed."""

    scope: Scope
    verdicts: list[Verdict]
    example: Example | None
    tables: Mapping[str, Frame]
    mixing: tuple[Finding, Finding] | None
    gains: Mapping[str, Interval]
    losses: Mapping[str, list[list[float | None]]]
    sparsities: Mapping[str, list[list[float | None]]]
    stand_in: bool
    like_the_paper: bool
    notes: tuple[str, ...]


def figures_of(found: Found) -> dict[str, str]:
    """Draw every figure, by the name of its file."""
    drawn = {} if found.example is None else {"mixture": mixture_figure(found.example)}
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
        f" {alone['KB, 32 bits']:.0f} KB. The pruned ensemble of {found.scope.members} reaches"
        f" {100 * together['macro']:.1f} %,"
        f" {100 * gain.value:+.1f} points above its mean member (95 % interval {100 * gain.low:+.1f} to"
        f" {100 * gain.high:+.1f}), in {size:.0f} KB, {fits}; with {FEW_BITS} bits per weight,"
        f" {100 * together[f'macro, {FEW_BITS} bits']:.1f} % in {together[f'KB, {FEW_BITS} bits']:.0f} KB."
    )


def sections_of(found: Found, figures: Mapping[str, str]) -> list[Section]:
    """Put tables and figures in order, each with what it says."""
    return [
        claims_section(found),
        models_section(found),
        Section(
            title="Accuracy against size",
            text="The front that the paper asks for, and one measure that joins the two: points of macro accuracy, less"
            f" {PRICE_POINTS:g} for each doubling of the file beyond {BUDGET_KB:.0f} KB, and as much more for each"
            " halving below it (joint, in the table of sizes).",
            figures=drawn_of(figures, "accuracy-against-size"),
        ),
        Section(
            title="Pruning while training",
            text=pruning_text(found.scope),
            figures=drawn_of(figures, "sparsity", "training-loss"),
        ),
        *mixture_section(found, figures),
        *table_sections(found),
    ]


def claims_section(found: Found) -> Section:
    """Put the claims at the top: the paper's figure, ours, and what follows."""
    counts = ", ".join(f"{count} {kind}" for kind, count in counts_of(found.verdicts).items())
    return Section(
        title="The paper's claims",
        text=f"{len(found.verdicts)} claims: {counts}. {whose_recordings(found)} Counts of parameters hang on no"
        " recording and are tested anywhere; so is the direction of what an ensemble gains. What pruning costs is"
        " tested where networks are trained and pruned as in the paper, mixing and depth on recordings, accuracies"
        " only on clips of the form of the paper's in its own setting.",
        tables=(verdict_table(found.verdicts, paper=OF_PAPER, caption="Claims and verdicts"),),
    )


def whose_recordings(found: Found) -> str:
    """Say beside which data the paper's numbers stand."""
    if found.like_the_paper:
        return "The clips have the form of the paper's recordings; whether they are the same, their names do not prove."
    ours = "synthesised scenes" if found.stand_in else "other recordings"
    return f"The paper's numbers were measured on its own recordings, ours on {ours}: the two are not comparable."


def models_section(found: Found) -> Section:
    """Show Table 3, and what the paper reports beside it."""
    table = found.tables["table3"]
    return Section(
        title="Table 3: unpruned and pruned models",
        text="Means ± standard deviations over runs (and folds) on the test part; p is that of Wilcoxon's two-sided"
        " rank-sum test between pruned and unpruned, which takes all of them as independent. The paper counts 4 bytes"
        " for each number that is not zero, batch norm's moving averages among them, on 48 × 467 inputs; beside that"
        f" stands what a packed file takes on disk, with 32, 16 and {FEW_BITS} bits per weight."
        f" {whose_recordings(found)}",
        tables=(*(models_shown(table) if len(table) else ()), reported_shown()),
    )


def pruning_text(scope: Scope) -> str:
    """Say when how much is pruned."""
    prunings, epochs = scope.prunings, scope.training["epochs"]
    first, last = min(prunings), max(prunings)
    return (
        "Sparsity follows s = s_f + (s_i − s_f)(1 − (t − t₀)/(nΔt))³, from"
        f" {prunings[first]:.0%} after {first} epochs to {prunings[last]:.0%} after {last} of {epochs}, in"
        f" {len(prunings)} prunings; then the masks are held for {epochs - last} epochs."
    )


def mixture_section(found: Found, figures: Mapping[str, str]) -> list[Section]:
    """Show Figure 1, where wave forms are mixed."""
    if found.example is None:
        return []
    text = (
        f"{described(found.example)} Pieces of sound are joined, and the whole is described (section 2.2 of the paper)."
    )
    return [Section(title="Figure 1: a mixture", text=text, figures=drawn_of(figures, "mixture"))]


def table_sections(found: Found) -> list[Section]:
    """Show Tables 1, 2 and 4, those that were run."""
    tables, whose = found.tables, whose_recordings(found)
    shown: dict[str, tuple[str, str, tuple[Table, ...]]] = {}
    if "table1" in tables and len(tables["table1"]):
        shown["table1"] = ("Table 1: mel bands and windows", "Unpruned V(2,2,3,3).", (figures_shown(tables["table1"]),))
    if "table2" in tables and len(tables["table2"]):
        text = mixing_text(found.mixing, on=found.scope.mixing.on)
        shown["table2"] = ("Table 2: block mixing", text, (figures_shown(tables["table2"]),))
    if "table4" in tables and len(tables["table4"]):
        text = (
            "Unpruned networks, counted as in Table 3; p is that of the rank-sum test against V(2,2,3,3) or I(1,0,1),"
            " the paper's best of each family."
        )
        shown["table4"] = ("Table 4: depths", text, depths_shown(tables["table4"]))
    return [Section(title=title, text=f"{text} {whose}", tables=some) for title, text, some in shown.values()]


def mixing_text(tested: tuple[Finding, Finding] | None, *, on: str) -> str:
    """Say what is mixed, and what Friedman's test with two factors finds."""
    what = "wave forms, as in the paper" if on == "waveform" else "spectrograms, where the paper mixes wave forms"
    said = f"Pruned V(2,2,3,3), trained on the clips and on as many mixtures of {what}."
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
        " prove nothing about recordings. Point --data at the challenge's folder, or at one with one folder per class.",
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
