"""Figure 1 of the scenes paper: a mixture of pieces as a wave form and as a log-mel spectrogram, the seams marked."""

from itertools import pairwise

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from numpy.typing import NDArray

from topiarist.report.canvas import BLUE, VERMILLION, draw
from topiarist.reproductions.scenes.mixing import Example

COLUMNS = 120  # of the spectrogram: a page holds shapes, no pixels, and each cell is one
LEVELS = 8  # of loudness, each one shade
STEPS = 600  # of the wave form: the lowest and the highest value of each
HEIGHT_INCHES = 5.2


def mixture_figure(example: Example) -> str:
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

    return draw(paint, title="A mixture, its seams marked", description=described(example), height_inches=HEIGHT_INCHES)


def described(example: Example) -> str:
    """Say in words what the mixture is made of."""
    pieces = len(example.seams) + 1
    places = "" if example.groups is None else f" from {example.groups} cities or folds"
    return f"{pieces} pieces of {example.clips} clips{places}, of the class {example.label}."


def envelope(wave: NDArray[numpy.float32]) -> tuple[NDArray[numpy.float32], NDArray[numpy.float32]]:
    """Return the lowest and the highest value of each of a few steps of time."""
    parts = numpy.array_split(wave, min(STEPS, len(wave)))
    return numpy.array([part.min() for part in parts]), numpy.array([part.max() for part in parts])


def shades(spectrogram: NDArray[numpy.float32], seconds: float) -> list[PathPatch]:
    """Return one shape for each level of loudness: the rectangles of all cells that are at least as loud.

    Neighbours in time are one rectangle. What is louder lies on more shapes and is darker.
    """
    frames = spectrogram.shape[1]
    edges = numpy.linspace(0, frames, min(COLUMNS, frames) + 1).round().astype(int)
    columns = [spectrogram[:, start:end].mean(axis=1) for start, end in pairwise(edges.tolist())]
    cells = numpy.stack(columns, axis=1)  # (bands, columns)
    limits = numpy.quantile(cells, numpy.linspace(0, 1, LEVELS + 1)[1:-1])
    times = edges * (seconds / frames)  # columns hold one frame or two: each is as wide as its frames
    found = []
    for limit in limits:
        outlines = [
            rectangle(band, times[run[0]], times[run[1]])
            for band, row in enumerate(cells >= limit)
            for run in runs(row)
        ]
        if outlines:
            outline = Outline.make_compound_path(*outlines)
            found.append(PathPatch(outline, facecolor=BLUE, alpha=1.6 / LEVELS, linewidth=0))
    return found


def runs(row: NDArray[numpy.bool_]) -> list[tuple[int, int]]:
    """Return where each stretch of True begins and ends: [0, 1, 1, 0] has one, (1, 3)."""
    edges = numpy.flatnonzero(numpy.diff(numpy.concatenate([[False], row, [False]]).astype(int)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def rectangle(band: int, left: float, right: float) -> Outline:
    """Return the outline of a stretch of time in one band."""
    corners = [(left, band), (right, band), (right, band + 1), (left, band + 1), (left, band)]
    return Outline(corners, closed=True)
