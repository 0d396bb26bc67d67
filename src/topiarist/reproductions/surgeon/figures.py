"""The figures of the Surgeon: average accuracies over epochs (the paper's Figure 2), and evolutions (its 3 to 5)."""

from collections.abc import Mapping, Sequence

import numpy

from topiarist.methods.lineage import Lineage
from topiarist.report import learning_curves, lineage_curves, lineage_tree, topology_over_time
from topiarist.report.lineage import LineageView, Place
from topiarist.reproductions.findings import file_stem
from topiarist.reproductions.surgeon.tables import Cell, typical
from topiarist.reproductions.surgeon.training import Record

WORDS = {"published": "as published", "ours": "ours"}
OPTIMIZERS = {"sgd": "SGD", "adam": "Adam"}
FIGURES = ("topology", "accuracy", "lineage")  # of an evolution, in the order in which they are read


def figures_of(cells: Sequence[Cell]) -> dict[str, str]:
    """Draw every figure, by the name of its file."""
    averages = {average_stem(cell): average_curves(cells, cell) for cell in cells}
    drawn = {name: svg for name, svg in averages.items() if svg is not None}
    for cell in cells:
        drawn |= {f"{stem_of(cell)}-{name}": svg for name, svg in evolution_figures(cell).items()}
    return drawn


def stem_of(cell: Cell) -> str:
    """Return the beginning of the names of an evolution's figures."""
    return file_stem(f"{cell.data.name} {cell.topology} {cell.setting}")


def average_stem(cell: Cell) -> str:
    """Return the name of the figure of averages."""
    return file_stem(f"figure2 {cell.data.name} {cell.setting}")


def average_curves(cells: Sequence[Cell], like: Cell) -> str | None:
    """Draw mean validation accuracies over epochs, baseline and Surgeon of each topology; None of no accuracy."""
    curves: dict[str, list[list[float | None]]] = {}
    for cell in cells:
        if (cell.data.name, cell.setting) == (like.data.name, like.setting):
            optimizer = OPTIMIZERS[cell.baseline]
            plain = [each[cell.baseline]["curve"] for each in cell.seeds]
            curves[f"{cell.topology}, plain ({optimizer})"] = [at_epochs(curve) for curve in plain]
            winning = [winning_places(each["surgeon"]) for each in cell.seeds]
            curves[f"{cell.topology}, Surgeon"] = [at_epochs(places) for places in winning]
    if not any(value is not None for runs in curves.values() for run in runs for value in run):
        return None
    title = f"Average accuracy over epochs: {like.data.name}, {WORDS[like.setting]} (Figure 2 of the paper)"
    return learning_curves(curves, title=title, y_label="validation accuracy")


def winning_places(record: Record) -> list[Place]:
    """Return epochs and accuracies along the line that won."""
    view = LineageView(Lineage.from_record(record["lineage"]))
    return [place for node in view.winning for place in node.points]


def at_epochs(places: Sequence[Place]) -> list[float | None]:
    """Return the accuracy after each whole epoch from 1 on, between known ones on a straight line; None before."""
    known = {float(epoch): accuracy for epoch, accuracy in places}  # of several at one epoch, the last
    if not known:
        return []
    epochs = sorted(known)
    whole = numpy.arange(1, int(epochs[-1]) + 1)
    values = numpy.interp(whole, epochs, [known[epoch] for epoch in epochs])
    return [float(value) if epoch >= epochs[0] else None for epoch, value in zip(whole, values, strict=True)]


def evolution_figures(cell: Cell) -> dict[str, str]:
    """Draw a typical evolution: its topologies, its accuracies with the baseline's, and its tree."""
    kinds = typical(cell)
    lineage = Lineage.from_record(kinds["surgeon"]["lineage"])
    of = f"{cell.data.name}, {cell.topology}, {WORDS[cell.setting]}"
    drawn = {
        "topology": topology_over_time(lineage, title=f"Topology over time: {of}"),
        "lineage": lineage_tree(lineage, title=f"What was tried, and what was kept: {of}"),
    }
    if any(node.points for node in lineage.nodes):
        title = f"Accuracy along the way: {of}"
        drawn["accuracy"] = lineage_curves(lineage, title=title, baselines=baselines_of(cell, kinds))
    return drawn


def baselines_of(cell: Cell, kinds: Mapping[str, Record]) -> dict[str, list[Place]]:
    """Return the curves of plain training of the same seed, at the first topology and at the last."""
    named = {f"plain ({OPTIMIZERS[cell.baseline]})": cell.baseline, "plain, final topology": "final"}
    curves = {name: kinds[kind]["curve"] for name, kind in named.items() if kind in kinds}
    return {name: [(float(epoch), accuracy) for epoch, accuracy in curve] for name, curve in curves.items() if curve}
