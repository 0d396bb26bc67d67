import math
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topiarist.report import learning_curves, sweep_curves
from topiarist.report.curves import Run, summarise

GAPPY = st.lists(st.one_of(st.none(), st.just(math.nan), st.floats(-1e6, 1e6)), max_size=8)


@pytest.mark.slow
@given(st.dictionaries(st.integers(1, 8).map(float), GAPPY, max_size=8))
def test_mean_and_spread_are_those_of_the_values_that_are_there(values: dict[float, Run]) -> None:
    curve = summarise("a", values)
    there = {x: [value for value in runs if value is not None and math.isfinite(value)] for x, runs in values.items()}
    assert curve.x.tolist() == sorted(x for x, found in there.items() if found)
    for x, mean, spread in zip(curve.x, curve.mean, curve.spread, strict=True):
        assert mean == pytest.approx(np.mean(there[x]), abs=1e-6)
        if len(there[x]) == 1:
            assert math.isnan(spread)
        else:
            assert spread == pytest.approx(np.std(there[x], ddof=1), abs=1e-6)


def test_runs_may_differ_in_length_and_have_gaps() -> None:
    svg = learning_curves({"a": [[1.0, None, 3.0], [3.0, 5.0]], "b": [[0.5], []]}, title="t", y_label="y")
    assert "a: 3 at epoch 3 (runs: 2); b: 0.5 at epoch 1 (runs: 2)." in svg
    assert learning_curves({"a": [[1.0, 2.0], [3.0, 4.0]]}, title="t", y_label="y") != svg


def test_names_stand_in_the_order_in_which_the_curves_end() -> None:
    ends = {"_low": 0.1, "high": 0.9, "middle": 0.5}
    svg = learning_curves({name: [[0.2, end]] for name, end in ends.items()}, title="t", y_label="y")
    texts = [text for text in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text") if text.text in ends]
    places = sorted((float(text.get("y", "")), text.text) for text in texts)
    assert [name for _, name in places] == ["high", "middle", "_low"]
    assert all(after - before > 12 for (before, _), (after, _) in pairwise(places))


@pytest.mark.parametrize(
    "runs",
    [
        [[0.5]],
        [[0.5], [0.7]],
        [[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]],
        [[0.0]],
        [[None, 0.2, None, 0.4], [0.1], []],
        [[None, None, 3]],
        [[1e30, 1.0], [math.inf, 2.0]],
        [[float(epoch) for epoch in range(500)]] * 3,
    ],
)
def test_whatever_the_runs_a_figure_is_drawn(runs: list[Run]) -> None:
    svg = learning_curves({"name": runs, "without": [[None]]}, title="t", y_label="y")
    ElementTree.fromstring(svg)
    assert "nan" not in svg.lower()
    assert "without (no value)" in svg


def drawn_lines(svg: str) -> list[str]:
    """Return the paths that are strokes cut at the axes, which are the curves."""
    paths = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}path")
    return [
        path.get("d", "") for path in paths if path.get("clip-path") and "stroke-width: 1.9" in path.get("style", "")
    ]


def test_a_line_joins_the_epochs_that_have_a_value() -> None:
    (line,) = drawn_lines(learning_curves({"a": [[1.0, None, None, 4.0, None, 6.0]]}, title="t", y_label="y"))
    assert line.count("M") == 1
    assert line.count("L") == 2


def test_colours_and_line_styles_differ_together() -> None:
    svg = learning_curves({f"m{n}": [[0.0, n]] for n in range(10)}, title="t", y_label="y")
    paths = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}path")
    styles = [style for path in paths if path.get("clip-path") and "1.9" in (style := path.get("style", ""))]
    assert len(styles) == len(set(styles)) == 10


def test_a_logarithmic_scale_has_plain_numbers_and_leaves_out_what_it_cannot_show() -> None:
    curves: dict[str, list[Run]] = {"a": [[1000.0, 1.0, 0.001], [2000.0, 3.0, 0.0]], "b": [[5.0, 4.0, 3.0]]}
    svg = learning_curves(curves, title="loss", y_label="loss", y_scale="log")
    texts = {element.text for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")}
    assert {"0.001", "1", "1000", "a", "b"} <= texts
    assert "mathdefault" not in svg


def test_points_from_elsewhere_are_marked_without_a_line_and_named() -> None:
    curves = {"ours": {1.0: [1.0, 2.0], 2.0: [2.0, 3.0]}}
    words: dict[str, Any] = {"title": "t", "x_label": "x", "y_label": "y"}
    plain, marked = sweep_curves(curves, **words), sweep_curves(curves, **words, points={"paper": {1.0: 1.5, 2.0: 2.0}})
    assert "paper" in marked and "paper" not in plain
    assert "paper: 2 at x 2" in marked
    assert marked.count("<use") > plain.count("<use")
