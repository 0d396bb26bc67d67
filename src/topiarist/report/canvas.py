"""The canvas of all figures: one look, no global state, the same bytes every time.

The palette is that of M. Okabe and K. Ito, "Color Universal Design" (2008), without its yellow, which is hard to see on
white, and with the colour of the text for its black.
"""

import io
import textwrap
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from topiarist.report.svg import INK, finish
from topiarist.report.wording import clean

Painter = Callable[[Figure, Axes], None]
Look = dict[str, Any]  # Keyword arguments of an artist.

BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, INK)
# Solid, dashed, dotted, dash-dotted: with seven colours, 28 lines differ before a pair comes again.
LINE_STYLES = ((0, ()), (0, (4.5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)))
FAINT = 0.16
WIDTH_INCHES = 7.4  # On a page of 880 pixels, 9.5 points of these 533 are 15.7 pixels: about the size of its text.
_SETTINGS: dict[str, str | float | bool] = {
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "grid.color", "xtick.color", "ytick.color"), INK
    ),
    **dict.fromkeys(("axes.spines.left", "axes.spines.right", "axes.spines.top", "legend.frameon"), False),
    **dict.fromkeys(("axes.linewidth", "grid.linewidth", "xtick.major.width"), 0.7),
    "svg.fonttype": "none",
    "svg.hashsalt": "topiarist",
    "text.parse_math": False,
    "font.size": 9.5,
    "axes.facecolor": "none",
    "axes.labelpad": 7.0,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "figure.constrained_layout.h_pad": 0.1,
    "figure.constrained_layout.w_pad": 0.01,
    "grid.alpha": FAINT,
    "xtick.major.size": 3.0,
    "ytick.major.size": 0.0,
    "ytick.major.pad": 6.0,
    "legend.borderaxespad": 0.0,
    "legend.borderpad": 0.25,
    "lines.solid_capstyle": "round",
}


class ShownFigure(Figure):
    """A figure of matplotlib that notebooks show in the colours of their page, whether pyplot is loaded or not."""

    svg = ""

    def _repr_html_(self) -> str:
        return self.svg


class Drawing(str):
    """The SVG of a figure, and the figure of matplotlib that it was made of."""

    figure: ShownFigure


def draw(
    paint: Painter,
    *,
    title: str,
    description: str,
    height_inches: float = 3.7,
    width_inches: float = WIDTH_INCHES,
    hover: Mapping[str, str] | None = None,
) -> Drawing:
    """Return the SVG of what `paint` draws on empty axes; `hover` has titles of artists by their `gid`."""
    with matplotlib.style.context(["default", _SETTINGS]), warnings.catch_warnings():
        # A reader's font may well have the letters that the one used for measuring lacks.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from", category=UserWarning)
        figure = ShownFigure(figsize=(width_inches, height_inches), dpi=72, layout="constrained", facecolor="none")
        FigureCanvasSVG(figure)
        heading = textwrap.fill(clean(title), 72)
        figure.suptitle(heading, x=0.0, horizontalalignment="left", fontsize=11, fontweight="bold")
        paint(figure, figure.add_subplot())
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    drawing = Drawing(finish(drawn.getvalue(), title=title, description=description, hover=hover or {}))
    drawing.figure = figure
    figure.svg = drawing
    figure.set_facecolor("white")  # of other files, where nothing around it is known
    return drawing
