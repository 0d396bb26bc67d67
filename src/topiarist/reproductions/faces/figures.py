"""The figures of the faces; the paper's numbers are points in them where the data are the paper's."""

from collections.abc import Iterable, Mapping

import pandas

from topiarist.report import Difference, differences, learning_curves, sweep_curves
from topiarist.reproductions.faces import paper
from topiarist.reproductions.faces.tables import FacesFindings

Frame = pandas.DataFrame
ALPHA = 0.05
EQUATIONS = {"relative": 5, "absolute": 6}  # of the paper
TEST, LEFT = "test accuracy, %", "units left"


def faces_figures(found: FacesFindings) -> dict[str, str]:
    """Draw every figure, by the name of its file."""
    title = "Long training, 20 units"
    return {
        "learning-curves-loss": learning_curves(found.losses, title=title, y_label="log loss"),
        "learning-curves-accuracy": learning_curves(found.accuracies, title=title, y_label="accuracy"),
        **_size_figures(found),
        **_angle_figures(found),
        **_penalty_figures(found),
        "ours-against-unpruned": _forest_of(found.tables["ours"]),
    }


def _size_figures(found: FacesFindings) -> dict[str, str]:
    """Draw Table 1, the four variants over starting sizes, and where genetic searches end."""
    cells, variants = found.cells["table 1"], found.cells["variants"]
    sizes = [float(size) for size in variants["units"].unique()]
    rates = {f"{rate:g}, paper": _at(paper.TABLE_1[rate], cells["units"]) for rate in cells["learning rate"].unique()}
    unpruned = {"unpruned, paper": _at(paper.TABLE_1[0.01], sizes)}
    low, high = ({size: min(end, size) for size in sizes} for end in paper.LEFT_AT_45_DEGREES)
    left = {"15°, paper": _at(paper.TABLE_3, sizes), "45°, paper, from": low, "45°, paper, to": high}
    left["λ = 0, paper"] = {100.0: paper.LEFT_WITHOUT_PENALTY}
    best = {"λ = 0, paper": {100.0: paper.BEST_ACCURACY}}
    few = variants[variants["variant"].isin(["unpruned", "15°"])]
    drawn = {
        "table1-accuracy-by-size": ("Table 1: test accuracy by learning rate", cells, TEST, rates),
        "fig1-before-and-after-15": ("Before and after distinctiveness pruning at 15°", few, TEST, unpruned),
        "fig4-accuracy-by-variant": ("Test accuracy of the variants", variants, TEST, unpruned | best),
        "fig5-size-by-variant": ("Final sizes of the variants", variants, LEFT, left),
        "sizes-from-any-start": ("Where genetic searches end", found.cells["searches"], LEFT, {}),
    }
    return {
        name: sweep_curves(
            {
                str(name): _curve(some, "units", y)
                for name, some in rows.groupby("learning rate" if rows is cells else "variant", sort=False)
            },
            title=title,
            x_label="hidden units" if rows is cells else "units before pruning",
            y_label=y,
            x_scale="log",
            y_scale="log" if y == LEFT else "linear",
            points=points if found.testable else {},
        )
        for name, (title, rows, y, points) in drawn.items()
    }


def _at(published: Mapping[int, float], sizes: Iterable[float]) -> dict[float, float]:
    """Return the paper's numbers at the sizes that were run."""
    return {float(size): published[int(size)] for size in dict.fromkeys(sizes) if size in published}


def _angle_figures(found: FacesFindings) -> dict[str, str]:
    """Draw accuracy and size over the threshold angle."""
    angles, names = found.cells["angles"], {"test": "accuracy", "training": "training accuracy"}
    accuracies = {name: _curve(angles, "angle", column) for name, column in names.items()}
    left = {LEFT: _curve(angles, "angle", LEFT)}
    unpruned = {"test, paper (Table 1)": {0.0: paper.TABLE_1[0.01][100]}}
    sizes = {"paper": {15.0: paper.TABLE_3[100], 45.0: 100 - paper.REMOVED_AT_45_DEGREES}}
    drawn = {"accuracy": ("accuracy, %", accuracies, unpruned), "size": (LEFT, left, sizes)}
    return {
        f"fig2-{what}-by-angle": sweep_curves(
            curves,
            title=f"Distinctiveness pruning of 100 units: {what}",
            x_label="threshold angle, degrees",
            y_label=y_label,
            points=points if found.testable else {},
        )
        for what, (y_label, curves, points) in drawn.items()
    }


def _penalty_figures(found: FacesFindings) -> dict[str, str]:
    """Draw accuracy and size over λ, for both equations; the paper's points are of 100 units."""
    drawn: dict[str, str] = {}
    for fitness, rows in found.cells["penalties"].groupby("fitness", sort=False):
        relative = fitness == "relative"
        everywhere = {float(penalty): 100 - paper.REMOVED_BY_ABSOLUTE for penalty in rows["penalty"].unique()}
        sizes = {0.0: paper.LEFT_WITHOUT_PENALTY} if relative else everywhere
        accuracies = {0.0: paper.BEST_ACCURACY} if relative else {}
        for what, y, points in (("accuracy", TEST, accuracies), ("size", LEFT, sizes)):
            drawn[f"fig3-{what}-by-penalty-{fitness}"] = sweep_curves(
                {f"{size} units": _curve(some, "penalty", y) for size, some in rows.groupby("units")},
                title=f"Genetic pruning by equation {EQUATIONS[str(fitness)]}: {'accuracy' if y == TEST else y}",
                x_label="penalty λ",
                y_label=y,
                x_scale="linear" if relative else "log",
                points={"100 units, paper": points} if points and found.testable else {},
            )
    return drawn


def _curve(cells: Frame, x: str, y: str) -> dict[float, list[float]]:
    """Return the values of all networks at each place."""
    return {float(str(place)): rows["accuracy" if y == TEST else y].tolist() for place, rows in cells.groupby(x)}


def _forest_of(table: Frame) -> str:
    """Draw how the variants at the largest starting size differ from the unpruned network."""
    size = table["units"].max()
    rows = table[(table["units"] == size) & table["difference"].notna()].to_dict("records")
    drawn = [
        Difference(
            name=row["variant"],
            difference=row["difference"],
            low=row["low"],
            high=row["high"],
            significant=row["p"] <= ALPHA,
        )
        for row in rows
    ]
    title = f"From {size} units: test accuracy against unpruned"
    return differences(drawn, title=title, unit="points, more is better")
