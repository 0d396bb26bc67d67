"""The page of the scenes: claims, the paper's tables with its numbers beside ours, the Pareto front, what ours add."""

from collections.abc import Mapping, Sequence

import pandas

from topiarist.report import Section, render_page
from topiarist.reproductions.claims import NOT_REPRODUCED, NOT_TESTABLE, REPRODUCED, Claim, claims_table, verdict_counts
from topiarist.reproductions.findings import drawn_of
from topiarist.reproductions.scenes.data import MixtureExample
from topiarist.reproductions.scenes.evaluation import FEW_BITS, ScenesFindings
from topiarist.reproductions.scenes.paper import BUDGET_KB, TABLE_2_P
from topiarist.reproductions.scenes.study import ScenesScope
from topiarist.reproductions.scenes.tables import OF_PAPER, PRICE_POINTS, shown

Tables = Mapping[str, pandas.DataFrame]


def scenes_summary(findings: ScenesFindings, table_3: pandas.DataFrame) -> str:
    """Return the results in a few sentences."""
    rows = {(row["model"], row["pruned"]): row for row in table_3.to_dict("records")}
    alone, together = rows.get(("V(2,2,3,3)", "yes")), rows.get(("ensemble", "yes"))
    if alone is None or together is None:
        return "Some networks could not be made, and there is no ensemble to judge. The rest is below."
    data = "These figures are from synthesised scenes, not from recordings. " if findings.stand_in else ""
    whole = rows.get(("V(2,2,3,3)", "no"))
    lost = "" if whole is None else f" ({100 * (alone['macro'] - whole['macro']):+.1f} points against unpruned)"
    gain, size = findings.gains["pruned"], together["KB, 32 bits"]
    fits = f"{'below' if size < BUDGET_KB else 'above'} the {BUDGET_KB:.0f} KB of the challenge"
    return (
        f"{data}A pruned V reaches {100 * alone['macro']:.1f} % macro accuracy{lost} in a file of"
        f" {alone['KB, 32 bits']:.0f} KB. The pruned ensemble of {findings.scope.members} reaches"
        f" {100 * together['macro']:.1f} %,"
        f" {100 * gain.value:+.1f} points above its mean member (95 % interval {100 * gain.low:+.1f} to"
        f" {100 * gain.high:+.1f}), in {size:.0f} KB, {fits}; with {FEW_BITS} bits per weight,"
        f" {100 * together[f'macro, {FEW_BITS} bits']:.1f} % in {together[f'KB, {FEW_BITS} bits']:.0f} KB."
    )


def scenes_page(
    findings: ScenesFindings,
    tables: Tables,
    claims: Sequence[Claim],
    figures: Mapping[str, str],
    example: MixtureExample | None,
    *,
    notes: Sequence[str],
    facts: Mapping[str, str],
) -> str:
    """Return the page: claims, Table 3, the front, pruning, a mixture where waveforms are mixed, the other tables."""
    whose = _whose_recordings(findings)
    sections = []
    if findings.stand_in:
        text = (
            "No data were given. The scenes are synthesised: they have the classes and cities of the challenge, and"
            " prove nothing about recordings. Point --data at the challenge's folder, or at one with one folder per"
            " class."
        )
        sections.append(Section(title="A stand-in", text=text))
    sections += [
        _claims_section(claims, whose),
        _models_section(tables, whose),
        Section(
            title="Accuracy against size",
            text="The front that the paper asks for, and one measure that joins the two: points of macro accuracy, less"
            f" {PRICE_POINTS:g} for each doubling of the file beyond {BUDGET_KB:.0f} KB, and as much more for each"
            " halving below it (joint, in the table of sizes).",
            figures=drawn_of(figures, "accuracy-against-size"),
        ),
        Section(
            title="Pruning while training",
            text=_pruning_text(findings.scope),
            figures=drawn_of(figures, "sparsity", "training-loss"),
        ),
    ]
    if example is not None:
        text = f"{example} Pieces of sound are joined, and the whole is described (section 2.2 of the paper)."
        sections.append(Section(title="Figure 1: a mixture", text=text, figures=drawn_of(figures, "mixture")))
    titles = {
        "table1": ("Table 1: mel bands and windows", "Unpruned V(2,2,3,3)."),
        "table2": ("Table 2: block mixing", _mixing_text(findings)),
        "table4": (
            "Table 4: depths",
            "Unpruned networks, counted as in Table 3; p is that of the rank-sum test against V(2,2,3,3) or I(1,0,1),"
            " the paper's best of each family.",
        ),
    }
    for name, (title, text) in titles.items():
        if len(tables.get(name, ())):
            sections.append(Section(title=title, text=f"{text} {whose}", tables=shown(name, tables[name])))
    if notes:
        sections.append(Section(title="About the clips", text="\n\n".join(notes)))
    summary = scenes_summary(findings, tables["table3"])
    return render_page(title="Scenes: ensembles of pruned networks", summary=summary, sections=sections, footer=facts)


def _claims_section(claims: Sequence[Claim], whose: str) -> Section:
    count = verdict_counts(claims)
    counts = ", ".join(f"{count[kind]} {kind}" for kind in (REPRODUCED, NOT_REPRODUCED, NOT_TESTABLE))
    return Section(
        title="The paper's claims",
        text=f"{len(claims)} claims: {counts}. {whose} Counts of parameters do not depend on"
        " recordings and are tested anywhere; so is the direction of what an ensemble gains. What pruning costs is"
        " tested where networks are trained and pruned as in the paper, mixing and depth on recordings, accuracies"
        " only on clips of the form of the paper's in its own setting.",
        tables=(claims_table(claims, paper=OF_PAPER, caption="Claims and verdicts"),),
    )


def _whose_recordings(findings: ScenesFindings) -> str:
    """Return beside which data the paper's numbers stand."""
    if findings.like_the_paper:
        return "The clips have the form of the paper's recordings; whether they are the same, their names do not prove."
    ours = "synthesised scenes" if findings.stand_in else "other recordings"
    return f"The paper's numbers were measured on its own recordings, ours on {ours}: the two are not comparable."


def _models_section(tables: Tables, whose: str) -> Section:
    return Section(
        title="Table 3: unpruned and pruned models",
        text="Means ± standard deviations over runs (and folds) on the test part; p is that of Wilcoxon's two-sided"
        " rank-sum test between pruned and unpruned, which takes all of them as independent. The paper counts 4 bytes"
        " for each number that is not zero, batch norm's moving averages among them, on 48 × 467 inputs; beside that"
        f" stands what a packed file takes on disk, with 32, 16 and {FEW_BITS} bits per weight. {whose}",
        tables=(*shown("table3", tables["table3"]), *shown("reported", tables["reported"])),
    )


def _pruning_text(scope: ScenesScope) -> str:
    """Return when how much is pruned."""
    prunings, epochs = scope.prunings, scope.training.epochs
    first, last = min(prunings), max(prunings)
    return (
        "Sparsity follows s = s_f + (s_i − s_f)(1 − (t − t₀)/(nΔt))³, from"
        f" {prunings[first]:.0%} after {first} epochs to {prunings[last]:.0%} after {last} of {epochs}, in"
        f" {len(prunings)} prunings; then the masks are held for {epochs - last} epochs."
    )


def _mixing_text(findings: ScenesFindings) -> str:
    """Return what is mixed, and what Friedman's test with two factors finds."""
    wave = findings.scope.mixing.on == "waveform"
    what = "waveforms, as in the paper" if wave else "spectrograms, where the paper mixes waveforms"
    said = f"Pruned V(2,2,3,3), trained on the clips and on as many mixtures of {what}."
    if findings.mixing is None:
        return said
    pieces, classes = findings.mixing
    return (
        f"{said} Friedman's test with two factors: pieces p = {pieces.p:.4f} (paper {TABLE_2_P['pieces']:.4f}), class"
        f" p = {classes.p:.4f} (paper {TABLE_2_P['class']:.4f})."
    )
