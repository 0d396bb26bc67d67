"""The page of the faces: the paper's tables and figures with its numbers beside ours, and what ours add."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas

from topiarist.recipes import faces_paper as paper
from topiarist.recipes.faces import KEPT
from topiarist.report import Section, differences, learning_curves, render_page, sweep_curves, table_of

Frame = pandas.DataFrame
ALPHA = 0.05
EQUATIONS = {"relative": 5, "absolute": 6}  # of the paper


@dataclass(frozen=True, kw_only=True)
class Found:
    """Everything that the page shows: tidy tables by name, the long training by epochs, and which scaling matches."""

    tables: Mapping[str, Frame]
    cells: Mapping[str, Frame]
    losses: Mapping[str, Sequence[Sequence[float | None]]]
    accuracies: Mapping[str, Sequence[Sequence[float | None]]]
    distances: Mapping[str, float]
    stand_in: bool
    notes: tuple[str, ...]

    @property
    def matching(self) -> str:
        """The scaling whose sizes are nearest to the paper's."""
        return min(self.distances, key=self.distances.__getitem__)


def figures_of(found: Found) -> dict[str, str]:
    """Draw every figure, by the name of its file."""
    variants, angles, penalties = found.cells["variants"], found.cells["angles"], found.cells["penalties"]
    drawn = {
        "learning-curves-loss": learning_curves(found.losses, title="Long training, 20 units", y_label="log loss"),
        "learning-curves-accuracy": learning_curves(
            found.accuracies, title="Long training, 20 units", y_label="accuracy on a held-out fifth"
        ),
        "fig1-before-and-after-15": sweep_curves(
            curves(variants[variants["variant"].isin(["unpruned", "15°"])], "variant", "units", "accuracy"),
            **over_sizes("Before and after distinctiveness pruning at 15°", "test accuracy, %"),
        ),
        "fig2-accuracy-by-angle": sweep_curves(
            {
                "test": curve(angles, "angle", "accuracy"),
                "training": curve(angles, "angle", "training accuracy"),
            },
            title="Distinctiveness pruning of 100 units: accuracy",
            x_label="threshold angle, degrees",
            y_label="accuracy, %",
        ),
        "fig2-size-by-angle": sweep_curves(
            {"units left": curve(angles, "angle", "units left")},
            title="Distinctiveness pruning of 100 units: size",
            x_label="threshold angle, degrees",
            y_label="units left",
        ),
        "fig4-accuracy-by-variant": sweep_curves(
            curves(variants, "variant", "units", "accuracy"),
            **over_sizes("Test accuracy of the variants", "test accuracy, %"),
        ),
        "fig5-size-by-variant": sweep_curves(
            {
                **curves(variants, "variant", "units", "units left"),
                "15°, paper": {size: [left] for size, left in paper.TABLE_3.items()},
            },
            **over_sizes("Final sizes of the variants", "units left"),
            y_scale="log",
        ),
        "sizes-from-any-start": sweep_curves(
            curves(found.cells["searches"], "variant", "units", "units left"),
            **over_sizes("Where genetic searches end", "units left"),
            y_scale="log",
        ),
    }
    for fitness, rows in penalties.groupby("fitness", sort=False):
        for what in ("accuracy", "units left"):
            name = f"fig3-{'accuracy' if what == 'accuracy' else 'size'}-by-penalty-{fitness}"
            drawn[name] = sweep_curves(
                {f"{size} units": curve(some, "penalty", what) for size, some in rows.groupby("units")},
                title=f"Genetic pruning by equation {EQUATIONS[str(fitness)]}: {what}",
                x_label="penalty λ",
                y_label="test accuracy, %" if what == "accuracy" else what,
            )
    return drawn | {"ours-against-unpruned": forest_of(found.tables["ours"])}


def over_sizes(title: str, y_label: str) -> dict[str, Any]:
    """Give the words of a figure over starting sizes."""
    return {"title": title, "x_label": "units before pruning", "y_label": y_label, "x_scale": "log"}


def curves(cells: Frame, name: str, x: str, y: str) -> dict[str, dict[float, list[float]]]:
    """Give one curve for each value of a column."""
    return {str(value): curve(rows, x, y) for value, rows in cells.groupby(name, sort=False)}


def curve(cells: Frame, x: str, y: str) -> dict[float, list[float]]:
    """Give the values of all folds at each place."""
    return {float(str(place)): rows[y].tolist() for place, rows in cells.groupby(x)}


def forest_of(table: Frame) -> str:
    """Draw how the variants at the largest starting size differ from the unpruned network."""
    size = table["units"].max()
    rows = [
        {
            "name": row["variant"],
            **{name: row[name] for name in ("difference", "low", "high")},
            "significant": bool(row["p"] <= ALPHA),
        }
        for row in table[(table["units"] == size) & table["difference"].notna()].to_dict("records")
    ]
    return differences(rows, title=f"From {size} units: test accuracy against unpruned", unit="points, more is better")


def by_size(table: Frame) -> Frame:
    """Give Table 1 as the paper prints it: a row for each learning rate, ours and the paper's, a column a size."""
    rows = []
    for rate, some in table.groupby("learning rate", sort=False):
        for name, column in (("ours", "accuracy"), ("paper", "paper")):
            figures = zip(some["units"], some[column], strict=True)
            rows.append({"learning rate": f"{rate:g}", "": name, **{str(size): figure for size, figure in figures}})
    return pandas.DataFrame(rows)


def summary_of(found: Found) -> str:
    """Say in a few sentences what came out."""
    ours = found.tables["ours"]
    size = int(ours["units"].max())
    largest = ours[ours["units"] == size].set_index("variant")
    start, paper_row, our_row = largest.loc["unpruned"], largest.loc["paper, 45°"], largest.loc["ours"]
    if largest["accuracy"].isna().any():
        return "Some networks could not be made: their rows are empty. The rest is below."
    data = "These figures are from a synthetic stand-in, not from the paper's data. " if found.stand_in else ""
    return (
        f"{data}Of the three scalings, {found.matching} gives sizes nearest to the paper's (off by a factor of"
        f" {found.distances[found.matching]:.2f} on average). From {size} units,"
        f" unpruned {start['accuracy']:.1f} %: the paper's 45° leaves {paper_row['units left']:.0f} units and"
        f" {paper_row['accuracy']:.1f} %, ours {our_row['units left']:.0f} units and {our_row['accuracy']:.1f} %,"
        " both without any training after the cut."
    )


def page_of(found: Found, figures: Mapping[str, str], facts: Mapping[str, str]) -> str:
    """Give the whole page."""
    tables = found.tables
    notice = Section(
        title="A stand-in",
        text="No data were given. The samples are synthetic: they have the shape, the class sizes and about the"
        " difficulty of the paper's, and say nothing about faces. Point --data at the spreadsheet or at a folder of"
        " pictures to reproduce the paper itself.",
    )
    sections = [
        *([notice] if found.stand_in else []),
        Section(
            title="Table 1: networks before pruning",
            text="Test accuracy in per cent after 300 epochs, mean over folds, with the paper's beside it."
            + (" " + " ".join(found.notes) if found.notes else ""),
            tables=(
                table_of(by_size(tables["table1"]), "Learning rates by hidden units; Adam, batch 32."),
                table_of(tables["svm"], "A support vector machine on the same features, as the paper's reference."),
            ),
            figures=(figures["learning-curves-loss"], figures["learning-curves-accuracy"]),
        ),
        Section(
            title="Table 3, and which scaling matches",
            text="The paper does not say how it scales its features, and the sizes hang on it. "
            + "; ".join(f"{name}: off by a factor of {value:.2f}" for name, value in found.distances.items())
            + f". Nearest: {found.matching}; the other parts of this page use unit-norm samples.",
            tables=(table_of(tables["table3"], "Units left of those in the first column."),),
            figures=(figures["fig1-before-and-after-15"],),
        ),
        Section(
            title="The threshold angle",
            text=f"The paper: accuracy holds up to 45°, where {paper.REMOVED_AT_45_DEGREES:.0%} of 100 units are gone.",
            tables=(table_of(tables["angles"], "100 units, published distinctiveness."),),
            figures=(figures["fig2-accuracy-by-angle"], figures["fig2-size-by-angle"]),
        ),
        Section(
            title="The penalty of genetic pruning",
            text=f"The paper: by equation 5, λ = 50 removes more than {paper.REMOVED_AT_PENALTY_50:.0%} of the units;"
            f" by equation 6 about {paper.REMOVED_BY_ABSOLUTE:.0%} go, whatever λ.",
            tables=(table_of(tables["penalties"], "Equation 5 is the relative fitness, equation 6 the absolute one."),),
            figures=tuple(svg for name, svg in figures.items() if name.startswith("fig3")),
        ),
        Section(
            title="The four variants",
            text="Both angles and both penalties, over starting sizes, each tested against the unpruned network"
            " (corrected resampled t-test over folds, p corrected by Holm within a size).",
            tables=(table_of(tables["variants"], "Differences in points of test accuracy."),),
            figures=(figures["fig4-accuracy-by-variant"], figures["fig5-size-by-variant"]),
        ),
        Section(
            title="Better than the paper",
            text=f"The same networks cut to about {KEPT} units, which is where the paper's 45° ends: by the paper's"
            " method and by ours (group distinctiveness with a least-squares refit), without training, fine-tuned for 5"
            " epochs, with the learning rate rewound by 50 epochs, with the weights rewound to epoch 10, and in four"
            " rounds with fine-tuning between.",
            tables=(table_of(tables["ours"], "Differences in points of test accuracy."),),
            figures=(figures["ours-against-unpruned"],),
        ),
        Section(
            title="The same size from any start",
            text="The paper asks for a fitness that ends at the same size whatever the start. Ours prices each unit the"
            " same, and judges a subset after a least-squares refit of the last layer to it, so that a unit counts for"
            " what it adds, not for the weight that it happens to have.",
            tables=(table_of(tables["searches"], "Mean over folds."),),
            figures=(figures["sizes-from-any-start"],),
        ),
    ]
    return render_page(
        title="Faces: distinctiveness and genetic pruning", summary=summary_of(found), sections=sections, footer=facts
    )
