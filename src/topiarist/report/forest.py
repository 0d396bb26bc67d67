"""Forest plots: differences from a baseline, one row per name, each with its interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from topiarist.errors import DataError
from topiarist.report.canvas import BLUE, VERMILLION, Drawing, Look, draw
from topiarist.report.cells import decimals, signed, without_noise
from topiarist.report.svg import INK
from topiarist.report.wording import as_number, clean, shorten

_ROW_INCHES, _MARGIN_INCHES = 0.32, 1.55
_LOOKS: dict[bool, Look] = {
    True: {"color": BLUE, "marker": "o", "linewidth": 2.2, "markersize": 7.0},
    False: {"color": INK, "marker": "D", "linewidth": 1.2, "markersize": 5.0, "alpha": 0.6},
}


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A row of a forest plot: how far a name lies from the baseline, from `low` to `high`; None where unknown."""

    name: str
    difference: float | None
    low: float | None
    high: float | None = None
    significant: bool


def differences(rows: Sequence[Difference], *, title: str, unit: str) -> Drawing:
    """Return an SVG of differences and their intervals, with the numbers beside them.

    Rows without any difference raise a DataError.

    Parameters
    ----------
    rows : sequence of Difference
    title, unit : str
        The heading, and what the differences are in.
    """
    numbers = [[as_number(value) for value in (row.difference, row.low, row.high)] for row in rows]
    places = decimals(without_noise([value for row in numbers for value in row if math.isfinite(value)]))
    written = [
        ["–" if math.isnan(value) else signed(value, places).replace("-", "−") for value in row] for row in numbers
    ]
    texts = [f"{difference}  [{low}, {high}]" for difference, low, high in written]
    return _draw_rows(rows, texts, title=title, unit=unit, word="significant")


def lower_bounds(rows: Sequence[Difference], *, title: str, unit: str, margin: float) -> Drawing:
    """Return an SVG of one-sided comparisons: the interval goes from the lower bound to the difference.

    What lies wholly to the right of the line at minus the margin is proven to be not worse. The numbers themselves
    belong in a table.
    """
    one_sided = [replace(row, high=row.difference) for row in rows]
    return _draw_rows(one_sided, [], title=title, unit=unit, word="proven", margin=margin)


def _draw_rows(
    rows: Sequence[Difference], texts: Sequence[str], *, title: str, unit: str, word: str, margin: float | None = None
) -> Drawing:
    if not any(math.isfinite(as_number(row.difference)) for row in rows):
        raise DataError(f"cannot draw '{title}': no row has a difference")
    words = {True: word, False: f"not {word}"}

    def paint(figure: Figure, axes: Axes) -> None:
        axes.set_xlabel("difference from the baseline" + (f" ({clean(unit)})" if unit else ""))
        axes.axvline(0.0, color=INK, linewidth=1.0, linestyle=(0, (3, 2)), alpha=0.7)
        axes.margins(x=0.06)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_yticks(range(len(rows)), [shorten(row.name) for row in rows])
        for place, row in enumerate(rows):
            look, low = _LOOKS[row.significant], as_number(row.low)
            axes.plot([low, as_number(row.high)], [place, place], **look | {"marker": ""})
            axes.plot([as_number(row.difference)], [place], linestyle="", markeredgewidth=0, **look)
            if margin is not None:
                axes.plot([low], [place], "|", color=look["color"], markersize=9)
        for place, text in enumerate(texts):
            axes.text(1.03, place, text, transform=axes.get_yaxis_transform(), verticalalignment="center", fontsize=8.5)
        kinds = sorted({row.significant for row in rows}, reverse=True)
        handles = [Line2D([], [], markeredgewidth=0, label=words[kind], **_LOOKS[kind]) for kind in kinds]
        if margin is not None:
            handles.append(axes.axvline(-margin, color=VERMILLION, linewidth=1.2, label="margin: the drop allowed"))
        figure.legend(handles=handles, loc="outside lower left", ncols=3)

    numbers = [f"{text}, " for text in texts] or [""] * len(rows)
    said = [f"{row.name}: {number}{words[row.significant]}" for row, number in zip(rows, numbers, strict=True)]
    height = _ROW_INCHES * len(rows) + _MARGIN_INCHES
    return draw(paint, title=title, description=f"{'; '.join(said)}.", height_inches=height)
