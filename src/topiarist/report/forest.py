"""Differences from a baseline, one row a name, each with its interval."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from topiarist.errors import DataError
from topiarist.report.canvas import BLUE, VERMILLION, draw
from topiarist.report.cells import decimals, signed, without_noise
from topiarist.report.svg import INK
from topiarist.report.wording import as_number, clean, required, shorten

ROW_INCHES = 0.32
MARGIN_INCHES = 1.55
LOOKS: dict[bool, dict[str, Any]] = {
    True: {"color": BLUE, "marker": "o", "linewidth": 2.2, "markersize": 7.0},
    False: {"color": INK, "marker": "D", "linewidth": 1.2, "markersize": 5.0, "alpha": 0.6},
}


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How far one name lies from the baseline; NaN where it is not known."""

    name: str
    difference: float
    low: float
    high: float
    significant: bool


def differences(rows: Sequence[Mapping[str, Any]], *, title: str, unit: str) -> str:
    """Draw a forest plot as an SVG: each row has `name`, `difference`, `low`, `high` and `significant`."""
    found = [read_row(row) for row in rows]
    if not any(math.isfinite(row.difference) for row in found):
        raise DataError(f"cannot draw '{title}': no row has a difference")
    texts = texts_of(found)

    def paint(figure: Figure, axes: Axes) -> None:
        prepare_rows(axes, found, unit)
        for place, (row, text) in enumerate(zip(found, texts, strict=True)):
            draw_row(axes, row, place)
            axes.text(1.03, place, text, transform=axes.get_yaxis_transform(), verticalalignment="center", fontsize=8.5)
        add_legend(figure, found, ("significant", "not significant"))

    height = ROW_INCHES * len(found) + MARGIN_INCHES
    return draw(paint, title=title, description=describe(found, texts), height_inches=height)


def lower_bounds(rows: Sequence[Mapping[str, Any]], *, title: str, unit: str, margin: float) -> str:
    """Draw one-sided comparisons as an SVG: each row has `name`, `difference`, `low` and `significant`.

    What lies wholly to the right of the line at minus the margin is proven to be not worse. The figures themselves
    belong in a table.
    """
    found = [read_row(row | {"high": required(row, "difference")}) for row in map(dict, rows)]
    if not any(math.isfinite(row.difference) for row in found):
        raise DataError(f"cannot draw '{title}': no row has a difference")

    def paint(figure: Figure, axes: Axes) -> None:
        prepare_rows(axes, found, unit)
        axes.axvline(-margin, color=VERMILLION, linewidth=1.2, label="margin: the drop allowed")
        for place, row in enumerate(found):
            draw_row(axes, row, place)
            axes.plot([row.low], [place], "|", color=LOOKS[row.significant]["color"], markersize=9)
        add_legend(figure, found, ("proven", "not proven"), axes.get_legend_handles_labels()[0][:1])

    said = [f"{row.name}: {'' if row.significant else 'not '}proven" for row in found]
    height = ROW_INCHES * len(found) + MARGIN_INCHES
    return draw(paint, title=title, description="; ".join(said) + ".", height_inches=height)


def read_row(record: Mapping[str, Any]) -> Difference:
    """Read one record."""
    difference, low, high = (as_number(required(record, name)) for name in ("difference", "low", "high"))
    name, significant = str(required(record, "name")), bool(required(record, "significant"))
    return Difference(name=name, difference=difference, low=low, high=high, significant=significant)


def prepare_rows(axes: Axes, rows: Sequence[Difference], unit: str) -> None:
    """Name the axis and the rows, and draw the line of no difference."""
    axes.set_xlabel("difference from the baseline" + (f" ({clean(unit)})" if unit else ""))
    axes.axvline(0.0, color=INK, linewidth=1.0, linestyle=(0, (3, 2)), alpha=0.7)
    axes.margins(x=0.06)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks(range(len(rows)), [shorten(row.name) for row in rows])


def draw_row(axes: Axes, row: Difference, place: int) -> None:
    """Draw one interval and its middle."""
    look = LOOKS[row.significant]
    axes.plot(
        [row.low, row.high], [place, place], color=look["color"], linewidth=look["linewidth"], alpha=look.get("alpha")
    )
    axes.plot([row.difference], [place], linestyle="", markeredgewidth=0, **look)


def add_legend(
    figure: Figure, rows: Sequence[Difference], words: tuple[str, str], others: Sequence[Artist] = ()
) -> None:
    """Say what the markers mean, of which only those in use: first the word for the significant."""
    kinds = sorted({row.significant for row in rows}, reverse=True)
    handles = [Line2D([], [], markeredgewidth=0, label=words[not kind], **LOOKS[kind]) for kind in kinds]
    figure.legend(handles=[*handles, *others], loc="outside lower left", ncols=3)


def texts_of(rows: Sequence[Difference]) -> list[str]:
    """Write each difference and its interval with the same decimals."""
    known = [value for row in rows for value in (row.difference, row.low, row.high) if math.isfinite(value)]
    places = decimals([value for value in without_noise(known) if value is not None])

    def written(value: float) -> str:
        return "–" if math.isnan(value) else signed(value, places).replace("-", "−")

    return [f"{written(row.difference)}  [{written(row.low)}, {written(row.high)}]" for row in rows]


def describe(rows: Sequence[Difference], texts: Sequence[str]) -> str:
    """Say the rows in words."""
    said = [
        f"{row.name}: {text}, {'' if row.significant else 'not '}significant"
        for row, text in zip(rows, texts, strict=True)
    ]
    return "; ".join(said) + "."
