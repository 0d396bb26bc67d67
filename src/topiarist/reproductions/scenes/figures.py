"""The figures of the scenes: accuracy against size, sparsity and loss while training, and Figure 1 of the paper.

Figure 1 is a mixture of pieces as a waveform and as a log-mel spectrogram, the seams marked.
"""

from itertools import pairwise

import numpy
import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from numpy.typing import NDArray

from topiarist.data.readers.sound import Wave
from topiarist.report import learning_curves, pareto_figure
from topiarist.report.canvas import BLUE, VERMILLION, draw
from topiarist.reproductions.scenes.data import MixtureExample
from topiarist.reproductions.scenes.tables import front_points
from topiarist.study.results import Results

COLUMNS = 120  # of the spectrogram: a page holds shapes, no pixels, and each cell is one
LEVELS = 8  # of loudness, each one shade
STEPS = 600  # of the waveform: the lowest and the highest value of each
HEIGHT_INCHES = 5.2


def scenes_figures(table_3: pandas.DataFrame, vgg: Results, example: MixtureExample | None) -> dict[str, str]:
    """Draw every figure, by the name of its file."""
    drawn = {} if example is None else {"mixture": mixture_figure(example)}
    if len(table_3):
        drawn["accuracy-against-size"] = pareto_figure(
            front_points(table_3),
            size_label="KB of the packed file",
            score_label="macro accuracy, %",
            title="Accuracy against size on disk",
        )
    done = [row for row in vgg.rows if row["state"] == "done"]
    for name, figure, title, y_label in (
        ("sparsity", "sparsity", "V(2,2,3,3): how sparse its kernels are", "fraction of zeros"),
        ("training-loss", "train_loss", "V(2,2,3,3): loss while training", "loss on the training part"),
    ):
        runs: dict[str, list[list[float | None]]] = {}
        for row in done:
            values = [epoch[figure] for epoch in vgg.history(row)]
            if values[0] is not None:  # what is not pruned has no sparsity
                runs.setdefault(row["label"], []).append(values)
        if runs:
            drawn[name] = learning_curves(runs, title=title, y_label=y_label)
    return drawn


def mixture_figure(example: MixtureExample) -> str:
    """Draw a mixture as an SVG."""
    seconds = len(example.wave) / example.rate

    def paint(figure: Figure, axes: Axes) -> None:
        axes.remove()
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 3))
        low, high = envelope(example.wave)
        above.fill_between(numpy.linspace(0, seconds, len(low)), low, high, color=BLUE, linewidth=0.4)
        above.set(ylabel="amplitude", xlim=(0, seconds))
        for patch in shades(example.spectrogram, seconds):
            below.add_patch(patch)
        below.set(ylabel="mel band", xlabel="seconds", ylim=(0, len(example.spectrogram)))
        for axis in (above, below):
            for seam in example.seams:
                axis.axvline(seam / example.rate, color=VERMILLION, linewidth=0.9, linestyle=(0, (3, 2)))

    title = "A mixture, its seams marked"
    return draw(paint, title=title, description=str(example), height_inches=HEIGHT_INCHES)


def envelope(wave: Wave) -> tuple[Wave, Wave]:
    """Return the lowest and the highest value of each of a few steps of time."""
    parts = numpy.array_split(wave, min(STEPS, len(wave)))
    return numpy.array([part.min() for part in parts]), numpy.array([part.max() for part in parts])


def shades(spectrogram: Wave, seconds: float) -> list[PathPatch]:
    """Return one shape for each level of loudness: the rectangles of all cells that are at least as loud.

    Neighbours in time are one rectangle. What is louder lies on more shapes and is darker.
    """
    frames = spectrogram.shape[1]
    edges = numpy.linspace(0, frames, min(COLUMNS, frames) + 1).round().astype(int)
    columns = [spectrogram[:, start:end].mean(axis=1) for start, end in pairwise(edges.tolist())]
    cells = numpy.stack(columns, axis=1)  # (bands, columns)
    times = edges * (seconds / frames)  # columns hold one frame or two: each is as wide as its frames
    found = []
    for limit in numpy.quantile(cells, numpy.linspace(0, 1, LEVELS + 1)[1:-1]):
        outlines = [
            _rectangle(band, times[start], times[end])
            for band, row in enumerate(cells >= limit)
            for start, end in runs_of(row)
        ]
        if outlines:
            outline = Outline.make_compound_path(*outlines)
            found.append(PathPatch(outline, facecolor=BLUE, alpha=1.6 / LEVELS, linewidth=0))
    return found


def runs_of(row: NDArray[numpy.bool_]) -> list[tuple[int, int]]:
    """Return where each stretch of True begins and ends: [0, 1, 1, 0] has one, (1, 3)."""
    edges = numpy.flatnonzero(numpy.diff(numpy.concatenate([[False], row, [False]]).astype(int)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _rectangle(band: int, left: float, right: float) -> Outline:
    corners = [(left, band), (right, band), (right, band + 1), (left, band + 1), (left, band)]
    return Outline(corners, closed=True)
