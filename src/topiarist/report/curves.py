"""Curves: the mean of several runs and how far they lie apart, over epochs or over the values of a setting."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from matplotlib.transforms import ScaledTranslation, blended_transform_factory

from topiarist.errors import DataError
from topiarist.report.canvas import FAINT, LINE_STYLES, PALETTE, draw
from topiarist.report.svg import INK
from topiarist.report.wording import as_number, clean, shorten

LEAST_HEIGHT_INCHES = 4.0
LABEL_INCHES = 0.21
MARKERS = ("D", "s", "^", "v")
MARGIN_INCHES = 1.1

Run = Sequence[float | None]
Scale = Literal["linear", "log"]


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The places with a value of at least one run, the mean there, and the standard deviation (NaN for one value).

    `marker` is set where single points are shown, without a line.
    """

    name: str
    runs: int
    x: npt.NDArray[np.float64]
    mean: npt.NDArray[np.float64]
    spread: npt.NDArray[np.float64]
    marker: str | None = None


def learning_curves(
    curves: Mapping[str, Sequence[Run]],
    *,
    title: str,
    y_label: str,
    x_label: str = "epoch",
    y_scale: Scale = "linear",
) -> str:
    """Draw, for each name, the mean over its runs and a band of one standard deviation, as an SVG.

    Runs may differ in length and may have gaps: at each epoch the mean is over the runs that have a value there, and
    the line joins the epochs at which there is one. The first value of a run is that of epoch 1. On a logarithmic scale
    only what is above 0 can be shown.
    """
    summaries = [summarise(name, runs) for name, runs in curves.items()]
    if not any(curve.x.size for curve in summaries):
        raise DataError(f"cannot draw '{title}': no run has a value")

    return draw_curves(summaries, title=title, x_label=x_label, y_label=y_label, y_scale=y_scale, whole_numbers=True)


def sweep_curves(
    curves: Mapping[str, Mapping[float, Run]],
    *,
    title: str,
    x_label: str,
    y_label: str,
    x_scale: Scale = "linear",
    y_scale: Scale = "linear",
    points: Mapping[str, Mapping[float, float]] | None = None,
) -> str:
    """Draw, for each name, the mean at each value of a setting and a band of one standard deviation, as an SVG.

    `points` are single values from elsewhere, such as a paper's, and are marked without a line.
    """
    summaries = [averaged(name, values) for name, values in curves.items()]
    for number, (name, values) in enumerate((points or {}).items()):
        single = averaged(name, {x: [value] for x, value in values.items()})
        summaries.append(replace(single, marker=MARKERS[number % len(MARKERS)]))
    if not any(curve.x.size for curve in summaries):
        raise DataError(f"cannot draw '{title}': there is no value")
    return draw_curves(summaries, title=title, x_label=x_label, y_label=y_label, x_scale=x_scale, y_scale=y_scale)


def draw_curves(
    summaries: Sequence[Curve],
    *,
    title: str,
    x_label: str,
    y_label: str,
    x_scale: Scale = "linear",
    y_scale: Scale = "linear",
    whole_numbers: bool = False,
) -> str:
    """Draw curves with their names beside them."""

    def paint(figure: Figure, axes: Axes) -> None:
        axes.set(xlabel=clean(x_label), ylabel=clean(y_label), xscale=x_scale, yscale=y_scale)
        for scale, axis in ((x_scale, axes.xaxis), (y_scale, axes.yaxis)):
            if scale == "log":
                axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
                axis.set_minor_locator(NullLocator())
        if whole_numbers:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.grid(axis="y")
        axes.margins(x=0.02)
        lines = [draw_curve(axes, curve, number, dots=not whole_numbers) for number, curve in enumerate(summaries)]
        label_lines(figure, axes, summaries, lines, spacing=LABEL_INCHES / (height - MARGIN_INCHES))

    height = max(LEAST_HEIGHT_INCHES, LABEL_INCHES * len(summaries) + MARGIN_INCHES)
    return draw(paint, title=title, description=describe(summaries, x_label), height_inches=height)


def averaged(name: str, values: Mapping[float, Run]) -> Curve:
    """Average the runs at each value of a setting; what is not finite is left out."""
    known = {x: [number for number in map(as_number, runs) if math.isfinite(number)] for x, runs in values.items()}
    places = sorted(x for x, numbers in known.items() if numbers)
    return Curve(
        name=name,
        runs=max((len(known[x]) for x in places), default=0),
        x=np.array(places, dtype=float),
        mean=np.array([np.mean(known[x]) for x in places]),
        spread=np.array([np.std(known[x], ddof=1) if len(known[x]) > 1 else np.nan for x in places]),
    )


def summarise(name: str, runs: Sequence[Run]) -> Curve:
    """Average the runs of one name; what is not finite counts as a gap."""
    length = max(map(len, runs), default=0)
    values = np.full((len(runs), length), np.nan)
    for row, run in enumerate(runs):
        values[row, : len(run)] = [as_number(value) for value in run]
    there = np.isfinite(values)
    known = there.any(axis=0)
    values, there = np.where(there, values, 0.0)[:, known], there[:, known]
    counts = there.sum(axis=0)
    mean = values.sum(axis=0) / counts
    squares = (np.square(values - mean) * there).sum(axis=0)
    spread = np.where(counts > 1, np.sqrt(squares / np.maximum(counts - 1, 1)), np.nan)
    return Curve(name=name, runs=len(runs), x=(np.flatnonzero(known) + 1).astype(np.float64), mean=mean, spread=spread)


def draw_curve(axes: Axes, curve: Curve, number: int, *, dots: bool) -> Line2D:
    """Draw one line, with dots or without, and its band; a single point gets a marker and a bar instead."""
    if curve.marker is not None:
        (dots_alone,) = axes.plot(curve.x, curve.mean, color=INK, linestyle="", marker=curve.marker, markersize=6.0)
        dots_alone.set(markerfacecolor="none", markeredgewidth=1.4)
        return dots_alone
    colour, style = PALETTE[number % len(PALETTE)], LINE_STYLES[number % len(LINE_STYLES)]
    low, high = curve.mean - curve.spread, curve.mean + curve.spread
    if axes.get_yscale() == "log":
        low = np.maximum(low, curve.mean / 2)  # the band of a logarithmic scale would reach down without end
    alone = curve.x.size == 1
    if alone:
        axes.vlines(curve.x, low, high, colors=colour, linewidth=1.2)
    else:
        axes.fill_between(curve.x, low, high, color=colour, alpha=FAINT, linewidth=0)
    marker, size = ("o" if alone or dots else ""), (6.0 if alone else 3.5)
    (line,) = axes.plot(
        curve.x, curve.mean, color=colour, linestyle=style, linewidth=1.9, marker=marker, markersize=size
    )
    return line


def label_lines(
    figure: Figure, axes: Axes, curves: Sequence[Curve], lines: Sequence[Line2D], *, spacing: float
) -> None:
    """Name each line at the right, as near to its end as the other names allow."""
    # Across in inches from the right edge of the axes, upwards in heights of the axes.
    beside = figure.dpi_scale_trans + ScaledTranslation(1, 0, axes.transAxes)  # type: ignore[arg-type]
    where = blended_transform_factory(beside, axes.transAxes)
    axes.get_ylim()  # settles the limits, which are computed late
    upwards = axes.transData + axes.transAxes.inverted()
    ends = [upwards.transform((curve.x[-1], curve.mean[-1]))[1] if curve.x.size else -math.inf for curve in curves]
    order = sorted(range(len(curves)), key=lambda number: -ends[number])
    places = spread_out([ends[number] for number in order], spacing)
    for number, place in zip(order, places, strict=True):
        line, curve = lines[number], curves[number]
        sample = Line2D([0.12, 0.56], [place, place], transform=where, clip_on=False)
        sample.set(color=line.get_color(), linestyle=LINE_STYLES[number % len(LINE_STYLES)], linewidth=1.9)
        if curve.marker is not None:
            sample.set(linestyle="", marker=curve.marker, markersize=6.0, markerfacecolor="none", markeredgewidth=1.4)
            sample.set_data([0.34], [place])
        axes.add_artist(sample)
        name = shorten(curve.name) + ("" if curve.x.size else " (no value)")
        axes.text(0.65, place, name, transform=where, verticalalignment="center")


def spread_out(wanted: Sequence[float], spacing: float) -> list[float]:
    """Give places from high to low, at least `spacing` apart, that stay above 0 where they can."""
    places: list[float] = []
    for place in wanted:
        places.append(min([place, 1.0] if not places else [place, places[-1] - spacing]))
    floor = 0.0
    for position in reversed(range(len(places))):
        places[position] = max(places[position], floor)
        floor = places[position] + spacing
    return places


def describe(curves: Sequence[Curve], x_label: str) -> str:
    """Say in words where each curve ends."""
    ends = [
        f"{curve.name}: {curve.mean[-1]:.4g} at {x_label} {curve.x[-1]:g} ({runs_in_words(curve.runs)})"
        if curve.x.size
        else f"{curve.name}: no value"
        for curve in curves
    ]
    return "Mean at the end. " + "; ".join(ends) + "."


def runs_in_words(count: int) -> str:
    """Give a count of runs in words."""
    return "1 run" if count == 1 else f"{count} runs"
