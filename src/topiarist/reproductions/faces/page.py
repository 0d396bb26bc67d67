"""The page of the faces: verdicts first, then the paper's tables and figures, the readings, and what ours add."""

from collections.abc import Mapping

import pandas

from topiarist.report import Section, render_page, table_of
from topiarist.reproductions.faces.found import Found
from topiarist.reproductions.faces.methods import FINE_TUNED_EPOCHS, KEPT
from topiarist.reproductions.faces.study import DEFAULT
from topiarist.reproductions.faces.words import absolute_text, open_text, readings_text, summary_of, verdicts_text

Frame = pandas.DataFrame
Figures = Mapping[str, str]


def page_of(found: Found, figures: Figures, facts: Mapping[str, str]) -> str:
    """Return the whole page."""
    sections = [
        *notices(found),
        Section(
            title="The paper, claim by claim",
            text=verdicts_text(found),
            tables=(table_of(found.tables["verdicts"], f"Networks trained for {DEFAULT.name}."),),
        ),
        *paper_sections(found, figures),
        *reading_sections(found),
        *our_sections(found, figures),
    ]
    return render_page(
        title="Faces: distinctiveness and genetic pruning", summary=summary_of(found), sections=sections, footer=facts
    )


def notices(found: Found) -> list[Section]:
    """Say first what the data are, where they are not the paper's."""
    if found.testable:
        return []
    if found.data["form"] == "stand-in":
        text = (
            "No data were given. The samples are synthetic: they have the shape, the class sizes and about the"
            " difficulty of the paper's, and say nothing about faces. Point --data at the spreadsheet to reproduce the"
            " paper itself, or at a folder of images to see what comes out on them."
        )
        return [Section(title="A stand-in", text=text)]
    return [Section(title="Other data than the paper's", text=f"{found.data['why']}.")]


def paper_sections(found: Found, figures: Figures) -> list[Section]:
    """Return what the paper reports, in the default reading."""
    tables = found.tables
    notes = " " + " ".join(found.notes) if found.notes else ""
    penalties = tuple(svg for name, svg in figures.items() if name.startswith("fig3"))
    return [
        Section(
            title="Table 1: networks before pruning",
            text=f"Test accuracy in per cent after {DEFAULT.name}, mean over repeats and folds. The long training shows"
            f" accuracy on the training part and on a held-out fifth of it, epoch by epoch.{notes}",
            tables=(
                table_of(by_size(tables["table1"]), "Learning rates by hidden units; Adam, batch 32."),
                table_of(tables["svm"], "A support vector machine on the same features."),
            ),
            figures=(
                figures["table1-accuracy-by-size"],
                figures["learning-curves-accuracy"],
                figures["learning-curves-loss"],
            ),
        ),
        Section(
            title="The threshold angle",
            text="Published distinctiveness on 100 units.",
            tables=(table_of(tables["angles"], "Mean over repeats and folds."),),
            figures=(figures["fig2-accuracy-by-angle"], figures["fig2-size-by-angle"]),
        ),
        Section(
            title="The penalty of genetic pruning",
            text=absolute_text(found),
            tables=(
                table_of(shown_absolute(found), "Equation 6: share of the units removed, by λ."),
                table_of(tables["penalties"], "Equation 5 is the relative fitness, equation 6 the absolute one."),
            ),
            figures=penalties,
        ),
        Section(
            title="The four variants",
            text="Both angles and both penalties, over starting sizes, each tested against the unpruned network"
            " (corrected resampled t-test over repeats and folds, p corrected by Holm within a size).",
            tables=(table_of(tables["variants"], "Differences in points of test accuracy."),),
            figures=(
                figures["fig1-before-and-after-15"],
                figures["fig4-accuracy-by-variant"],
                figures["fig5-size-by-variant"],
            ),
        ),
    ]


def reading_sections(found: Found) -> list[Section]:
    """Return the readings side by side: length and scaling, then the order of pairs and the search."""
    tables = found.tables
    ticks = " ✓ reproduced, ✗ not reproduced." if found.testable else ""
    nearest = (table_of(tables["nearest"], "Which reading matches, claim by claim."),) if found.testable else ()
    return [
        Section(
            title="How long, and how scaled",
            text=readings_text(found),
            tables=(
                table_of(tables["side-by-side"], f"Units left, shares removed and gains in each reading.{ticks}"),
                *nearest,
                table_of(tables["readings"], "All networks of all readings: accuracies in per cent."),
            ),
        ),
        Section(
            title="What the paper leaves open in its methods",
            text=open_text(found),
            tables=(
                table_of(tables["pair-orders"], "Published distinctiveness by the order in which pairs are visited."),
                table_of(tables["search-readings"], "Published search by hall of fame and first bits."),
            ),
        ),
    ]


def our_sections(found: Found, figures: Figures) -> list[Section]:
    """Return what ours add."""
    return [
        Section(
            title="Better than the paper",
            text=f"The same networks cut to about {KEPT} units, which is where the paper says its 45° ends on its data:"
            " by the paper's method and by ours (group distinctiveness with a least-squares refit), without training,"
            f" fine-tuned for {FINE_TUNED_EPOCHS} epochs, with the last sixth of the training repeated at its learning"
            " rate, with the weights of an early epoch, and in four rounds with fine-tuning between.",
            tables=(table_of(found.tables["ours"], "Differences in points of test accuracy."),),
            figures=(figures["ours-against-unpruned"],),
        ),
        Section(
            title="The same size from any start",
            text="The paper asks for a fitness that ends at the same size whatever the start. Ours prices each unit the"
            " same, and judges a subset after a least-squares refit of the last layer to it, so that a unit counts for"
            " what it adds, not for the weight that it happens to have.",
            tables=(table_of(found.tables["searches"], "Mean over repeats and folds."),),
            figures=(figures["sizes-from-any-start"],),
        ),
    ]


def shown_absolute(found: Found) -> Frame:
    """Return the sweep of equation 6 as the page shows it; verdicts only on the paper's data."""
    table = found.tables["equation6"].drop(columns=["half", "n"])
    verdicts = ["55 % removed", "55 % left"]
    if not found.testable:
        return table.drop(columns=verdicts)
    return table.assign(**{name: ["holds" if held else "ends" for held in table[name]] for name in verdicts})


def by_size(table: Frame) -> Frame:
    """Return Table 1 as the paper prints it: a row per learning rate, ours and the paper's, a column per size."""
    rows = []
    shown = (("ours", "accuracy"), ("paper", "paper")) if "paper" in table else (("ours", "accuracy"),)
    for rate, some in table.groupby("learning rate", sort=False):
        for name, column in shown:
            figures = zip(some["units"], some[column], strict=True)
            rows.append({"learning rate": f"{rate:g}", "": name, **{str(size): figure for size, figure in figures}})
    return pandas.DataFrame(rows)
