import math
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any
from xml.etree import ElementTree

import matplotlib
import pytest

from topiarist.errors import DataError
from topiarist.evolution.lineage import Decision, Lineage, Node
from topiarist.report import Section, lineage_curves, lineage_tree, render_page, topology_over_time
from topiarist.report.lineage import (
    BRANCH,
    DOUBLING_POINTS,
    LABEL_POINTS,
    LARGER,
    LOOKS,
    MOST_COLUMNS,
    SAME_SIZE,
    SMALLER,
    WINNING,
    LineageView,
    boxes_of,
    columns_of,
    rows_of,
)

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<b>&\"' $x$ ]]>"
KINDS = ("identity", "widen", "grow", "deepen", "remove", "project", "fold", "factorise")
SHAPES = {"svg", "g", "defs", "path", "use", "clipPath", "rect", "text", "tspan", "title", "desc"}

Figure = Callable[[Lineage], str]
FIGURES: list[Figure] = [lineage_tree, lineage_curves, topology_over_time]


def node(number: int, parent: int | None = None, **fields: Any) -> Node:
    begins = fields.get("begins", 0.0)
    usual: dict[str, Any] = {
        "edit": "start" if parent is None else f"edit {number}",
        "kind": "start" if parent is None else "identity",
        "decision": 0,
        "begins": begins,
        "ends": begins + 5.0,
        "fate": "kept",
        "parameters": 7960,
        "widths": (("hidden0", 10),),
        "accuracy": 0.5,
        "score": 0.6,
        "reason": "because",
        "points": ((begins + 1.0, 0.4), (begins + 5.0, 0.5)),
    }
    return Node(number=number, parent=parent, **usual | fields)


def decided(number: int, epoch: float, candidates: Sequence[int], kept: Sequence[int]) -> Decision:
    return Decision(number=number, epoch=epoch, draw=0, candidates=tuple(candidates), kept=tuple(kept), reason="")


def lineage(*nodes: Node, epochs: int = 5, decisions: Sequence[Decision] = ()) -> Lineage:
    return Lineage(epochs, list(nodes), list(decisions))


def evolution(decisions: int, candidates: int, *, name: str = "hidden0", branches: int = 2) -> Lineage:
    """Return a lineage whose winning line is widened at every decision, and from which other branches leave at each."""
    nodes, made, best = [node(0, widths=((name, 10),))], [], 0
    for number in range(1, decisions + 1):
        epoch, first = 5.0 * number, len(nodes)
        for place in range(candidates):
            kind = "widen" if place == 0 else KINDS[place % len(KINDS)]
            fields = {"kind": kind, "edit": f"{kind} '{name}'", "begins": epoch, "score": 1.0 - place / 100}
            if place >= branches:
                fields |= {"ends": epoch + 0.1, "fate": "dropped", "points": ((epoch + 0.1, 0.4 + place / 100),)}
            wide, more = (10 * number + 10, 0) if place == 0 else (10 * number, (0, 1, -1)[place % 3])
            fields |= {"widths": ((name, wide),), "parameters": 796 * (wide + more)}
            nodes.append(node(first + place, best, **fields))
        numbers = range(first, first + candidates)
        made.append(decided(number, epoch, numbers, numbers[:branches]))
        best = first
    nodes[best] = replace(nodes[best], fate="best")
    return lineage(*nodes, epochs=5 * (decisions + 1), decisions=made)


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def titles(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return [element.text or "" for group in root.iter(f"{SVG}g") for element in group.findall(f"{SVG}title")]


def edge_cases() -> dict[str, Lineage]:
    diverged, undecided = evolution(3, 7), evolution(2, 3)
    diverged.nodes[1:] = [replace(found, accuracy=None, score=None, points=()) for found in diverged.nodes[1:]]
    undecided.decisions = []
    return {
        "only the start": lineage(node(0, fate="best")),
        "no epoch": lineage(node(0, ends=0.0, points=((0.0, 0.5),)), epochs=0),
        "no decisions": undecided,
        "diverged": diverged,
        "14 candidates": evolution(1, 14),
        "60 decisions": evolution(60, 14),
        "hostile": evolution(3, 7, name=HOSTILE),
        "extreme widths": lineage(node(0), node(1, 0, widths=(("a", 1), ("b", 100_000)), begins=5.0)),
        "no layers": lineage(node(0), node(1, 0, widths=(), kind="fold", begins=5.0)),
        "no reason": lineage(node(0, reason="")),
        "unknown kind": lineage(node(0, fate="best"), node(1, 0, kind="rotate", fate="dropped"), epochs=9),
    }


@pytest.mark.slow
@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("case", edge_cases())
def test_whatever_the_lineage_a_figure_is_drawn(figure: Figure, case: str) -> None:
    svg = figure(edge_cases()[case])
    root = ElementTree.fromstring(svg)
    assert not re.search(r'[ "]nan[ "]', svg.lower())
    assert root.get("role") == "img" and root.findtext(f"{SVG}title") and root.findtext(f"{SVG}desc")
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= SHAPES
    assert len(svg) < 500_000


@pytest.mark.parametrize("figure", FIGURES)
def test_names_are_shown_as_they_are(figure: Figure) -> None:
    svg = figure(evolution(2, 7, name=HOSTILE))
    assert "<b>" not in svg
    assert HOSTILE in (ElementTree.fromstring(svg).findtext(f"{SVG}desc") or "")
    assert any(HOSTILE in title for title in titles(svg))
    page = render_page(title="t", summary="", sections=[Section(title="s", figures=(svg, svg))], footer={})
    assert "<b>" not in page and "http" not in page.replace("http-equiv", "")


@pytest.mark.slow
@pytest.mark.parametrize("figure", FIGURES)
def test_the_same_lineage_gives_the_same_bytes_whatever_the_settings(figure: Figure) -> None:
    before = figure(evolution(3, 7))
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "axes.grid": True}):
        assert figure(evolution(3, 7)) == before
    assert figure(evolution(4, 7)) != before


@pytest.mark.slow
@pytest.mark.parametrize("figure", FIGURES)
def test_the_ink_is_that_of_the_surroundings(figure: Figure) -> None:
    svg = figure(evolution(3, 7))
    assert "currentColor" in svg
    assert not any(colour in svg.lower() for colour in ("#000000", "#ffffff", "#010203", "<style", "<a "))


@pytest.mark.parametrize("figure", [lineage_tree, lineage_curves])
def test_every_network_says_what_it_is(figure: Figure) -> None:
    evolved = evolution(2, 9)
    found = titles(figure(evolved))
    expected = set(LineageView(evolved).titles.values())
    assert set(found) == expected and len(expected) == len({title for title in expected if "dropped" in title}) + 5
    assert "widen 'hidden0' (epoch 10 to 15, best)\n23,880 parameters, accuracy 0.5000, score 1.0000\nbecause" in found


def test_what_is_not_known_is_a_dash() -> None:
    (said,) = set(titles(lineage_tree(lineage(node(0, accuracy=None, score=None)))))
    assert said == "start (epoch 0 to 5, kept)\n7,960 parameters, accuracy –, score –\nbecause"


def test_the_legend_names_what_is_there() -> None:
    assert set(LOOKS) <= set(texts(lineage_tree(evolution(3, 10))))
    alone = texts(lineage_tree(edge_cases()["only the start"]))
    assert WINNING in alone and not set(LOOKS) - {WINNING} & set(alone)


def test_the_winning_line_ends_at_the_best_and_without_one_at_the_last() -> None:
    evolved = evolution(3, 5)
    assert [found.number for found in LineageView(evolved).winning] == [0, 1, 6, 11]
    evolved.update(11, fate="kept")
    evolved.update(12, accuracy=0.9)
    assert [found.number for found in LineageView(evolved).winning] == [0, 1, 6, 12]


def test_branches_and_stubs_are_told_apart() -> None:
    nodes = [
        node(0),
        node(1, 0, begins=5.0, fate="best"),
        node(2, 0, begins=5.0, ends=5.1, fate="dropped", parameters=7961),
        node(3, 0, begins=5.0, ends=7.0, fate="dropped"),
        node(4, 0, begins=5.0, fate="kept"),
        node(5, 0, begins=5.0, ends=5.0, fate="dropped", parameters=7959),
        node(6, 0, begins=5.0, ends=5.0, fate="running"),
        node(7, 4, begins=10.0, ends=10.1, fate="dropped"),
    ]
    roles = LineageView(lineage(*nodes, epochs=10, decisions=[decided(1, 5.0, [1, 2, 3, 5], [1, 3])])).roles
    assert list(roles.values()) == [WINNING, WINNING, LARGER, BRANCH, BRANCH, SMALLER, SAME_SIZE, SAME_SIZE]


@pytest.mark.parametrize("branches", [1, 2, 5])
def test_no_two_networks_lie_on_one_another(branches: int) -> None:
    view, stub = LineageView(evolution(6, 14, branches=branches)), 0.5
    rows = rows_of(view, stub)
    for one, other in combinations(view.nodes, 2):
        if rows[one.number] == rows[other.number]:
            ends = [n.ends if view.roles[n.number] in (WINNING, BRANCH) else n.begins + stub for n in (one, other)]
            assert ends[0] <= other.begins or ends[1] <= one.begins


def test_a_branch_keeps_its_row_though_epochs_are_rounded() -> None:
    nodes = [
        node(0, ends=0.3),
        node(1, 0, begins=0.3, ends=0.6),
        node(2, 0, begins=0.3, ends=0.1 + 0.2 + 0.3),
        node(3, 1, begins=0.6, ends=0.9, fate="best"),
        node(4, 2, begins=0.6, ends=0.9),
    ]
    decisions = [decided(1, 0.3, [1, 2], [1, 2]), decided(2, 0.6, [3, 4], [3, 4])]
    rows = rows_of(LineageView(lineage(*nodes, epochs=1, decisions=decisions)), 0.1)
    assert rows == {0: 0, 1: 0, 3: 0, 2: -2, 4: -2}


def test_larger_networks_are_above_the_line_and_the_best_nearest_to_it() -> None:
    sizes = [7961, 7961, 7959, 7959]
    candidates = [node(n, 0, parameters=size, begins=5.0, fate="dropped", score=n) for n, size in enumerate(sizes, 2)]
    evolved = lineage(node(0), node(1, 0, begins=5.0, fate="best"), *candidates, epochs=9)
    assert rows_of(LineageView(evolved), 0.1) == {0: 0, 1: 0, 2: 2, 3: 1, 4: -2, 5: -1}


@pytest.mark.slow
@pytest.mark.parametrize("decisions, labelled", [(1, 1), (8, 8), (40, 40), (150, 30)])
def test_labels_do_not_overlap(decisions: int, labelled: int) -> None:
    root = ElementTree.fromstring(lineage_tree(evolution(decisions, 3)))
    labels = [text for text in root.iter(f"{SVG}text") if text.text == "widen 'hidden0'"]
    places = [float(label.get("x", "")) for label in labels]
    assert labelled <= len(labels) <= decisions
    # At 45°, the distance between the lines of two labels is 1 / √2 of the distance between their beginnings.
    assert all((after - before) / math.sqrt(2) > 0.95 * LABEL_POINTS for before, after in pairwise(places))


def test_edits_of_the_winning_line_are_named() -> None:
    nodes = [
        node(0),
        node(1, 0, begins=5.0, edit="leave as it is"),
        node(2, 1, begins=10.0, edit="swap two layers", kind="swap"),
        node(3, 2, begins=15.0, edit="grow 'a layer with a long name' by 10", widths=(("hidden0", 20),), fate="best"),
        node(4, 2, begins=15.0, edit="fold 'hidden0'", kind="fold", fate="dropped"),
    ]
    shown = texts(lineage_tree(lineage(*nodes, epochs=20)))
    assert "swap two layers" in shown and "grow 'a layer with a long…" in shown
    assert "leave as it is" not in shown and "fold 'hidden0'" not in shown


def test_without_any_accuracy_there_are_no_curves() -> None:
    with pytest.raises(DataError, match="cannot draw 't': no network has an accuracy"):
        lineage_curves(lineage(node(0, accuracy=None, points=())), title="t")


@pytest.mark.slow
def test_the_winning_line_may_lack_an_accuracy() -> None:
    svg = lineage_curves(lineage(node(0, accuracy=None, points=(), fate="best"), node(1, 0, fate="dropped")))
    assert "Accuracy of the winning line: unknown." in svg
    assert "Accuracy of the winning line: 0.4 at epoch 1, 0.5 at epoch 5." in lineage_curves(lineage(node(0)))


def test_there_is_a_column_for_the_start_every_change_and_the_end() -> None:
    deep = (("hidden0", 20), ("hidden1", 20))
    nodes = [
        node(0),
        node(1, 0, begins=5.0),
        node(2, 1, begins=10.0, kind="widen", widths=(("hidden0", 20),)),
        node(3, 2, begins=15.0, kind="deepen", widths=deep, fate="best", parameters=1_000_000),
    ]
    evolved = lineage(*nodes, epochs=20)
    assert [boxes[0].text for boxes in columns_of(LineageView(evolved))] == ["epoch", "0", "10", "15", "20"]
    shown = texts(topology_over_time(evolved))
    assert shown.count("I") == shown.count("O") == 4
    assert shown.count("10") == 2 and shown.count("20") == 6, "layers, and epochs"
    assert shown.count("7,960") == shown.count("1M") == 2
    assert "wider or new" in shown and "narrower or removed" not in shown
    assert "Epoch 15: hidden0: 20; hidden1: 20 (new)." in topology_over_time(evolved)


def test_the_middle_of_many_columns_is_left_out() -> None:
    shown = texts(topology_over_time(evolution(60, 3)))
    assert shown.count("I") == MOST_COLUMNS
    assert any("50 more" in text for text in shown)


def test_layers_are_compared_by_name_and_removed_ones_keep_their_place() -> None:
    before = [("a", 10), ("b", 5), ("c", 8), ("d", 9)]
    boxes = boxes_of(before, [("a", 12), ("new", 3), ("d", 7)], DOUBLING_POINTS)
    assert [(box.title, box.role) for box in boxes] == [
        ("input", SAME_SIZE),
        ("a: 12 (10 before)", LARGER),
        ("b: removed (5 before)", SMALLER),
        ("c: removed (8 before)", SMALLER),
        ("new: 3 (new)", LARGER),
        ("d: 7 (9 before)", SMALLER),
        ("output", SAME_SIZE),
    ]
    removed = boxes_of([("a", 10), ("b", 5)], [("b", 5)], DOUBLING_POINTS)
    assert [box.title for box in removed[1:-1]] == ["a: removed (10 before)", "b: 5"]


def test_heights_go_with_the_logarithm_of_the_width() -> None:
    _, three, fifteen, many, _ = boxes_of([], [("a", 3), ("b", 15), ("c", 99_999)], 9.0)
    assert three.points == 18.0 and fifteen.points == 36.0
    assert many.points == pytest.approx(9.0 * math.log2(100_000))


@pytest.mark.parametrize(
    "number, text", [(7960, "7,960"), (99_999, "99,999"), (100_000, "100k"), (999_999, "1M"), (1_234_567, "1.23M")]
)
def test_counts_that_need_much_room_are_shortened(number: int, text: str) -> None:
    assert text in texts(topology_over_time(lineage(node(0, parameters=number, widths=(("a", number),)))))


def test_a_lineage_that_makes_no_sense_is_one_line() -> None:
    with pytest.raises(DataError, match="cannot draw a lineage without a network"):
        lineage_tree(lineage())
    for second in (node(1, 7), node(1, 1), node(0, 0), node(1)):
        found = f"found {second.number} at place 1, made from {second.parent}"
        with pytest.raises(DataError, match=f"must be numbered from 0 and made from earlier ones: {found}"):
            lineage_tree(lineage(node(0), second))


@pytest.mark.slow
def test_neither_torch_nor_a_window_is_needed_to_import() -> None:
    code = (
        "import sys\n"
        "import topiarist.report.lineage\n"
        "print(sorted({'matplotlib.pyplot', 'torch', 'topiarist.data'} & set(sys.modules)))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.slow
def test_curves_of_networks_that_no_one_changed_stand_beside() -> None:
    evolved = evolution(3, 4)
    plain = {"plain (SGD)": [(2.0, 0.3), (1.0, 0.2)], HOSTILE: [(4.0, 0.6)]}
    shown = texts(lineage_curves(evolved, baselines=plain))
    assert "plain (SGD)" in shown and HOSTILE in shown
    assert "plain (SGD)" not in lineage_curves(evolved)
