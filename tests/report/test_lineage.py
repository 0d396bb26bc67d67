import math
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import combinations, pairwise
from typing import Any
from xml.etree import ElementTree

import matplotlib
import pytest

from topiarist.errors import DataError
from topiarist.report import Section, render_page
from topiarist.report.lineage import read_lineage, short_edit
from topiarist.report.lineage_figures import lineage_curves, lineage_tree
from topiarist.report.lineage_layout import ACROSS_POINTS, LABEL_POINTS, lanes_of, lay_out
from topiarist.report.svg import check_harmless, without_namespaces
from topiarist.report.topology import MOST_COLUMNS, boxes_of, columns_of, compact, topology_over_time

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<b>&\"' $x$ ]]>"
KINDS = ("identity", "widen", "grow", "deepen", "remove", "project", "fold", "factorise")

Record = dict[str, Any]
Figure = Callable[[Record], str]
FIGURES: list[Figure] = [lineage_tree, lineage_curves, topology_over_time]


def node(number: int, parent: int | None = None, **fields: Any) -> Record:
    begins = fields.get("begins", 0.0)
    usual = {
        "number": number,
        "parent": parent,
        "edit": "start" if parent is None else f"edit {number}",
        "kind": "start" if parent is None else "identity",
        "decision": 0,
        "begins": begins,
        "ends": begins + 5.0,
        "fate": "kept",
        "parameters": 7960,
        "widths": [["hidden0", 10]],
        "accuracy": 0.5,
        "score": 0.6,
        "reason": "because",
        "points": [[begins + 1.0, 0.4], [begins + 5.0, 0.5]],
    }
    return usual | fields


def evolution(decisions: int, candidates: int, *, name: str = "hidden0", branches: int = 2) -> Record:
    """Give a lineage whose winning line is widened at every decision, and from which a second branch leaves at each."""
    nodes = [node(0, widths=[[name, 10]])]
    made: list[Record] = []
    best = 0
    for number in range(1, decisions + 1):
        epoch, first = 5.0 * number, len(nodes)
        for place in range(candidates):
            kept = place < branches
            kind = "widen" if place == 0 else KINDS[place % len(KINDS)]
            fields = {"kind": kind, "edit": f"{kind} '{name}'", "begins": epoch, "score": 1.0 - place / 100}
            if not kept:
                fields |= {"ends": epoch + 0.1, "fate": "dropped", "points": [[epoch + 0.1, 0.4 + place / 100]]}
            wide = 10 * (number + 1) if place == 0 else 10 * number
            nodes.append(node(first + place, best, widths=[[name, wide]], **fields))
        numbers = list(range(first, first + candidates))
        kept_numbers = numbers[:branches]
        made.append({"number": number, "epoch": epoch, "draw": 0, "candidates": numbers, "kept": kept_numbers})
        best = first
    nodes[best]["fate"] = "best"
    return {"epochs": 5 * (decisions + 1), "nodes": nodes, "decisions": made}


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def titles(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return [element.text or "" for group in root.iter(f"{SVG}g") for element in group.findall(f"{SVG}title")]


def edge_cases() -> dict[str, Record]:
    diverged = evolution(3, 7)
    for place, found in enumerate(diverged["nodes"][1:]):
        found |= {"accuracy": None, "score": math.nan if place % 2 else None, "points": [[6.0, None], [7.0, math.nan]]}
    start: Record = {"epochs": 5, "nodes": [node(0, fate="best")], "decisions": []}
    widths = [["a", 1], ["b", 100_000]]
    undecided = evolution(2, 3)
    undecided["decisions"] = []
    return {
        "only the start": start,
        "no epoch": {"epochs": 0, "nodes": [node(0, ends=0.0, points=[])], "decisions": []},
        "no decisions": undecided,
        "diverged": diverged,
        "14 candidates": evolution(1, 14),
        "60 decisions": evolution(60, 14),
        "hostile": evolution(3, 7, name=HOSTILE),
        "extreme widths": {"epochs": 5, "nodes": [node(0), node(1, 0, widths=widths, begins=5.0)], "decisions": []},
        "no layers": {"epochs": 5, "nodes": [node(0), node(1, 0, widths=[], kind="fold", begins=5.0)], "decisions": []},
        "unknown size": {"epochs": 5, "nodes": [node(0, parameters=None, reason=None)], "decisions": []},
        "unknown kind": {
            "epochs": 9,
            "nodes": [node(0, fate="best"), node(1, 0, kind="rotate", fate="dropped")],
            "decisions": [],
        },
    }


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("case", edge_cases())
def test_whatever_the_lineage_a_figure_is_drawn(figure: Figure, case: str) -> None:
    svg = figure(edge_cases()[case])
    root = ElementTree.fromstring(svg)
    assert not re.search(r'[ "]nan[ "]', svg.lower())
    assert root.get("role") == "img" and root.findtext(f"{SVG}title") and root.findtext(f"{SVG}desc")
    check_harmless(without_namespaces(root))
    assert len(svg) < 500_000


@pytest.mark.parametrize("figure", FIGURES)
def test_names_are_shown_as_they_are(figure: Figure) -> None:
    svg = figure(evolution(2, 7, name=HOSTILE))
    assert "<b>" not in svg
    assert HOSTILE in (ElementTree.fromstring(svg).findtext(f"{SVG}desc") or "")
    assert any(HOSTILE in title for title in titles(svg))
    page = render_page(title="t", summary="", sections=[Section(title="s", figures=(svg, svg))], footer={})
    assert "<b>" not in page and "http" not in page.replace("http-equiv", "")


@pytest.mark.parametrize("figure", FIGURES)
def test_the_same_lineage_gives_the_same_bytes_whatever_the_settings(figure: Figure) -> None:
    before = figure(evolution(3, 7))
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "axes.grid": True}):
        assert figure(evolution(3, 7)) == before
    assert figure(evolution(4, 7)) != before


@pytest.mark.parametrize("figure", FIGURES)
def test_the_ink_is_that_of_the_surroundings(figure: Figure) -> None:
    svg = figure(evolution(3, 7))
    assert "currentColor" in svg
    assert not any(colour in svg.lower() for colour in ("#000000", "#ffffff", "#010203", "<style", "<a "))


@pytest.mark.parametrize("figure", [lineage_tree, lineage_curves])
def test_every_network_says_what_it_is(figure: Figure) -> None:
    found = titles(figure(evolution(2, 9)))
    dropped = [title for title in found if "dropped" in title]
    assert len(dropped) == 2 * 7
    assert "widen 'hidden0' (epoch 10 to 15, best)\n7,960 parameters, accuracy 0.5000, score 1.0000\nbecause" in found


def test_what_is_not_known_is_a_dash() -> None:
    (said,) = set(titles(lineage_tree({"epochs": 5, "nodes": [node(0, accuracy=None, score=None)], "decisions": []})))
    assert said == "start (epoch 0 to 5, kept)\n7,960 parameters, accuracy –, score –\nbecause"


def test_the_legend_names_what_is_there() -> None:
    always = {"winning line", "other branch", "dropped: larger", "dropped: smaller", "dropped: unchanged"}
    assert always <= set(texts(lineage_tree(evolution(3, 10))))
    alone = texts(lineage_tree(edge_cases()["only the start"]))
    assert "winning line" in alone and not any("dropped" in text or "branch" in text for text in alone)


def test_the_winning_line_ends_at_the_best_and_without_one_at_the_last() -> None:
    record = evolution(3, 5)
    assert [found.number for found in read_lineage(record).winning] == [0, 1, 6, 11]
    record["nodes"][11]["fate"] = "kept"
    record["nodes"][12]["accuracy"] = 0.9
    assert [found.number for found in read_lineage(record).winning] == [0, 1, 6, 12]


def test_branches_and_stubs_are_told_apart() -> None:
    nodes = [
        node(0),
        node(1, 0, begins=5.0, fate="best"),
        node(2, 0, begins=5.0, ends=5.1, fate="dropped"),
        node(3, 0, begins=5.0, ends=7.0, fate="dropped"),
        node(4, 0, begins=5.0, fate="replaced"),
        node(5, 0, begins=5.0, ends=5.0, fate="replaced"),
        node(6, 0, begins=5.0, ends=5.0, fate="running"),
    ]
    decisions = [{"number": 1, "epoch": 5.0, "draw": 0, "candidates": [1, 2, 3, 4, 5], "kept": [1, 3]}]
    lineage = read_lineage({"epochs": 10, "nodes": nodes, "decisions": decisions})
    assert [found.number for found in lineage.branches] == [3, 4]
    assert [found.number for found in lineage.dropped] == [2, 5, 6]


@pytest.mark.parametrize("branches", [1, 2, 5])
def test_no_two_networks_lie_on_one_another(branches: int) -> None:
    lineage = read_lineage(evolution(6, 14, branches=branches))
    lanes, layout = lanes_of(lineage), lay_out(lineage)
    going_on = [*lineage.winning, *lineage.branches]
    for one, other in combinations(going_on, 2):
        if lanes[one.number] == lanes[other.number]:
            assert one.ends <= other.begins or other.ends <= one.begins
    at_once = [[found for found in lineage.dropped if found.begins == epoch] for epoch in lineage.decisions]
    for nodes in at_once:
        heights = sorted({layout.heights[found.number] for found in nodes})
        assert len(heights) == len(nodes)
        assert all(after - before > 4 for before, after in pairwise(heights))
        assert layout.bottom - 1e-9 <= heights[0] and heights[-1] <= layout.top + 1e-9


def test_a_branch_keeps_its_lane_though_epochs_are_rounded() -> None:
    nodes = [
        node(0, ends=0.3),
        node(1, 0, begins=0.3, ends=0.6, fate="kept"),
        node(2, 0, begins=0.3, ends=0.1 + 0.2 + 0.3, fate="kept"),
        node(3, 1, begins=0.6, ends=0.9, fate="best"),
        node(4, 2, begins=0.6, ends=0.9, fate="kept"),
    ]
    lanes = lanes_of(read_lineage({"epochs": 1, "nodes": nodes, "decisions": []}))
    assert lanes == {0: 0, 1: 0, 3: 0, 2: 1, 4: 1}


def test_larger_networks_are_above_the_line_and_the_best_nearest_to_it() -> None:
    kinds = ["widen", "deepen", "remove", "fold"]
    candidates = [node(n, 0, kind=kind, begins=5.0, fate="dropped", score=n) for n, kind in enumerate(kinds, 2)]
    record = {"epochs": 9, "nodes": [node(0), node(1, 0, begins=5.0, fate="best"), *candidates], "decisions": []}
    heights = lay_out(read_lineage(record)).heights
    assert heights[2] > heights[3] > 0 > heights[5] > heights[4]


@pytest.mark.parametrize("decisions, upright", [(1, False), (8, False), (60, True), (150, True)])
def test_labels_do_not_overlap(decisions: int, upright: bool) -> None:
    lineage = read_lineage(evolution(decisions, 3))
    layout = lay_out(lineage)
    assert layout.upright == upright
    assert len(layout.labels) == decisions or decisions == 150
    points = ACROSS_POINTS / lineage.last_epoch
    for before, after in combinations(layout.labels, 2):
        apart = (after.epoch - before.epoch) * points
        if upright:
            assert apart >= LABEL_POINTS
        elif before.row <= after.row:
            assert apart >= 0.6 * LABEL_POINTS * max(map(len, before.words))


def test_a_label_that_would_cover_the_next_stands_above_it() -> None:
    nodes = [node(0)]
    for number, epoch in enumerate([10.0, 11.0, 13.0, 40.0, 48.0], start=1):
        nodes.append(node(number, number - 1, begins=epoch, widths=[["hidden0", 10 + number]], kind="widen"))
    lineage = read_lineage({"epochs": 100, "nodes": nodes, "decisions": []})
    layout = lay_out(lineage)
    assert not layout.upright
    assert [label.row for label in layout.labels] == [2, 1, 0, 0, 0]


def test_edits_are_named_shortly() -> None:
    def named(before: list[list[object]], after: list[list[object]], edit: str = "swap") -> tuple[str, str]:
        nodes = [node(0, widths=before), node(1, 0, widths=after, kind="widen", edit=edit)]
        lineage = read_lineage({"epochs": 5, "nodes": nodes, "decisions": []})
        return short_edit(lineage.nodes[0], lineage.nodes[1])

    assert named([["hidden0", 10]], [["hidden0", 20]]) == ("+10", "hidden0")
    assert named([["a", 2000], ["b", 5]], [["a", 1], ["b", 5]]) == ("−1,999", "a")
    assert named([["a", 10]], [["a", 10], ["b", 10]]) == ("+1", "layer")
    assert named([["a", 10], ["b", 1], ["c", 1]], [["a", 10]]) == ("−2", "layers")
    assert named([["a", 10], ["b", 1]], [["a", 12], ["b", 4]]) == ("+5", "in 2 layers")
    assert named([["a", 10]], [["a", 10]]) == ("swap", "")
    assert "+10 hidden0" not in texts(lineage_tree(evolution(1, 3)))
    assert {"+10", "hidden0"} <= set(texts(lineage_tree(evolution(1, 3))))


def test_without_any_accuracy_there_are_no_curves() -> None:
    record = {"epochs": 5, "nodes": [node(0, accuracy=None, points=[[1.0, None]])], "decisions": []}
    with pytest.raises(DataError, match="cannot draw 't': no network has an accuracy"):
        lineage_curves(record, title="t")


def test_the_winning_line_may_lack_an_accuracy() -> None:
    nodes = [node(0, accuracy=None, points=[], fate="best"), node(1, 0, fate="dropped")]
    svg = lineage_curves({"epochs": 5, "nodes": nodes, "decisions": []})
    assert "The winning line has no accuracy." in svg


def test_there_is_a_column_for_the_start_every_change_and_the_end() -> None:
    nodes = [
        node(0),
        node(1, 0, begins=5.0),
        node(2, 1, begins=10.0, kind="widen", widths=[["hidden0", 20]]),
        node(3, 2, begins=15.0, kind="deepen", widths=[["hidden0", 20], ["hidden1", 20]], fate="best", parameters=1e6),
    ]
    record = {"epochs": 20, "nodes": nodes, "decisions": []}
    columns = columns_of(read_lineage(record))
    assert [column.epoch for column in columns] == [0, 10, 15, 20]
    shown = texts(topology_over_time(record))
    assert shown.count("I") == shown.count("O") == 4
    assert shown.count("10") == 2 and shown.count("20") == 6, "layers, and epochs"
    assert shown.count("1,000,000") == 2
    assert "wider or new" in shown and "narrower or removed" not in shown


def test_the_middle_of_many_columns_is_left_out() -> None:
    shown = texts(topology_over_time(evolution(60, 3)))
    assert shown.count("I") == MOST_COLUMNS
    assert any("50 more" in text for text in shown)


def test_layers_are_compared_by_name_and_removed_ones_keep_their_place() -> None:
    before = [("a", 10), ("b", 5), ("c", 8), ("d", 9)]
    boxes = boxes_of(before, [("a", 12), ("new", 3), ("d", 7)])
    found = [box.title for box in boxes]
    assert found[0] == "input" and found[-1] == "output"
    assert sorted(found[1:-1]) == [
        "a: 12 (10 before)",
        "b: removed (5 before)",
        "c: removed (8 before)",
        "d: 7 (9 before)",
        "new: 3 (new)",
    ]
    order = [title[0] for title in found[1:-1]]
    assert order.index("a") < order.index("b") < order.index("c") < order.index("d")
    assert [box.group for box in boxes if box.title.startswith(("a", "new", "d", "b"))] == [
        "grow",
        "shrink",
        "grow",
        "shrink",
    ]


def test_heights_go_with_the_logarithm_of_the_width() -> None:
    scale = 9.0
    _, one, ten, many, _ = boxes_of([], [("a", 3), ("b", 15), ("c", 99_999)])
    assert one.points(scale) == 18.0 and ten.points(scale) == 36.0
    assert many.points(scale) == pytest.approx(scale * math.log2(100_000))


@pytest.mark.parametrize(
    "number, points, text",
    [(7960, 60, "7,960"), (100_000, 20, "100k"), (1_234_567, 30, "1.23M"), (math.nan, 1, "–"), (1, 1, "1")],
)
def test_counts_are_shortened_where_there_is_no_room(number: float, points: float, text: str) -> None:
    assert compact(number, points) == text


def test_a_lineage_that_makes_no_sense_is_one_line() -> None:
    with pytest.raises(DataError, match="cannot draw a lineage without a network"):
        lineage_tree({"epochs": 1, "nodes": [], "decisions": []})
    with pytest.raises(DataError, match="network 1 of a lineage comes from 7"):
        lineage_tree({"epochs": 1, "nodes": [node(0), node(1, 7)], "decisions": []})
    with pytest.raises(DataError, match="network 1 of a lineage comes from 1"):
        lineage_tree({"epochs": 1, "nodes": [node(0), node(1, 1)], "decisions": []})
    with pytest.raises(DataError, match="two networks of a lineage have the number 0"):
        lineage_tree({"epochs": 1, "nodes": [node(0), node(0)], "decisions": []})
    with pytest.raises(DataError, match="a record needs the field 'widths'"):
        lineage_tree({"epochs": 1, "nodes": [{k: v for k, v in node(0).items() if k != "widths"}], "decisions": []})
    with pytest.raises(DataError, match="the end of a network's life must be a number: found None"):
        lineage_tree({"epochs": 1, "nodes": [node(0, ends=None)], "decisions": []})


def test_no_torch_is_needed() -> None:
    code = (
        "import sys\n"
        "import topiarist.report.lineage_figures, topiarist.report.topology\n"
        "print(sorted({'matplotlib.pyplot', 'torch', 'topiarist.data'} & set(sys.modules)))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_curves_of_networks_that_no_one_changed_stand_beside() -> None:
    record = evolution(3, 4)
    plain = {"plain (SGD)": [(2.0, 0.3), (1.0, 0.2)], HOSTILE: [(4.0, 0.6)]}
    svg = lineage_curves(record, baselines=plain)
    ElementTree.fromstring(svg)
    texts = [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert "plain (SGD)" in texts and HOSTILE in texts
    assert "plain (SGD)" not in lineage_curves(record)
