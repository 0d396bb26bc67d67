"""Results: from rows of a ledger to means, sizes, comparisons and the front."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy
import pytest

from topiarist.errors import SettingsError
from topiarist.study.declaration import Cell, Declaration
from topiarist.study.job import CellResult, CellStack, StackResult
from topiarist.study.ledger import Ledger
from topiarist.study.results import Results

Figures = Mapping[str, Any]
WIDTHS = {"hidden 2": 2, "hidden 4": 4, "hidden 8": 8}


def figures(cell: Cell) -> Figures:
    """Make up figures: wider is better, and no two cells have the same."""
    width = cell.settings.model.hidden[0]
    accuracy = 0.5 + 0.03 * width + 0.001 * (cell.fold or 0) + 0.0001 * cell.seed * (width % 3)
    return {
        "accuracy": accuracy,
        "log_loss": 1 - accuracy,
        "samples": 30,
        "train_samples": 120,
        "parameters": 10 * width,
        "macs": 100 - width,
        "latency_ms": None,
        "diverged_epoch": None,
    }


def written(
    folder: Path, made: Callable[[Cell], Figures | None] = figures, /, **declared: Any
) -> tuple[Declaration, Results]:
    """Write a ledger in which every cell has the figures that are made up for it, or waits."""
    study = Declaration(
        **{"data": "iris", "grid": {"model.hidden": [[2], [4], [8]]}, "folds": 3, "seeds": 2, **declared}
    )
    stack = CellStack(number=0, cells=tuple(study.cells), cost=1.0, keep_models=False)
    found = {cell.hash: made(cell) for cell in study.cells}
    results = tuple(
        CellResult(hash=key, figures=dict(values), history=b'{"epochs":[{"number":1}]}', model=None)
        for key, values in found.items()
        if values is not None
    )
    with Ledger.to_write(folder) as ledger:
        numbers = {cell.hash: number for number, cell in enumerate(study.cells)}
        ledger.declare([stack], numbers, declaration=study.to_json())
        if results:
            ledger.record(StackResult(results=results, started=1.0, seconds=1.0, machine="", versions={}))
    return study, Results.read(folder)


def test_scores_are_by_fold_the_mean_over_seeds(tmp_path: Path) -> None:
    study, results = written(tmp_path)
    scores = results.scores()
    assert list(scores) == list(WIDTHS) == results.labels
    for label, series in scores.items():
        expected = [
            numpy.mean([figures(c)["accuracy"] for c in study.cells if (c.label, c.fold) == (label, fold)])
            for fold in range(3)
        ]
        assert series.index.tolist() == [0, 1, 2] and series.tolist() == pytest.approx(expected, abs=1e-12)
    assert results.test_to_train == pytest.approx(0.25)


def test_without_folds_scores_are_by_seed(tmp_path: Path) -> None:
    _, results = written(tmp_path, folds=None, seeds=[5, 9, 7])
    assert results.test_to_train is None
    assert {tuple(series.index) for series in results.scores().values()} == {(5, 7, 9)}


def test_a_summary_has_mean_spread_and_sizes(tmp_path: Path) -> None:
    _, results = written(tmp_path)
    summary = results.summary().set_index("configuration")
    for label, scores in results.scores().items():
        row = summary.loc[label]
        assert row["n"] == 3 and row["mean"] == pytest.approx(numpy.mean(scores))
        assert row["sd"] == pytest.approx(numpy.std(scores, ddof=1))
        assert row["low"] <= row["mean"] <= row["high"]
        assert (row["parameters"], row["macs"]) == (10 * WIDTHS[label], 100 - WIDTHS[label])
    assert "latency_ms" not in summary, "nobody measured it"


def test_a_comparison_is_with_the_baseline(tmp_path: Path) -> None:
    _, results = written(tmp_path)
    table = results.compare().set_index("configuration")
    assert list(table.index) == ["hidden 4", "hidden 8"]
    means = {label: float(scores.mean()) for label, scores in results.scores().items()}
    assert table.loc["hidden 8", "difference"] == pytest.approx(means["hidden 8"] - means["hidden 2"])
    assert set(table["n"]) == {3} and set(table["test"]) == {"corrected resampled t"}
    assert (table["holm_p"] >= table["p"]).all()
    other = results.compare("hidden 8", "log_loss", test="signed-rank").set_index("configuration")
    assert list(other.index) == ["hidden 2", "hidden 4"] and (other["difference"] > 0).all()
    assert list(results.compare(among=["hidden 2", "hidden 8"])["configuration"]) == ["hidden 8"]


def test_the_smallest_that_is_good_enough(tmp_path: Path) -> None:
    _, results = written(tmp_path)
    assert results.smallest(0.5).chosen == "hidden 2"
    assert results.smallest(0.5).baseline == "hidden 8", "the largest, unless named"
    assert results.smallest(0.15).chosen == "hidden 4"
    assert results.smallest(0.0001).chosen == "hidden 8"
    assert results.smallest(0.5, metric="log_loss").chosen == "hidden 2", "of a loss, more is worse"
    assert results.smallest(0.0001, metric="log_loss").chosen == "hidden 8"
    assert results.smallest(0.5, size="macs").baseline == "hidden 2"


def test_the_front(tmp_path: Path) -> None:
    _, results = written(tmp_path)
    front = results.front()
    assert front.table["configuration"].tolist() == list(WIDTHS) and front.table["front"].tolist() == [True] * 3
    assert front.table["knee"].sum() == 1 and 0 <= front.hypervolume <= 1
    by_macs = results.front(sizes=["macs"]).table.set_index("configuration")["front"]
    assert by_macs.to_dict() == {"hidden 2": False, "hidden 4": False, "hidden 8": True}
    loss = results.front("log_loss", sizes=["macs"]).table.set_index("configuration")["front"]
    assert loss.to_dict() == by_macs.to_dict()


def test_unknown_names_are_one_line_with_the_known_ones(tmp_path: Path) -> None:
    _, results = written(tmp_path)
    with pytest.raises(SettingsError, match="no figure is called 'beauty': known are accuracy, log_loss"):
        results.summary("beauty")
    with pytest.raises(SettingsError, match="'nobody': known are hidden 2; hidden 4; hidden 8"):
        results.compare("nobody")
    with pytest.raises(SettingsError, match="no size 'weight'"):
        results.sizes("weight")
    with pytest.raises(SettingsError, match="declare latency = true"):
        results.front(sizes=["latency_ms"])


def test_results_of_a_study_under_way(tmp_path: Path) -> None:
    _, results = written(tmp_path, lambda cell: figures(cell) if cell.label != "hidden 8" and cell.fold != 2 else None)
    assert results.labels == list(WIDTHS) and list(results.scores()) == ["hidden 2", "hidden 4"]
    assert results.cells["state"].value_counts().to_dict() == {"done": 8, "waiting": 10}
    assert (results.progress.done, results.progress.cells) == (8, 18)
    assert results.progress.share == pytest.approx(8 / 18)
    assert results.summary()["n"].tolist() == [2, 2]
    assert results.compare()["n"].tolist() == [2]
    assert results.smallest(0.5).chosen == "hidden 2"


def test_what_is_compared_is_paired_by_fold(tmp_path: Path) -> None:
    def some(cell: Cell) -> Figures | None:
        return None if (cell.label, cell.fold) == ("hidden 4", 0) else figures(cell)

    _, results = written(tmp_path, some)
    table = results.compare().set_index("configuration")
    assert table["n"].to_dict() == {"hidden 4": 2, "hidden 8": 3}
    first, second = results.scores()["hidden 4"], results.scores()["hidden 2"]
    assert table.loc["hidden 4", "difference"] == pytest.approx(float((first - second[1:]).mean()))
    assert "hidden 4" not in {verdict.name for verdict in results.smallest(0.5).verdicts}, "it lacks a fold"


def test_one_fold_in_common_is_too_few(tmp_path: Path) -> None:
    _, results = written(tmp_path, lambda cell: figures(cell) if cell.fold == 0 else None)
    with pytest.raises(SettingsError, match="needs 2 folds or seeds that both configurations have; found 1"):
        results.compare()


def test_nothing_is_done_yet(tmp_path: Path) -> None:
    _, results = written(tmp_path, lambda _: None)
    for use in (results.summary, results.compare, results.scores):
        with pytest.raises(SettingsError, match="no cell is done yet"):
            use()
    assert len(results.cells) == 18


def test_the_front_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no cell is done yet"):
        written(tmp_path, lambda _: None)[1].front()


def test_a_cell_has_its_choices_figures_and_history(tmp_path: Path) -> None:
    study, results = written(tmp_path, methods=[{"name": "none"}, {"name": "distinctiveness", "keep_fraction": 0.5}])
    cells = results.cells
    assert len(cells) == len(study.cells) == 36
    assert cells["hidden"].tolist()[:12] == ["2"] * 12 and set(cells["method"]) == {
        "none",
        "distinctiveness keep_fraction 0.5",
    }
    assert cells["accuracy"].tolist() == [figures(cell)["accuracy"] for cell in study.cells]
    assert cells["fold"].tolist() == [cell.fold for cell in study.cells]
    assert results.history(results.rows[0]) == [{"number": 1}]


@pytest.mark.parametrize(
    ("path", "values"),
    [("data.seed", [0, 1]), ("data.samples", [20, 40]), ("training.epochs", [50, 60])],
)
def test_every_axis_is_a_column(tmp_path: Path, path: str, values: list[int]) -> None:
    def made(cell: Cell) -> Figures:
        return {**figures(cell), "epochs": 7}

    study, results = written(tmp_path, made, grid={path: values}, model={"hidden": [2]})
    texts = [str(value) for cell in study.cells for value in values if str(value) in cell.choices.values()]
    assert any(column.astype(str).tolist() == texts for _, column in results.cells.items())


def test_repeats_with_folds_of_their_own_have_a_score_each(tmp_path: Path) -> None:
    _, results = written(tmp_path, new_folds_per_seed=True, seeds=[5, 9])
    for series in results.scores().values():
        assert series.index.tolist() == [(seed, fold) for seed in (5, 9) for fold in range(3)]
    assert set(results.compare()["n"]) == {6}
