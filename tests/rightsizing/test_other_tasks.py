"""Numbers and labels rightsized: judged by their own metric, written, exported, and without a word of accuracy."""

import math
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
import torch
from sklearn import metrics as oracle

from tests.report.rightsizing_reader import read_page
from tests.rightsizing.tasks import blobs, shrunk
from topiarist import load
from topiarist.data import Data, Part
from topiarist.errors import SettingsError
from topiarist.models import card_of, mlp
from topiarist.models.evaluation import count_parameters
from topiarist.randomness import array_generator, generator
from topiarist.report.rightsizing.page import rightsizing_page
from topiarist.report.writing import read_record, write_report
from topiarist.rightsizing import Rightsizing
from topiarist.rightsizing.delivery import deliver
from topiarist.rightsizing.judging import JudgedAnswers, each_evidence, evidence_of, judged_score
from topiarist.rightsizing.wording import change_words, margin_words, value_words
from topiarist.statistics import find_metric, holm, own_metric
from topiarist.storage.onnx_export import Session
from topiarist.tasks import MultiLabel, Regression, Task

pytestmark = [
    pytest.mark.usefixtures("small_plan"),
    pytest.mark.filterwarnings("ignore:y0, y1:topiarist.errors.TopiaristWarning"),
]
X = array_generator(3, "samples").normal(size=(260, 4))
NOISE = array_generator(3, "noise").normal(size=(260, 2))
Y = {
    "a number": 5e5 + 4e4 * X[:, 0] + 1e4 * X[:, 1] ** 2 + 2e3 * NOISE[:, 0],
    "two numbers": numpy.stack([X[:, 0] * X[:, 1], 1e3 * X[:, 2]], axis=1) + 0.1 * NOISE,
    "labels": (numpy.stack([X[:, 0], X[:, 1] + X[:, 2]], axis=1) + 0.3 * NOISE > 0).astype(int),
}


def data_of(name: str, **options: object) -> Data:
    return Data.from_arrays(X, Y[name], scaling="auto", name=name, **options)  # type: ignore[arg-type]


def found_for(name: str, **settings: object) -> Rightsizing:
    data = data_of(name)
    return shrunk(data, lambda: mlp([4, 32, 16, data.task.outputs], generator=generator(0, "small")), **settings)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(Y))
def test_a_smaller_network_with_a_verdict_a_page_and_an_onnx_file(name: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    found = found_for(name, max_drop=0.5)
    data, task = found.data, found.data.task
    assert found.status in ("proven", "unproven")
    assert count_parameters(found.model) * 3 < count_parameters(found.baseline)
    record = deliver(found, tmp_path)
    page = write_report(record, tmp_path)
    assert read_record(tmp_path / "result.json") == record
    title = record.metric.title
    assert title in record.verdict.sentence and record.metric.name == task.primary
    text = page.read_text()
    if task.kind == "numbers":
        assert "accurac" not in text.lower() and "accurac" not in (tmp_path / "result.json").read_text()
        assert record.decision.rungs[0].r2_difference is not None
    quoted = read_page(text).quoted
    assert "test.score.after.value" in {each.path for each in quoted}
    loaded, test = load(tmp_path / "model.safetensors"), data.test
    saved = card_of(loaded).task
    assert isinstance(test, Part) and saved is not None
    with torch.no_grad():
        wanted = saved.answers(loaded.eval()(test.x)).numpy()
    assert data.source is not None and data.split is not None
    given = Session(tmp_path / "model.onnx")(X[data.split.test].astype(numpy.float32))[-1]
    deviation = numpy.asarray(Y[name], dtype=float).std(axis=0) if task.kind == "numbers" else 1.0
    assert abs((given - wanted) / deviation).max() < 1e-4


@pytest.mark.slow
def test_another_metric_decides_in_its_own_words() -> None:
    found = found_for("a number", metric="mae", max_drop=0.3)
    record = found.record
    assert record.metric.title == "mean absolute error" and record.settings.max_drop == 0.3
    held = found.data.test
    assert isinstance(held, Part) and record.test is not None
    answers, truth = (found.data.task.answers(each.detach()) for each in (found.model(held.x), held.y))
    assert record.test.after["mae"] == pytest.approx(oracle.mean_absolute_error(truth, answers), rel=1e-6)
    off = own_metric("far_off", lambda a, y: float((abs(a - y) > 1e4).mean()), False, margin=0.2)
    own = found_for("a number", metric=off)
    assert own.record.settings.max_drop == 0.2 and "far_off" in own.sentence


@pytest.mark.slow
def test_each_target_is_tested_by_itself_where_that_is_asked_for() -> None:
    found = found_for("two numbers", max_drop=0.5, each=True)
    rung = next(rung for rung in found.record.decision.rungs if rung.network == found.record.verdict.chosen)
    assert len(rung.each) == 2 and rung.each[0].difference != rung.each[1].difference
    assert [test.proven for test in rung.each] == [test.p <= rung.level for test in rung.each]
    place = found.record.decision.rungs.index(rung)
    page = rightsizing_page(found.record)
    paths = {each.path for each in read_page(page).quoted}
    assert f"decision.rungs.{place}.each.1.p" in paths and "One by one" in page
    assert "One by one" not in rightsizing_page(found_for("two numbers", max_drop=0.5).record)


def test_tests_one_by_one_are_those_of_each_column_with_the_correction_of_holm() -> None:
    task = Regression(("a", "b", "c"))
    one, two = ([judged(task, 2, 90, seed)] for seed in (0, 0))
    worse = [replace(each, outputs=each.outputs + torch.tensor([0.0, 0.05, 0.4])) for each in one]
    found = each_evidence(worse, two, margin=0.1, alpha=0.05)
    alone = []
    for column in range(3):
        single = Regression((task.targets[column],))
        pair = (
            [JudgedAnswers(single, each.outputs[..., [column]], each.y[:, [column]], each.weights) for each in side]
            for side in (worse, two)
        )
        alone.append(evidence_of(*pair, margin=0.1, alpha=0.05))
    assert [each.difference for each in found] == pytest.approx([each.difference for each in alone])
    assert [each.p for each in found] == pytest.approx(holm([each.p for each in alone]))
    assert found[0].proven and not found[2].proven


@pytest.mark.parametrize(("name", "message"), [("a number", "found a number: y"), ("classes", "found 3 classes")])
def test_one_target_is_not_tested_one_by_one(name: str, message: str) -> None:
    data = blobs() if name == "classes" else data_of(name)
    with pytest.raises(SettingsError, match=f"several numbers or labels are tested one by one; {message}"):
        shrunk(data, each=True)


def judged(task: Task, networks: int, samples: int, seed: int) -> JudgedAnswers:
    random = torch.Generator().manual_seed(seed)
    y = torch.randn(samples, task.outputs, generator=random)
    noise = torch.randn(networks, samples, task.outputs, generator=random)
    weights = torch.rand(samples, generator=random) + 0.5
    if task.kind == "labels":
        return JudgedAnswers(task, 2 * y + noise, (y > 0).float(), weights)
    return JudgedAnswers(task, y + 0.3 * noise, y, weights)


def test_folds_are_pooled_in_the_units_of_the_user() -> None:
    tasks = [Regression(("u",), centre=(c,), scale=(s,)) for c, s in ((100.0, 10.0), (120.0, 20.0))]
    folds = [judged(task, 1, 50, seed) for seed, task in enumerate(tasks)]
    truth, answers, weights = (
        torch.cat(parts).numpy()
        for parts in (
            [each.task.answers(each.y) for each in folds],
            [each.task.answers(each.outputs[0]) for each in folds],
            [each.weights for each in folds if each.weights is not None],
        )
    )
    expected = oracle.root_mean_squared_error(truth, answers, sample_weight=weights)
    assert judged_score(folds) == pytest.approx(expected, rel=1e-6)
    evidence = evidence_of(folds, folds, margin=0.02, alpha=0.05)
    assert evidence.relative and evidence.difference == 0 and evidence.score == pytest.approx(expected, rel=1e-6)


def test_areas_are_found_within_folds_and_over_networks() -> None:
    folds = [judged(MultiLabel(("p", "q")), 2, size, size) for size in (40, 60)]
    each = [
        numpy.mean([oracle.roc_auc_score(fold.y, out, sample_weight=fold.weights) for out in fold.outputs])
        for fold in folds
    ]
    weights = [float(fold.weights.sum()) for fold in folds if fold.weights is not None]
    assert judged_score(folds) == pytest.approx(numpy.average(each, weights=weights), abs=1e-6)
    assert evidence_of(folds, folds, margin=0.01, alpha=0.05).score == pytest.approx(judged_score(folds), abs=1e-9)


def test_a_network_that_diverged_is_judged_and_far_worse() -> None:
    good = judged(Regression(("u",)), 1, 60, 0)
    broken = JudgedAnswers(good.task, torch.full_like(good.outputs, math.nan), good.y)
    assert evidence_of([broken], [JudgedAnswers(good.task, good.outputs, good.y)], margin=0.02, alpha=0.05).p > 0.9


@pytest.mark.parametrize(
    ("name", "metric", "message"),
    [
        ("a number", "accuracy", "'accuracy' is a metric of classes and labels; metrics of numbers are rmse"),
        ("labels", "rmse", "'rmse' is a metric of numbers; metrics of labels are accuracy"),
        ("two numbers", "r3", "no metric is called 'r3'"),
    ],
)
def test_a_metric_of_another_task_is_refused(name: str, metric: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        shrunk(data_of(name), metric=metric)


def test_a_metric_that_the_data_do_not_allow_is_refused_before_the_work() -> None:
    data = Data.from_arrays(X, numpy.where(X[:, 0] > 0, X[:, 0], 0.0), scaling="auto")
    with pytest.raises(SettingsError, match="mape is not defined where a target is 0: choose rmse or mae"):
        shrunk(data, metric="mape")
    classes = Data.from_arrays(X, (X[:, 0] > 0).astype(int))
    with pytest.raises(SettingsError, match="calibration_error has no test that holds its level"):
        shrunk(classes, metric="calibration_error")


def test_losses_and_margins_are_said_as_the_metric_means_them() -> None:
    rmse, auc, accuracy = (
        find_metric(kind, name)  # type: ignore[arg-type]
        for kind, name in (("numbers", "rmse"), ("labels", "roc_auc"), ("classes", "accuracy"))
    )
    assert [margin_words(each, 0.02) for each in (rmse, auc, accuracy)] == ["2 %", "0.02", "2 points"]
    assert [change_words(each, -0.0123) for each in (rmse, auc, accuracy)] == [
        "RMSE 1.23 % larger",
        "ROC AUC 0.0123 worse",
        "−1.23 points",
    ]
    assert [value_words(each, 0.98765) for each in (rmse, auc, accuracy)] == ["0.9877", "0.9877", "98.77 %"]
    assert value_words(rmse, 54_321.6) == "54,322"
