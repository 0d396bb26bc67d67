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

from topiarist.errors import DataError
from topiarist.report.canvas import FAINT, LINE_STYLES, PALETTE, Drawing, Look, draw
from topiarist.report.svg import INK
from topiarist.report.wording import as_number, clean, shorten

_LEAST_HEIGHT_INCHES, _NAME_INCHES, _MARGIN_INCHES = 4.0, 0.21, 1.1
_POINT_MARKERS = ("D", "s", "^", "v")

Run = Sequence[float | None]
Scale = Literal["linear", "log"]


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The places with a value, the mean there and the standard deviation; `marker` is set for points without a line."""

    name: str
    runs: int
    x: npt.NDArray[np.float64]
    mean: npt.NDArray[np.float64]
    spread: npt.NDArray[np.float64]
    marker: str = ""


def learning_curves(
    curves: Mapping[str, Sequence[Run]], *, title: str, y_label: str, x_label: str = "epoch", y_scale: Scale = "linear"
) -> Drawing:
    """Return an SVG of the mean over the runs of each name, epoch by epoch, with a band of one standard deviation.

    Parameters
    ----------
    curves : mapping of names to runs
        The first value of a run is that of epoch 1. Runs may differ in length and may have gaps: at each epoch the mean
        is over the runs that have a value there, and the line joins the epochs at which there is one.
    title, y_label, x_label : str
    y_scale : "linear" or "log"
        On a logarithmic scale, only what is above 0 can be shown.

    Raises
    ------
    DataError
        If no run has a value.
    """
    summaries = []
    for name, runs in curves.items():
        epochs = range(max(map(len, runs), default=0))
        values = {epoch + 1.0: [run[epoch] for run in runs if epoch < len(run)] for epoch in epochs}
        summaries.append(replace(summarise(name, values), runs=len(runs)))
    return _draw_curves(summaries, title=title, epochs=True, xlabel=x_label, ylabel=y_label, yscale=y_scale)


def sweep_curves(
    curves: Mapping[str, Mapping[float, Run]],
    *,
    title: str,
    x_label: str,
    y_label: str,
    x_scale: Scale = "linear",
    y_scale: Scale = "linear",
    points: Mapping[str, Mapping[float, float]] | None = None,
) -> Drawing:
    """Return an SVG of the mean at each value of a setting, with a band of one standard deviation.

    Parameters
    ----------
    curves : mapping of names to the values of all runs at each value of the setting
    title, x_label, y_label, x_scale, y_scale : str
        As in `learning_curves`.
    points : mapping of names to single values, optional
        Values from elsewhere, such as a paper's: marked without a line.
    """
    summaries = [summarise(name, values) for name, values in curves.items()]
    for number, (name, values) in enumerate((points or {}).items()):
        single = summarise(name, {x: [value] for x, value in values.items()})
        summaries.append(replace(single, marker=_POINT_MARKERS[number % len(_POINT_MARKERS)]))
    settings = {"xlabel": x_label, "ylabel": y_label, "xscale": x_scale, "yscale": y_scale}
    return _draw_curves(summaries, title=title, epochs=False, **settings)


def summarise(name: str, values: Mapping[float, Run]) -> Curve:
    """Average the runs at each place; what is not finite is left out."""
    known = {x: [number for number in map(as_number, runs) if not math.isnan(number)] for x, runs in values.items()}
    places = sorted(x for x, numbers in known.items() if numbers)
    return Curve(
        name=name,
        runs=max((len(known[x]) for x in places), default=0),
        x=np.array(places, dtype=float),
        mean=np.array([np.mean(known[x]) for x in places]),
        spread=np.array([np.std(known[x], ddof=1) if len(known[x]) > 1 else np.nan for x in places]),
    )


def _draw_curves(curves: Sequence[Curve], *, title: str, epochs: bool, **settings: str) -> Drawing:
    """Draw curves, named in the order of their ends; those over epochs have whole numbers across, and no dots."""
    if not any(curve.x.size for curve in curves):
        raise DataError(f"cannot draw '{title}': no run has a value")

    def paint(figure: Figure, axes: Axes) -> None:
        axes.set(**{name: clean(setting) for name, setting in settings.items()})
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() == "log":
                axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
                axis.set_minor_locator(NullLocator())
        if epochs:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.grid(axis="y")
        axes.margins(x=0.02)
        lines = [_draw_curve(axes, curve, number, dots=not epochs) for number, curve in enumerate(curves)]
        ends = {line: curve.mean[-1] if curve.x.size else -math.inf for line, curve in zip(lines, curves, strict=True)}
        named = sorted(lines, key=lambda line: -ends[line])
        axes.legend(handles=named, loc="upper left", bbox_to_anchor=(1.02, 1.0), handlelength=3.2, labelspacing=0.6)

    ends = [
        f"{curve.name}: {curve.mean[-1]:.4g} at {settings['xlabel']} {curve.x[-1]:g} (runs: {curve.runs})"
        if curve.x.size
        else f"{curve.name}: no value"
        for curve in curves
    ]
    height = max(_LEAST_HEIGHT_INCHES, _NAME_INCHES * len(curves) + _MARGIN_INCHES)
    return draw(paint, title=title, description=f"Mean at the end. {'; '.join(ends)}.", height_inches=height)


def _draw_curve(axes: Axes, curve: Curve, number: int, *, dots: bool) -> Line2D:
    """Draw one line, with dots or without, and its band; a single value gets a dot and a bar instead."""
    label = shorten(curve.name) + ("" if curve.x.size else " (no value)")
    if curve.marker:
        look: Look = {"color": INK, "markersize": 6.0, "markerfacecolor": "none", "markeredgewidth": 1.4}
        return axes.plot(curve.x, curve.mean, linestyle="", marker=curve.marker, label=label, **look)[0]
    colour, style = PALETTE[number % len(PALETTE)], LINE_STYLES[number % len(LINE_STYLES)]
    low, high = curve.mean - curve.spread, curve.mean + curve.spread
    if axes.get_yscale() == "log":
        low = np.maximum(low, curve.mean / 2)  # The band of a logarithmic scale would reach down without end.
    alone = curve.x.size == 1
    if alone:
        axes.vlines(curve.x, low, high, colors=colour, linewidth=1.2)
    else:
        axes.fill_between(curve.x, low, high, color=colour, alpha=FAINT, linewidth=0)
    look = {"marker": "o" if alone or dots else "", "markersize": 6.0 if alone else 3.5, "linestyle": style}
    return axes.plot(curve.x, curve.mean, color=colour, linewidth=1.9, label=label, **look)[0]
