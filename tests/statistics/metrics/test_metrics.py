"""Metrics by name; what is refused; a user's own."""

import math

import numpy
import pytest

from topiarist.errors import SettingsError
from topiarist.statistics.metrics import find_metric, metrics_of, own_metric
from topiarist.statistics.metrics.judged import Kind


def test_names_and_directions() -> None:
    assert [metric.name for metric in metrics_of("classes")][:2] == ["accuracy", "macro_accuracy"]
    every = (*metrics_of("classes"), *metrics_of("numbers"), *metrics_of("labels"))
    lower = {metric.name for metric in every if metric.direction < 0}
    assert lower == {"log_loss", "brier", "calibration_error", "rmse", "mae", "mape"}
    assert find_metric("labels", "average precision") is find_metric("labels", "average-precision")


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("classes", "rmse", "'rmse' is a metric of numbers; metrics of classes are accuracy, macro_accuracy, "),
        ("numbers", "accuracy", "'accuracy' is a metric of classes and labels; metrics of numbers are rmse, mae"),
        ("labels", "aucc", "no metric is called 'aucc'; metrics of labels are accuracy, exact_match, f1"),
        ("sounds", "rmse", "kinds of tasks are classes, numbers, labels; found 'sounds'"),
    ],
)
def test_unknown_names_are_refused_with_the_choices(kind: Kind, name: str, message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        find_metric(kind, name)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("classes", ([[2.0, -1.0]], [0]), "probabilities must lie between 0 and 1; found -1 to 2"),
        ("classes", ([[0.9, 0.9]], [0]), "must add up to 1 for each sample; are these logits"),
        ("classes", ([[0.5, 0.5]], [2]), "targets must be 0 to 1; found 2 to 2"),
        ("classes", ([[0.5, 0.5]], [0.5]), "whole numbers"),
        ("classes", ([[0.5, 0.5]], [0, 1]), "of the same samples; found 1 and 2"),
        ("classes", ([0.5, 0.5], [0, 1]), r"must be \(n_samples, n_classes\)"),
        ("classes", (numpy.zeros((0, 2)), []), "there are no samples"),
        ("numbers", ([[1.0]], [[math.inf]]), "targets must be finite numbers; found inf"),
        ("numbers", ([[1.0, 2.0]], [1.0]), r"must be \(n_samples, n_targets\); found"),
        ("labels", ([[0.5]], [[2]]), "targets of labels must be 0 or 1; found 2"),
        ("labels", ([[1.5]], [[1]]), "probabilities must lie"),
        ("numbers", ([[1.0], [2.0]], [[1.0], [2.0]], [1.0, -0.5]), "weights must be 0 or more; found -0.5"),
        ("numbers", ([[1.0], [2.0]], [[1.0], [2.0]], [1.0]), "weights must be one number per sample"),
        ("numbers", ([[1.0], [2.0]], [[1.0], [2.0]], [0.0, 0.0]), "weights must not all be 0"),
    ],
)
def test_what_does_not_fit_is_refused(kind: Kind, arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        metrics_of(kind)[0].value(*arguments)  # type: ignore[arg-type]


def test_what_is_not_defined_is_nan() -> None:
    constant = [[1.0], [1.0]]
    assert math.isnan(find_metric("numbers", "r2").value([[1.0], [2.0]], constant))
    assert math.isnan(find_metric("numbers", "mape").value([[1.0], [2.0]], [[0.0], [1.0]]))
    assert find_metric("numbers", "mape").value([[1.0], [2.0]], [[0.0], [1.0]], [0, 1]) == 1.0
    assert math.isnan(find_metric("classes", "roc_auc").value([[0.5, 0.5]] * 3, [1, 1, 1]))


def test_an_absent_class_counts_nothing() -> None:
    answers = [[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.6, 0.3, 0.1]]
    each = find_metric("classes", "macro_accuracy").each
    assert each is not None
    assert each(answers, [0, 1, 1]) == pytest.approx([1.0, 0.5, math.nan], nan_ok=True)
    assert find_metric("classes", "macro_accuracy").value(answers, [0, 1, 1]) == 0.75


def test_a_metric_of_the_users() -> None:
    plain = own_metric("bias", lambda found, wanted: float((found - wanted).mean()), False)
    assert plain.value([[2.0], [4.0]], [[1.0], [1.0]]) == 2.0 and plain.per_sample is None and plain.direction == -1
    with pytest.raises(SettingsError, match="metric 'bias' takes no weights: give its function a third argument"):
        plain.value([[2.0]], [[1.0]], [1.0])
    weighted = own_metric(
        "mean", lambda found, wanted, w: numpy.average(found[:, 0], weights=w), True, lambda found, wanted: found[:, 0]
    )
    assert weighted.value([[2.0], [4.0]], [[1.0], [1.0]], [3, 1]) == 2.5
    assert weighted.per_sample is not None and list(weighted.per_sample([[2.0], [4.0]], [[1.0], [1.0]])) == [2.0, 4.0]
    with pytest.raises(SettingsError, match="must return a number; found NoneType"):
        own_metric("none", lambda found, wanted: None, True).value([[1.0]], [[1.0]])  # type: ignore[arg-type,return-value]
    wrong = own_metric("wrong", lambda found, wanted: 0.0, True, lambda found, wanted: found)
    with pytest.raises(SettingsError, match=r"one number per sample; found shape \(1, 1\) for 1 samples"):
        assert wrong.per_sample is not None
        wrong.per_sample([[1.0]], [[1.0]])
