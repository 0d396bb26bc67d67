import math
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import matplotlib
import pytest

from topiarist.errors import DataError
from topiarist.report import Difference, Point, differences, learning_curves, pareto_figure

HOSTILE = '<b>&" $x^2$ _a \\frac 中文 \x1b]]>'
SHOWN = '<b>&" $x^2$ _a \\frac 中文 \ufffd]]>'
SVG = "{http://www.w3.org/2000/svg}"


def curves(name: str) -> str:
    return learning_curves({name: [[0.1, 0.5, 0.7], [0.2, None]], "other": [[0.3] * 5]}, title=name, y_label=name)


def pareto(name: str) -> str:
    points = [
        Point(name=name, size=2.0, score=0.5, spread=0.1, front=True, knee=True),
        Point(name="large", size=300, score=0.9, front=True),
        Point(name="worse", size=100, score=0.4),
    ]
    return pareto_figure(points, size_label=name, score_label=name, title=name)


def forest(name: str) -> str:
    rows = [
        Difference(name=name, difference=-0.02, low=-0.03, high=-0.01, significant=True),
        Difference(name="same", difference=0.0, low=None, high=math.nan, significant=False),
    ]
    return differences(rows, title=name, unit=name)


FIGURES = [curves, pareto, forest]


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("figure", FIGURES)
def test_names_are_shown_as_they_are(figure: Callable[[str], str]) -> None:
    svg = figure(HOSTILE)
    shown = texts(svg)
    assert shown.count(SHOWN) >= 2, "in the title and beside the data"
    root = ElementTree.fromstring(svg)
    assert root.findtext(f"{SVG}title") == SHOWN
    assert SHOWN in (root.findtext(f"{SVG}desc") or "")
    assert "<b>" not in svg


@pytest.mark.slow
@pytest.mark.parametrize("figure", FIGURES)
def test_the_same_data_gives_the_same_bytes_whatever_the_settings(figure: Callable[[str], str]) -> None:
    before = figure("a")
    with matplotlib.rc_context({"font.size": 30, "text.usetex": True, "svg.fonttype": "path", "axes.grid": True}):
        assert figure("a") == before
    assert figure("b") != before


@pytest.mark.parametrize("figure", FIGURES)
def test_the_background_is_empty_and_the_ink_is_that_of_the_surroundings(figure: Callable[[str], str]) -> None:
    svg = figure("a")
    assert "currentColor" in svg
    assert not any(colour in svg.lower() for colour in ("#000000", "#ffffff", "#010203"))
    assert "<style" not in svg
    assert "font-family:" not in svg
    assert len(svg) < 30_000


@pytest.mark.slow
def test_the_settings_of_matplotlib_stay_and_no_window_is_thought_of() -> None:
    code = (
        "import sys, matplotlib\n"
        "settings = lambda: {name: matplotlib.rcParams[name] for name in matplotlib.rcParams if name != 'backend'}\n"
        "before = settings()\n"
        "from topiarist.report import learning_curves\n"
        "learning_curves({'a': [[1.0, 2.0]]}, title='t', y_label='y')\n"
        "assert settings() == before\n"
        "print(sorted({'matplotlib.pyplot', 'torch', 'topiarist.data'} & set(sys.modules)))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_many_names_all_have_a_place_of_their_own() -> None:
    names = [f"method {number}" for number in range(14)]
    root = ElementTree.fromstring(learning_curves({n: [[0.5, 0.9]] for n in names}, title="t", y_label="y"))
    labels = {text.text: float(text.get("y", "nan")) for text in root.iter(f"{SVG}text") if text.text in names}
    heights = sorted(labels.values())
    assert len(labels) == 14
    assert all(after - before > 12 for before, after in pairwise(heights))
    height = float(root.get("viewBox", "").split()[3])
    assert heights[0] > 0 and heights[-1] < height


@pytest.mark.parametrize("largest, logarithmic", [(10.0, False), (10.1, True)])
def test_sizes_that_span_more_than_ten_are_logarithmic(largest: float, logarithmic: bool) -> None:
    sizes = [1.0, 5.0, largest]
    points = [Point(name=f"p{size}", size=size, score=size / 100, front=True) for size in sizes]
    shown = texts(pareto_figure(points, size_label="", score_label="", title=""))
    assert ("5" in shown) == logarithmic
    assert ("4" in shown) != logarithmic


def test_the_knee_and_the_front_are_named() -> None:
    shown = texts(pareto("small"))
    assert {"small", "large", "knee", "on the front", "not on the front"} <= set(shown)
    assert "worse" not in shown


def test_a_row_says_its_difference_and_interval() -> None:
    shown = texts(forest("cut"))
    assert "−0.02  [−0.03, −0.01]" in shown
    assert "0.00  [–, –]" in shown


def test_points_that_are_no_numbers_are_left_out() -> None:
    bad, good = Point(name="diverged", size=3.0, score=math.nan), Point(name="alone", size=3.0, score=0.5)
    assert "1 point. Size and score on the front: none." in pareto_figure(
        [bad, good], size_label="", score_label="", title=""
    )
    with pytest.raises(DataError, match="cannot draw 't': no point has a size and a score"):
        pareto_figure([bad], size_label="", score_label="", title="t")


def test_nothing_to_draw_and_what_is_no_number_are_one_line() -> None:
    with pytest.raises(DataError, match="cannot draw 't': no run has a value"):
        learning_curves({"a": [[None, math.nan], []], "b": []}, title="t", y_label="")
    with pytest.raises(DataError, match="cannot draw 't': no row has a difference"):
        differences([], title="t", unit="")
    much: Any = "much"
    with pytest.raises(DataError, match="a figure needs numbers: found 'much'"):
        differences([Difference(name="a", difference=much, low=0.0, significant=True)], title="t", unit="")
    with pytest.raises(DataError, match="a figure needs numbers: found 'much'"):
        pareto_figure([Point(name="a", size=much, score=1.0)], size_label="", score_label="", title="")
