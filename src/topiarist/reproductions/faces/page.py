"""The page of the faces: claims first, then the paper's tables and figures, the readings, and what ours add.

Every sentence follows from what was found.
"""

from collections.abc import Mapping

import pandas

from topiarist.report import Section, render_page, table_of
from topiarist.reproductions.claims import NOT_REPRODUCED, REPRODUCED, claims_table, verdict_counts
from topiarist.reproductions.faces import paper
from topiarist.reproductions.faces.claims import RULE
from topiarist.reproductions.faces.methods import FINE_TUNED_EPOCHS, KEPT
from topiarist.reproductions.faces.study import DEFAULT
from topiarist.reproductions.faces.tables import OF_PAPER, FacesFindings
from topiarist.reproductions.findings import drawn_of

Frame = pandas.DataFrame
Figures = Mapping[str, str]


def faces_page(found: FacesFindings, figures: Figures, facts: Mapping[str, str]) -> str:
    """Return the whole page."""
    caption = f"Networks trained for {DEFAULT.name}."
    return render_page(
        title="Faces: distinctiveness and genetic pruning",
        summary=faces_summary(found),
        sections=[
            *_notices(found),
            Section(
                title="The paper, claim by claim",
                text=_claims_text(found),
                tables=(claims_table(found.claims, paper=OF_PAPER, caption=caption),),
            ),
            *_paper_sections(found, figures),
            *_reading_sections(found),
            *_our_sections(found, figures),
        ],
        footer=facts,
    )


def faces_summary(found: FacesFindings) -> str:
    """Return in a few sentences what came out."""
    ours = found.tables["ours"]
    size = int(ours["units"].max())
    largest = ours[ours["units"] == size].set_index("variant")
    if largest["accuracy"].isna().any():
        return "Some networks could not be trained: their rows are empty. The rest is below."
    start, paper_row, our_row = largest.loc["unpruned"], largest.loc["paper, 45°"], largest.loc["ours"]
    return (
        f"{_counts_text(found)} From {size} units, unpruned {start['accuracy']:.1f} %: the paper's method at 45° leaves"
        f" {paper_row['units left']:.0f} units and {paper_row['accuracy']:.1f} %, ours {our_row['units left']:.0f}"
        f" units and {our_row['accuracy']:.1f} %, both without any training after the cut."
    )


def _counts_text(found: FacesFindings) -> str:
    """Return how many claims came out, or why none can be tested."""
    if found.best is None:
        what = "a synthetic stand-in" if found.faces.stand_in else f"a {found.faces.form}"
        return f"These figures are from {what}, not from the paper's data: none of its claims can be tested here."
    counts = verdict_counts(found.claims)
    return (
        f"Of {len(found.claims)} claims of the paper, {counts[REPRODUCED]} are reproduced and {counts[NOT_REPRODUCED]}"
        f" are not, trained for {DEFAULT.name}. Of six readings of length and scaling, {found.best.reading.name}"
        f" matches best: {found.best.reproduced} of {len(found.best.claims)} claims on the pruned networks."
    )


def _notices(found: FacesFindings) -> list[Section]:
    """Return first what the data are, where they are not the paper's."""
    if found.testable:
        return []
    if not found.faces.stand_in:
        return [Section(title="Other data than the paper's", text=f"{found.faces.why}.")]
    text = (
        "No data were given. The samples are synthetic: they have the shape, the class sizes and about the difficulty"
        " of the paper's, and say nothing about faces. Point --data at the spreadsheet to reproduce the paper itself,"
        " or at a folder of images to see what comes out on them."
    )
    return [Section(title="A stand-in", text=text)]


def _claims_text(found: FacesFindings) -> str:
    """Return what the verdicts rest on."""
    data = f"{RULE}\n\nWhich data these are is decided by their form and class sizes: {found.faces.why}."
    if found.testable:
        return f"{data} So these count as the paper's data."
    return (
        f"{data} So the paper's numbers say nothing about these figures: each claim is listed with the paper's number"
        " on the paper's own data, and no verdict is given."
    )


def _paper_sections(found: FacesFindings, figures: Figures) -> list[Section]:
    """Return what the paper reports, in the default reading."""
    tables = found.tables
    return [
        Section(
            title="Table 1: networks before pruning",
            text=f"Test accuracy in per cent after {DEFAULT.name}, mean over repeats and folds. The long training shows"
            " accuracy on the training part and on a held-out fifth of it, epoch by epoch."
            + "".join(f" {note}" for note in found.faces.source.notes),
            tables=(
                table_of(_by_size(tables["table1"]), "Learning rates by hidden units; Adam, batch 32."),
                table_of(tables["svm"], "A support vector machine on the same features."),
            ),
            figures=drawn_of(figures, "table1-accuracy-by-size", "learning-curves-accuracy", "learning-curves-loss"),
        ),
        Section(
            title="The threshold angle",
            text="Published distinctiveness on 100 units.",
            tables=(table_of(tables["angles"], "Mean over repeats and folds."),),
            figures=drawn_of(figures, "fig2-accuracy-by-angle", "fig2-size-by-angle"),
        ),
        Section(
            title="The penalty of genetic pruning",
            text=_absolute_text(found),
            tables=(
                table_of(_absolute_shown(found), "Equation 6: share of the units removed, by λ."),
                table_of(tables["penalties"], "Equation 5 is the relative fitness, equation 6 the absolute one."),
            ),
            figures=tuple(svg for name, svg in figures.items() if name.startswith("fig3")),
        ),
        Section(
            title="The four variants",
            text="Both angles and both penalties, over starting sizes, each tested against the unpruned network"
            " (corrected resampled t-test over repeats and folds, p corrected by Holm within a size).",
            tables=(table_of(tables["variants"], "Differences in points of test accuracy."),),
            figures=drawn_of(figures, "fig1-before-and-after-15", "fig4-accuracy-by-variant", "fig5-size-by-variant"),
        ),
    ]


def _by_size(table: Frame) -> Frame:
    """Return Table 1 as the paper prints it: one row per learning rate, ours and the paper's, one column per size."""
    rows = []
    for rate, some in table.groupby("learning rate", sort=False):
        for name, column in (("ours", "accuracy"), ("paper", "paper")):
            if column in some:
                figures = zip(some["units"].astype(str), some[column], strict=True)
                rows.append({"learning rate": f"{rate:g}", "": name, **dict(figures)})
    return pandas.DataFrame(rows)


def _absolute_text(found: FacesFindings) -> str:
    """Return where the claim on equation 6 holds, and where it ends."""
    table = found.tables["equation6"].assign(shown=[f"{penalty:g}" for penalty in found.tables["equation6"]["λ"]])
    removed, shown = table["removed, %"], table["shown"]
    text = (
        f"By equation 6, λ from {shown.iloc[0]} to {shown.iloc[-1]}: from {removed.iloc[0]:.0f} % to"
        f" {removed.iloc[-1]:.0f} % of the units are removed, in the mean over all starts."
    )
    if not found.testable:
        return text
    held, other = (", ".join(shown[table[name]]) or "none" for name in ("55 % removed", "55 % left"))
    return (
        f"{text} About 55 % removed, as the paper claims for every λ, holds at λ = {held}; read as 55 % left, it holds"
        f" at λ = {other}."
    )


def _absolute_shown(found: FacesFindings) -> Frame:
    """Return the sweep of equation 6 as the page shows it; verdicts only on the paper's data."""
    verdicts = ["55 % removed", "55 % left"]
    table = found.tables["equation6"].drop(columns=["low", "high", "n"])
    if not found.testable:
        return table.drop(columns=verdicts)
    return table.assign(**{name: table[name].map({True: "holds", False: "ends"}) for name in verdicts})


def _reading_sections(found: FacesFindings) -> list[Section]:
    """Return the readings side by side: length and scaling, then the order of pairs and the search."""
    tables = found.tables
    ticks = " ✓ reproduced, ✗ not reproduced." if found.testable else ""
    nearest = (table_of(tables["nearest"], "Which reading matches, claim by claim."),) if found.testable else ()
    return [
        Section(
            title="How long, and how scaled",
            text=_readings_text(found),
            tables=(
                table_of(tables["side-by-side"], f"Units left, shares removed and gains in each reading.{ticks}"),
                *nearest,
                table_of(tables["readings"], "All networks of all readings: accuracies in per cent."),
            ),
        ),
        Section(
            title="What the paper leaves open in its methods",
            text=_open_text(found),
            tables=(
                table_of(tables["pair-orders"], "Published distinctiveness by the order in which pairs are visited."),
                table_of(tables["search-readings"], "Published search by hall of fame and first bits."),
            ),
        ),
    ]


def _readings_text(found: FacesFindings) -> str:
    """Return what the readings are, and which matches."""
    text = (
        f"The paper says once that {paper.LENGTH} steps are enough, and once that networks are trained for"
        f" {paper.LENGTH} epochs; and it does not say how it scales its features. Read as optimizer steps, training is"
        f" about 16 epochs of its data. All other parts of this page use {DEFAULT.name}."
    )
    if found.best is None:
        return text
    each = "; ".join(
        f"{match.reading.name}: {match.reproduced}, mean distance {match.distance:.2f}" for match in found.matches
    )
    return (
        f"{text}\n\nClaims reproduced, of {len(found.best.claims)}, and the mean distance from the paper in units of"
        f" tolerance + cap: {each}. {found.best.reading.name} matches best. The choice is made after the fact."
    )


def _open_text(found: FacesFindings) -> str:
    """Return what other readings of the methods give at 45° and by equation 6."""
    orders, searched = found.tables["pair-orders"], found.tables["search-readings"]
    sizes = "; ".join(
        f"{order}: " + ", ".join(f"{row['units']} → {row['units left']:.0f}" for row in rows.to_dict("records"))
        for order, rows in orders[orders["variant"] == "45°"].groupby("order", sort=False)
    )
    some = searched[(searched["search"] == "equation 6, λ = 10") & (searched["units"] == 100)]
    left = "; ".join(f"{row['reading']}: {row['units left']:.0f}" for row in some.to_dict("records"))
    return (
        "The paper does not say in which order pairs are visited, whether a unit that is gone still counts for the next"
        " pair, whether the hall of fame is a part of the population, or with how many units the search starts. Each is"
        f" an option.\n\nUnits left at 45° — {sizes}.\n\nUnits left of 100 by equation 6 with λ = 10 — {left}."
    )


def _our_sections(found: FacesFindings, figures: Figures) -> list[Section]:
    """Return what ours add."""
    return [
        Section(
            title="Better than the paper",
            text=f"The same networks cut to about {KEPT} units, which is where the paper says its 45° ends on its data:"
            " by the paper's method and by ours (group distinctiveness with a least-squares refit), without training,"
            f" fine-tuned for {FINE_TUNED_EPOCHS} epochs, with the last sixth of the training repeated at its learning"
            " rate, with the weights of an early epoch, and in four rounds with fine-tuning between.",
            tables=(table_of(found.tables["ours"], "Differences in points of test accuracy."),),
            figures=drawn_of(figures, "ours-against-unpruned"),
        ),
        Section(
            title="The same size from any start",
            text="The paper asks for a fitness that ends at the same size whatever the start. Ours prices each unit the"
            " same, and judges a subset after a least-squares refit of the last layer to it, so that a unit counts for"
            " what it adds, not for the weight that it happens to have.",
            tables=(table_of(found.tables["searches"], "Mean over repeats and folds."),),
            figures=drawn_of(figures, "sizes-from-any-start"),
        ),
    ]
