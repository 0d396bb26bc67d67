"""A stack's results are those of the same networks trained, treated and measured by hand."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.study.networks import by_code
from topiarist import Budget, load, load_data, measure, models, monte_carlo, reuse, train, train_phases
from topiarist.data import Data, Part
from topiarist.data.labels import of_classes
from topiarist.errors import SettingsError, TopiaristWarning
from topiarist.methods import Factorisation, FineTuning, Magnitude, resize
from topiarist.models.building import build_by_code
from topiarist.randomness import child_seed, generator, isolated
from topiarist.storage import serialise
from topiarist.study.declaration import Cell, Declaration
from topiarist.study.job import CellResult, CellStack, StackResult, run_stack
from topiarist.study.samples import StudySamples, read_sources
from topiarist.study.stacks import stacks_of
from topiarist.study.study import Study
from topiarist.training import History, Phase, TrainConfig
from topiarist.training.metrics import accuracy, log_loss, macro_accuracy

CLOSE = 1e-5


def run(**declared: Any) -> tuple[list[Cell], list[CellResult], list[StackResult]]:
    """Run a study's stacks one after the other; give the cells with their results."""
    study = Declaration(**{"data": "iris", "training": {"epochs": 3}, **declared})
    samples = StudySamples(read_sources(study.cells, Path()))
    done = [run_stack(stack, samples) for stack in stacks_of(study, samples)]
    found = {result.hash: result for stack in done for result in stack.results}
    return study.cells, [found[cell.hash] for cell in study.cells], done


def by_hand(data: Data, cell: Cell, hidden: list[int], **config: Any) -> tuple[nn.Module, History]:
    """Train the network of a cell with the library's own verbs."""
    sizes = [data.input_shape[0], *hidden, len(data.classes)]
    dropout = cell.settings.model.dropout
    model = models.mlp(sizes, dropout=dropout, generator=generator(cell.training_seed, "initial weights"))
    return model, train(model, data, TrainConfig(**{"epochs": 3, **config}, seed=cell.training_seed))


def same_figures(result: CellResult, model: nn.Module, data: Data, *, close: float = 0.0) -> None:
    expected = measure(model, data, latency=False).to_json()
    for name in ("samples", "parameters", "nonzero", "macs", "memory_kb"):
        assert result.figures[name] == expected[name], name
    for name in ("accuracy", "macro_accuracy", "log_loss"):
        assert result.figures[name] == pytest.approx(expected[name], rel=0, abs=close), name


def test_one_cell_is_one_training_bit_for_bit() -> None:
    (cell,), (result,), _ = run(model={"hidden": [6]})
    data = load_data("iris")
    model, history = by_hand(data, cell, [6])
    same_figures(result, model, data)
    assert result.model == serialise(model, data=data)
    assert History.from_json(json.loads(result.history)) == history
    assert result.figures["train_samples"] == len(data.train) and result.figures["samples"] == len(data.test)
    assert result.figures["epochs"] == result.figures["kept_epoch"] == 3
    assert result.figures["validation_accuracy"] == history.epochs[-1].validation_accuracy
    assert result.figures["diverged_epoch"] is None


@pytest.mark.slow
@pytest.mark.parametrize("declared", [{}, {"training": {"epochs": 4, "early_stopping": 2, "optimizer": "rmsprop"}}])
def test_a_stack_is_its_members_one_by_one(declared: dict[str, Any]) -> None:
    cells, results, done = run(
        model={"hidden": [6]}, grid={"training.learning_rate": [0.01, 0.05]}, folds=3, seeds=2, **declared
    )
    assert len(done) == 1 and len(done[0].results) == 12
    watched = 0.15 if declared else 0.0
    folds = load_data("iris", validation_fraction=0.0).folds(3, seed=0, validation_fraction=watched)
    for cell, result in zip(cells, results, strict=True):
        assert cell.fold is not None
        data, rate = folds[cell.fold], cell.settings.training.learning_rate
        model, history = by_hand(data, cell, [6], learning_rate=rate, **declared.get("training", {}))
        same_figures(result, model, data, close=CLOSE)
        assert result.figures["train_samples"] == len(data.train)
        assert result.figures["kept_epoch"] == history.kept_epoch
    assert len({result.model for result in results}) == 12


def test_other_folds_of_the_development_part_never_see_the_test_part() -> None:
    cells, results, _ = run(model={"hidden": [4]}, folds=2, folds_of="development")
    data = load_data("iris", validation_fraction=0.0)
    for cell, result, fold in zip(cells, results, data.folds(2, of="development"), strict=True):
        same_figures(result, by_hand(fold, cell, [4])[0], fold, close=CLOSE)
    assert sum(result.figures["samples"] for result in results) == 150 - len(data.test)


@pytest.mark.slow
def test_methods_share_one_training_and_a_cut_removes_units() -> None:
    methods = [
        {"name": "none"},
        {"name": "distinctiveness", "keep_fraction": 0.5},
        {"name": "distinctiveness", "keep_fraction": 0.01},
    ]
    cells, results, done = run(model={"hidden": [8, 6]}, training={"epochs": 12}, methods=methods, folds=2)
    assert len(done) == 1
    for fold in range(2):
        whole, half, least = (result for cell, result in zip(cells, results, strict=True) if cell.fold == fold)
        assert whole.history == half.history == least.history
        assert len({whole.model, half.model, least.model}) == 3
        sizes = {8: whole, 4: half, 1: least}
        for first, second in ((8, 6), (4, 3), (1, 1)):
            expected = (4 * first + first) + (first * second + second) + (second * 3 + 3)
            assert sizes[first].figures["parameters"] == expected


@pytest.mark.slow
def test_magnitude_in_a_study_is_resize_by_hand() -> None:
    again = {"kind": "fine-tuning", "epochs": 4}
    methods = [{"name": "none"}, {"name": "magnitude", "sparsity": 0.5, "bits": 8, "retraining": again}]
    cells, (whole, pruned), (done,) = run(model={"hidden": [8]}, methods=methods)
    data = load_data("iris")
    model, _ = by_hand(data, cells[0], [8])
    same_figures(whole, model, data)
    method, step = Magnitude(sparsity=0.5, bits=8), FineTuning(epochs=4)
    outcome = resize(model, data, method, retraining=step, seed=cells[1].training_seed, latency=False)
    same_figures(pruned, outcome.model, data)
    assert pruned.model == serialise(outcome.model, data=data) and not done.failures
    assert (whole.figures["retraining_epochs"], pruned.figures["retraining_epochs"]) == (0, 4)
    assert pruned.figures["nonzero"] < whole.figures["nonzero"]
    assert pruned.figures["file_kb"] < whole.figures["file_kb"]


@pytest.mark.slow
def test_factorisation_in_a_study_is_resize_by_hand() -> None:
    again, budget = {"kind": "fine-tuning", "epochs": 2}, {"parameters": 130}
    by_share = {"name": "factorisation", "keep": 0.7, "layers": ["hidden1"], "retraining": again}
    methods = [{"name": "none"}, by_share, {"name": "factorisation", "budget": budget}]
    cells, (_, *thinned), (done,) = run(model={"hidden": [10, 8]}, methods=methods)
    data = load_data("iris")
    model, _ = by_hand(data, cells[0], [10, 8])
    shares = Factorisation(keep=0.7, layers=("hidden1",))
    expected = (
        resize(model, data, shares, retraining=FineTuning(epochs=2), seed=cells[1].training_seed, latency=False),
        resize(model, data, Factorisation(), budget=Budget(parameters=130), latency=False),
    )
    assert not done.failures
    for result, outcome in zip(thinned, expected, strict=True):
        same_figures(result, outcome.model, data)
        assert result.model == serialise(outcome.model, data=data)
        assert result.figures["parameters"] < 165


@pytest.mark.slow
def test_pruning_is_a_part_of_the_training_that_a_study_declares() -> None:
    grid = {"training.pruning": [None, {"sparsity": 0.5}, {"sparsity": 0.75, "units": True, "schedule": "constant"}]}
    cells, results, _ = run(model={"hidden": [8]}, training={"epochs": 5}, grid=grid)
    data = load_data("iris")
    for cell, result in zip(cells, results, strict=True):
        model, history = by_hand(data, cell, [8], epochs=5, pruning=cell.settings.training.pruning)
        same_figures(result, model, data)
        assert result.model == serialise(model, data=data)
        assert History.from_json(json.loads(result.history)) == history
    ends = [json.loads(result.history)["epochs"][-1]["sparsity"] for result in results]
    assert ends == [None, 0.5, 0.75]


def test_a_study_can_declare_a_pattern() -> None:
    _, (result,), _ = run(model={"hidden": [8]}, training={"epochs": 5, "pruning": {"pattern": [2, 4]}})
    assert json.loads(result.history)["epochs"][-1]["sparsity"] == 0.5


def test_a_file_declares_magnitude_and_pruning(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        """
data = "iris"
model.hidden = [8]

[training]
epochs = 4
pruning = { sparsity = 0.5, initial_sparsity = 0.1 }

[[methods]]
name = "none"

[[methods]]
name = "magnitude"
budget = { file_kb = 1.1 }
retraining = { kind = "fine-tuning", epochs = 2 }
"""
    )
    results = Study.from_file(tmp_path / "study.toml").run(tmp_path / "out").cells
    assert results["state"].tolist() == ["done", "done"]
    kept = [path.stat().st_size for path in sorted((tmp_path / "out" / "models").iterdir())]
    assert len(kept) == 2 and min(kept) <= 1.1 * 1024


def test_a_cut_network_is_kept_as_it_was_measured(tmp_path: Path) -> None:
    _, (result,), _ = run(model={"hidden": [8]}, methods=[{"name": "distinctiveness", "keep_fraction": 0.5}])
    assert result.model is not None
    path = tmp_path / "cut.safetensors"
    path.write_bytes(result.model)
    data = load_data("iris")
    same_figures(result, load(path), data, close=1e-6)


def test_monte_carlo_judges_the_mean_of_many_passes() -> None:
    grid = {"prediction.monte_carlo": [None, 20]}
    cells, (plain, stochastic), _ = run(model={"hidden": [6], "dropout": 0.4}, training={"epochs": 5}, grid=grid)
    data = load_data("iris")
    model, _ = by_hand(data, cells[0], [6], epochs=5)
    same_figures(plain, model, data)
    mean = monte_carlo(model, data.test.x, passes=20, seed=cells[1].training_seed).mean  # type: ignore[union-attr]
    y = data.test.y  # type: ignore[union-attr]
    assert stochastic.figures["accuracy"] == accuracy(mean, y)
    assert stochastic.figures["macro_accuracy"] == macro_accuracy(mean, y)
    assert stochastic.figures["log_loss"] == pytest.approx(log_loss(mean.log(), y))
    assert stochastic.figures["log_loss"] != plain.figures["log_loss"] and stochastic.history == plain.history


def test_transfer_is_a_base_a_new_head_and_phases() -> None:
    phases: list[dict[str, Any]] = [{"epochs": 2, "train_top": 1}, {"epochs": 1, "learning_rate": 0.0005}]
    (cell,), (result,), _ = run(
        data={"location": "iris", "classes": ["setosa", "virginica"]},
        model={"hidden": [6, 5]},
        training={"phases": phases, "learning_rate": 0.01},
        base={"classes": ["versicolor", "virginica"], "epochs": 4, "drop": 1, "add": [3]},
    )
    source = load_data("iris").source
    assert source is not None
    first = Data.from_source(of_classes(source, ["versicolor", "virginica"]))
    second = Data.from_source(of_classes(source, ["setosa", "virginica"]))
    base, _ = by_hand(first, cell, [6, 5], epochs=4, learning_rate=0.01)
    model = reuse(base, classes=2, drop=1, add=[3], generator=generator(cell.training_seed, "head"))
    config = TrainConfig(learning_rate=0.01, seed=cell.training_seed)
    histories = train_phases(model, second, [Phase(**phase) for phase in phases], config)
    same_figures(result, model, second)
    assert result.model == serialise(model, data=second)
    history = History.from_json(json.loads(result.history))
    assert [epoch.number for epoch in history.epochs] == [1, 2, 3] and history.kept_epoch == 3
    assert [epoch.train_loss for epoch in history.epochs] == [
        epoch.train_loss for each in histories for epoch in each.epochs
    ]


def test_your_own_code_builds_from_the_seed_of_the_cell() -> None:
    cells, results, done = run(model=by_code(width=5), seeds=2)
    assert len(done) == 2
    data = load_data("iris")
    state = torch.get_rng_state()
    for cell, result in zip(cells, results, strict=True):
        with isolated(child_seed(cell.training_seed, "initial weights")):
            model = build_by_code(by_code()["code"], input_shape=(4,), classes=3, width=5)
        train(model, data, TrainConfig(epochs=3, seed=cell.training_seed))
        same_figures(result, model, data)
        assert result.model == serialise(model, data=data)
    assert results[0].model != results[1].model
    assert torch.equal(torch.get_rng_state(), state)


def test_your_own_code_can_lie_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_own_networks_of_a_study.py").write_text(
        "from torch import nn\n\ndef line(*, input_shape, classes):\n    return nn.Linear(input_shape[0], classes)\n"
    )
    monkeypatch.chdir(tmp_path)
    _, (result,), _ = run(model={"code": "my_own_networks_of_a_study:line"})
    assert result.figures["parameters"] == 4 * 3 + 3


def test_fewer_samples_to_train_on_leave_the_test_part_alone() -> None:
    _, (whole, few), _ = run(grid={"data.samples": [None, 12]}, model={"hidden": [3]})
    assert (whole.figures["train_samples"], few.figures["train_samples"]) == (len(load_data("iris").train), 12)
    assert whole.figures["samples"] == few.figures["samples"] == 30


def test_a_result_says_where_when_and_with_what_it_was_made() -> None:
    _, (result,), (done,) = run(model={"hidden": [3]})
    assert done.seconds > 0 and done.started > 1.7e9 and "cores" in done.machine
    assert {"python", "topiarist", "torch", "numpy"} <= set(done.versions)
    assert sha256(result.history).hexdigest() and json.loads(result.history)["stopped"]


def test_networks_are_kept_unless_one_says_otherwise() -> None:
    study = Declaration(data="iris", training={"epochs": 1}, models=False, latency=True)
    samples = StudySamples(read_sources(study.cells, Path()))
    (stack,) = stacks_of(study, samples)
    (result,) = run_stack(stack, samples).results
    assert result.model is None and result.figures["latency_ms"] > 0
    (other,) = run_stack(CellStack(number=0, cells=stack.cells, cost=1, keep_models=True), samples).results
    assert other.model is not None


@pytest.mark.filterwarnings("error")
def test_a_training_that_diverges_is_a_figure_and_no_warning() -> None:
    _, (result,), _ = run(training={"epochs": 3, "learning_rate": 1e30, "optimizer": "sgd"}, model={"hidden": [3]})
    assert result.figures["diverged_epoch"] == 1
    with pytest.warns(TopiaristWarning, match="the weights of epoch 0 are kept"):
        train(models.mlp([4, 3, 3]), load_data("iris"), TrainConfig(epochs=3, learning_rate=1e30, optimizer="sgd"))


def test_what_travels_to_a_worker_is_the_raw_samples_alone() -> None:
    study = Declaration(data="iris", folds=2)
    samples = StudySamples(read_sources(study.cells, Path()))
    before = samples.__getstate__()
    fold = samples.of(study.cells[0])
    assert samples.of(study.cells[0]) is fold, "kept"
    assert samples.__getstate__() == before == {"sources": samples.sources, "_made": {}}


def test_each_seed_may_deal_folds_of_its_own() -> None:
    study = Declaration(data="iris", folds=3, seeds=2, new_folds_per_seed=True)
    fixed = Declaration(data="iris", folds=3, seeds=2)
    samples = StudySamples(read_sources(study.cells, Path()))
    anew = [rows_tested(samples, cell) for cell in study.cells]
    assert len(set(anew)) == 6  # 2 seeds x 3 folds
    for first in (0, 3):  # of each seed, the folds are parts of the whole
        assert sum(len(rows) for rows in anew[first : first + 3]) == 150
    same = [rows_tested(samples, cell) for cell in fixed.cells]
    assert same[:3] == same[3:]
    assert {cell.hash for cell in study.cells}.isdisjoint(cell.hash for cell in fixed.cells)


def rows_tested(samples: StudySamples, cell: Cell) -> tuple[tuple[float, ...], ...]:
    part = samples.of(cell).test
    assert isinstance(part, Part)
    return tuple(map(tuple, part.x.tolist()))


def test_a_training_in_steps_is_that_by_hand() -> None:
    (cell,), (result,), _ = run(model={"hidden": [6]}, training={"steps": 7})
    data = load_data("iris")
    sizes = [data.input_shape[0], 6, len(data.classes)]
    model = models.mlp(sizes, generator=generator(cell.training_seed, "initial weights"))
    history = train(model, data, TrainConfig(steps=7, seed=cell.training_seed))
    assert history.stopped == "all 7 steps done" and result.figures["epochs"] == len(history)
    same_figures(result, model, data)
    with pytest.raises(SettingsError, match="give one"):
        Declaration(data="iris", training={"steps": 7}, grid={"training.epochs": [3]})
