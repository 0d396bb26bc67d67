"""What notebooks show: well-formed HTML of what there is, escaped; figures of matplotlib; a bar."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib.figure
import numpy
import pytest
import torch
from torch import nn

from tests.report import rightsizing_record
from topiarist import Budget, Study, TrainConfig, anatomy, load_data, models, plot, progress_bar, resize, train
from topiarist.errors import SettingsError
from topiarist.notebooks import MOST_ROWS, html_table
from topiarist.report.canvas import ShownFigure
from topiarist.rightsizing.result import Rightsizing

EVIL = "<script>alert('\"&')</script>"


def cells(shown: Any) -> list[list[str]]:
    """Return the texts of the table that a notebook would show, read by a parser that forgives nothing."""
    table = ElementTree.fromstring(shown._repr_html_()).find(".//table")
    assert table is not None
    return [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]


def test_a_table_is_escaped_and_bounded() -> None:
    html = html_table([{EVIL: EVIL, "n": str(n)} for n in range(MOST_ROWS + 2)], heading=EVIL, notes=[EVIL])
    tree = ElementTree.fromstring(html)
    assert tree.find(".//script") is None and "".join(tree.itertext()).count(EVIL) == MOST_ROWS + 3
    assert "… and 2 more" in html and len(tree.findall(".//tr")) == MOST_ROWS + 1


def test_an_anatomy_and_an_outcome() -> None:
    data = load_data("iris")
    network = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
    known = anatomy(network, torch.zeros(2, 4))
    heading, *rows = cells(known)
    assert heading == ["space", "units", "written by", "passes through", "read by", "fixed"]
    assert {row[0]: row[1] for row in rows} == {name: str(space.size) for name, space in known.spaces.items()}
    outcome = resize(network, data, budget=Budget(parameters=60))
    shown = {name: (before, after) for name, before, after in cells(outcome)[1:]}
    assert shown["parameters"] == ("131", f"{outcome.after.parameters}")
    assert shown["accuracy"] == (f"{outcome.before.accuracy:.1%}", f"{outcome.after.accuracy:.1%}")
    assert shown["units of 0"] == tuple(map(str, outcome.units["0"]))
    with pytest.raises(SettingsError, match="nothing to draw: this method neither trained nor evolved"):
        plot(outcome)


def test_a_rightsizing_shows_what_the_command_prints() -> None:
    record = rightsizing_record.record()
    found = Rightsizing(
        model=nn.Identity(),
        baseline=nn.Identity(),
        networks={},
        status="proven",
        data=load_data("iris"),
        record=record,
    )
    rows = cells(found)
    assert record.verdict.sentence in found._repr_html_() and len(rows) == 2 + len(record.decision.rungs)
    assert [row[0] for row in rows if row[-1].endswith("chosen")] == [record.verdict.chosen]
    assert plot(found).axes[0].get_xlabel().splitlines()[0] == "parameters"


def test_results_of_a_study_before_and_after(tmp_path: Path) -> None:
    grid = {"model.hidden": [[4], [2]]}
    study = Study(data="iris", folds=2, training={"epochs": 1}, grid=grid)
    results = study.run(tmp_path / "s")
    heading, *rows = cells(results)
    assert heading[1] == "mean accuracy" and [row[0] for row in rows] == results.labels
    means = results.summary()["mean"]
    assert [row[1] for row in rows] == [f"{mean:.4f}" for mean in means]
    figure = plot(results)
    assert isinstance(figure, matplotlib.figure.Figure) and figure.axes[0].get_ylabel() == "mean accuracy"


def test_a_training_as_a_figure_and_a_file(tmp_path: Path) -> None:
    history = train(models.mlp([4, 4, 3]), load_data("iris"), TrainConfig(epochs=3))
    figure = plot(history)
    lines = {line.get_label(): numpy.asarray(line.get_ydata()).tolist() for line in figure.axes[0].get_lines()}
    assert lines["training"] == [epoch.train_loss for epoch in history.epochs]
    assert isinstance(figure, ShownFigure) and ElementTree.fromstring(figure._repr_html_()).tag.endswith("svg")
    figure.savefig(tmp_path / "loss.png")
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert len(plot({"a": history, "b": history}).axes[0].get_lines()) == 2
    with pytest.raises(SettingsError, match=r"plot draws a History, .*; found int"):
        plot(3)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_is_drawn_where_somebody_looks(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", str(int(terminal)))  # to rich, the word of whoever reads what it writes
    with progress_bar("cutting") as show:
        resize(models.mlp([4, 16, 3]), load_data("iris"), budget=Budget(parameters=60), on_progress=show)
        show(0.5, "the rest")
    out, err = capsys.readouterr()
    assert (out, "cutting" in err, "the rest" in err, bool(err)) == ("", terminal, terminal, terminal)
