"""Where figures are drawn: one look for all, no global state, the same bytes every time.

The palette is that of M. Okabe and K. Ito, "Color Universal Design" (2008), without its yellow, which white swallows,
and with the colour of the text for its black.
"""

import io
import textwrap
import warnings
from collections.abc import Callable
from typing import Any

import matplotlib
import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from topiarist.report.svg import INK, finish
from topiarist.report.wording import clean

BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, INK)
SOLID, DASHED, DOTTED, DASH_DOTTED = (0, None), (0, (4.5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5))
LINE_STYLES: tuple[tuple[int, Any], ...] = (SOLID, DASHED, DOTTED, DASH_DOTTED)
WIDTH_INCHES = 7.4
FAINT = 0.16
SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "topiarist",
    "text.parse_math": False,
    "text.color": INK,
    "font.size": 9.5,
    "axes.facecolor": "none",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.labelpad": 7.0,
    "axes.linewidth": 0.7,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "figure.constrained_layout.h_pad": 0.1,
    "figure.constrained_layout.w_pad": 0.01,
    "grid.color": INK,
    "grid.alpha": FAINT,
    "grid.linewidth": 0.7,
    "xtick.color": INK,
    "xtick.major.size": 3.0,
    "xtick.major.width": 0.7,
    "ytick.color": INK,
    "ytick.major.size": 0.0,
    "ytick.major.pad": 6.0,
    "legend.borderaxespad": 0.0,
    "legend.borderpad": 0.25,
    "legend.frameon": False,
    "lines.solid_capstyle": "round",
}


def draw(paint: Callable[[Figure, Axes], None], *, title: str, description: str, height_inches: float = 3.7) -> str:
    """Give the SVG of what `paint` draws on empty axes."""
    with matplotlib.style.context(["default", SETTINGS]), warnings.catch_warnings():
        # A reader's font may well have the letters that the one used for measuring lacks.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from", category=UserWarning)
        figure = Figure(figsize=(WIDTH_INCHES, height_inches), dpi=72, layout="constrained", facecolor="none")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        heading = textwrap.fill(clean(title), 72)
        figure.suptitle(heading, x=0.0, horizontalalignment="left", fontsize=11, fontweight="bold")
        paint(figure, axes)
        drawn = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(drawn, format="svg", metadata=nothing)
    return finish(drawn.getvalue(), title=title, description=description)
