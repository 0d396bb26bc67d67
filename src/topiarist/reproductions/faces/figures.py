"""The figures of the faces; the paper's numbers are points in them where the data are the paper's."""

from typing import Any

import pandas

from topiarist.report import Difference, differences, learning_curves, sweep_curves
from topiarist.reproductions.faces import paper
from topiarist.reproductions.faces.found import Found

Frame = pandas.DataFrame
Points = dict[str, dict[float, float]]
ALPHA = 0.05
EQUATIONS = {"relative": 5, "absolute": 6}  # of the paper


def figures_of(found: Found) -> dict[str, str]:
    """Draw every figure, by the name of its file."""
    return {
        **training_figures(found),
        **angle_figures(found),
        **penalty_figures(found),
        **variant_figures(found),
        "sizes-from-any-start": sweep_curves(
            curves(found.cells["searches"], "variant", "units", "units left"),
            **over_sizes("Where genetic searches end", "units left"),
            y_scale="log",
        ),
        "ours-against-unpruned": forest_of(found.tables["ours"]),
    }


def training_figures(found: Found) -> dict[str, str]:
    """Draw the long training, and Table 1."""
    cells = found.cells["table 1"]
    sizes = set(cells["units"])
    points = {
        f"{rate:g}, paper": {float(size): value for size, value in paper.TABLE_1[rate].items() if size in sizes}
        for rate in dict.fromkeys(cells["learning rate"])
    }
    title = "Long training, 20 units"
    return {
        "learning-curves-loss": learning_curves(found.losses, title=title, y_label="log loss"),
        "learning-curves-accuracy": learning_curves(found.accuracies, title=title, y_label="accuracy"),
        "table1-accuracy-by-size": sweep_curves(
            curves(cells, "learning rate", "units", "accuracy"),
            **over_sizes("Table 1: test accuracy by learning rate", "test accuracy, %", "hidden units"),
            points=of_paper(found, points),
        ),
    }


def angle_figures(found: Found) -> dict[str, str]:
    """Draw accuracy and size over the threshold angle."""
    angles = found.cells["angles"]
    x_label = "threshold angle, degrees"
    left = 100 - paper.REMOVED_AT_45_DEGREES
    return {
        "fig2-accuracy-by-angle": sweep_curves(
            {"test": curve(angles, "angle", "accuracy"), "training": curve(angles, "angle", "training accuracy")},
            title="Distinctiveness pruning of 100 units: accuracy",
            x_label=x_label,
            y_label="accuracy, %",
            points=of_paper(found, {"test, paper (Table 1)": {0.0: paper.TABLE_1[0.01][100]}}),
        ),
        "fig2-size-by-angle": sweep_curves(
            {"units left": curve(angles, "angle", "units left")},
            title="Distinctiveness pruning of 100 units: size",
            x_label=x_label,
            y_label="units left",
            points=of_paper(found, {"paper": {15.0: paper.TABLE_3[100], 45.0: left}}),
        ),
    }


def penalty_figures(found: Found) -> dict[str, str]:
    """Draw accuracy and size over λ, for both equations."""
    drawn = {}
    for fitness, rows in found.cells["penalties"].groupby("fitness", sort=False):
        places = sorted(set(rows["penalty"]))
        known: dict[str, Points] = {"accuracy": {}, "units left": {}}
        if fitness == "relative":
            known["accuracy"] = {"100 units, paper": {0.0: paper.BEST_ACCURACY}}
            known["units left"] = {"100 units, paper": {0.0: paper.LEFT_WITHOUT_PENALTY}}
        else:
            left = 100 - paper.REMOVED_BY_ABSOLUTE
            known["units left"] = {"100 units, paper": {float(place): left for place in places}}
        for what, points in known.items():
            name = f"fig3-{'accuracy' if what == 'accuracy' else 'size'}-by-penalty-{fitness}"
            drawn[name] = sweep_curves(
                {f"{size} units": curve(some, "penalty", what) for size, some in rows.groupby("units")},
                title=f"Genetic pruning by equation {EQUATIONS[str(fitness)]}: {what}",
                x_label="penalty λ",
                y_label="test accuracy, %" if what == "accuracy" else what,
                x_scale="linear" if fitness == "relative" else "log",
                points=of_paper(found, points),
            )
    return drawn


def variant_figures(found: Found) -> dict[str, str]:
    """Draw the four variants over starting sizes."""
    variants = found.cells["variants"]
    sizes = [float(size) for size in dict.fromkeys(variants["units"])]
    unpruned = {size: paper.TABLE_1[0.01][int(size)] for size in sizes if size in paper.TABLE_1[0.01]}
    low, high = paper.LEFT_AT_45_DEGREES
    left = {
        "15°, paper": {size: paper.TABLE_3[int(size)] for size in sizes if size in paper.TABLE_3},
        "45°, paper, from": {size: min(low, size) for size in sizes},
        "45°, paper, to": {size: min(high, size) for size in sizes},
        "λ = 0, paper": {100.0: paper.LEFT_WITHOUT_PENALTY},
    }
    few = variants[variants["variant"].isin(["unpruned", "15°"])]
    best = {"λ = 0, paper": {100.0: paper.BEST_ACCURACY}}
    return {
        "fig1-before-and-after-15": sweep_curves(
            curves(few, "variant", "units", "accuracy"),
            **over_sizes("Before and after distinctiveness pruning at 15°", "test accuracy, %"),
            points=of_paper(found, {"unpruned, paper": unpruned}),
        ),
        "fig4-accuracy-by-variant": sweep_curves(
            curves(variants, "variant", "units", "accuracy"),
            **over_sizes("Test accuracy of the variants", "test accuracy, %"),
            points=of_paper(found, {"unpruned, paper": unpruned, **best}),
        ),
        "fig5-size-by-variant": sweep_curves(
            curves(variants, "variant", "units", "units left"),
            **over_sizes("Final sizes of the variants", "units left"),
            y_scale="log",
            points=of_paper(found, left),
        ),
    }


def of_paper(found: Found, points: Points) -> Points:
    """Return the paper's points, and none where the data are others."""
    return points if found.testable else {}


def over_sizes(title: str, y_label: str, x_label: str = "units before pruning") -> dict[str, Any]:
    """Return the words of a figure over sizes."""
    return {"title": title, "x_label": x_label, "y_label": y_label, "x_scale": "log"}


def curves(cells: Frame, name: str, x: str, y: str) -> dict[str, dict[float, list[float]]]:
    """Return one curve for each value of a column."""
    return {str(value): curve(rows, x, y) for value, rows in cells.groupby(name, sort=False)}


def curve(cells: Frame, x: str, y: str) -> dict[float, list[float]]:
    """Return the values of all networks at each place."""
    return {float(str(place)): rows[y].tolist() for place, rows in cells.groupby(x)}


def forest_of(table: Frame) -> str:
    """Draw how the variants at the largest starting size differ from the unpruned network."""
    size = table["units"].max()
    rows = [
        Difference(
            name=row["variant"],
            difference=row["difference"],
            low=row["low"],
            high=row["high"],
            significant=bool(row["p"] <= ALPHA),
        )
        for row in table[(table["units"] == size) & table["difference"].notna()].to_dict("records")
    ]
    return differences(rows, title=f"From {size} units: test accuracy against unpruned", unit="points, more is better")
