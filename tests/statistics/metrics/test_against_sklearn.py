"""Every metric against scikit-learn's, with weights and without, with ties and absent classes."""

import math
from collections.abc import Callable

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from topiarist.randomness import array_generator
from topiarist.statistics.metrics import find_metric, metrics_of
from topiarist.statistics.metrics.judged import Kind, judged
from topiarist.statistics.metrics.metric import Metric, Targets
from topiarist.statistics.samples import Floats

pytestmark = pytest.mark.slow

CLOSE = 1e-9


def drawn_weights(kind: str, samples: int, seed: int) -> Floats | None:
    generator = array_generator(seed, "weights")
    if kind == "none":
        return None
    weights = generator.exponential(size=samples)
    if kind == "some zero":
        weights[generator.random(samples) < 0.3] = 0.0
        weights[0] = 1.0
    return weights


WEIGHTS = st.sampled_from(["none", "some", "some zero"])


def drawn_classes(samples: int, classes: int, seed: int, ties: bool) -> tuple[Floats, Targets]:
    generator = array_generator(seed, "classes")
    answers = generator.dirichlet(numpy.ones(classes), size=samples)
    if ties:
        answers = numpy.round(answers * 3) + 0.5
        answers /= answers.sum(axis=1, keepdims=True)
    return answers, generator.integers(0, max(classes - 1, 2), size=samples)  # with three or more, one is absent


def one_against_rest(answers: Floats, targets: Targets, weights: Floats | None, metric: str) -> Floats:
    """Return scikit-learn's values of each class; NaN where a class has no samples, or is all of them."""
    counted = numpy.ones(len(targets), dtype=bool) if weights is None else weights > 0
    found = []
    for name in range(answers.shape[1]):
        positive = targets == name
        if positive[counted].any() and (metric != "roc_auc_score" or not positive[counted].all()):
            found.append(getattr(sk, metric)(positive, answers[:, name], sample_weight=weights))
        else:
            found.append(math.nan)
    return numpy.array(found)


@settings(max_examples=40)
@given(st.integers(2, 40), st.integers(2, 5), st.integers(0, 99), st.booleans(), WEIGHTS)
def test_metrics_of_classes(samples: int, classes: int, seed: int, ties: bool, weighted: str) -> None:
    answers, targets = drawn_classes(samples, classes, seed, ties)
    weights = drawn_weights(weighted, samples, seed)
    decided, every = answers.argmax(axis=1), list(range(classes))
    present = numpy.unique(targets if weights is None else targets[weights > 0])
    found = {metric.name: metric.value(answers, targets, weights) for metric in metrics_of("classes")}
    expected = {
        "accuracy": sk.accuracy_score(targets, decided, sample_weight=weights),
        "macro_accuracy": sk.recall_score(
            targets, decided, labels=present, average="macro", sample_weight=weights, zero_division=0
        ),
        "f1": sk.f1_score(targets, decided, labels=present, average="macro", sample_weight=weights, zero_division=0),
        "log_loss": sk.log_loss(targets, answers, labels=every, sample_weight=weights),
        "brier": sk.brier_score_loss(
            targets, answers if classes > 2 else answers[:, 1], labels=every, sample_weight=weights
        ),
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=CLOSE), name
    for name, theirs in (("roc_auc", "roc_auc_score"), ("average_precision", "average_precision_score")):
        each = one_against_rest(answers, targets, weights, theirs)
        ours = find_metric("classes", name).each
        assert ours is not None
        assert ours(answers, targets, weights) == pytest.approx(each, abs=CLOSE, nan_ok=True), name
        mean = math.nan if numpy.isnan(each).all() else numpy.nanmean(each)
        assert found[name] == pytest.approx(mean, abs=CLOSE, nan_ok=True), name


def test_with_all_classes_present_means_are_scikit_learns_own() -> None:
    answers, _ = drawn_classes(90, 3, 0, ties=False)
    targets = numpy.arange(90) % 3
    value = {metric.name: metric.value(answers, targets) for metric in metrics_of("classes")}
    assert value["roc_auc"] == pytest.approx(sk.roc_auc_score(targets, answers, multi_class="ovr"), abs=CLOSE)
    one_hot = numpy.eye(3)[targets]
    assert value["average_precision"] == pytest.approx(sk.average_precision_score(one_hot, answers), abs=CLOSE)
    assert value["macro_accuracy"] == pytest.approx(
        sk.balanced_accuracy_score(targets, answers.argmax(axis=1)), abs=CLOSE
    )


@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(0, 99), WEIGHTS, st.booleans())
def test_calibration_error_is_that_of_a_plain_loop(samples: int, seed: int, weighted: str, ties: bool) -> None:
    answers, targets = drawn_classes(samples, 3, seed, ties)
    weights = drawn_weights(weighted, samples, seed)
    each = numpy.ones(samples) if weights is None else weights
    expected = 0.0
    for number in range(15):
        low, high = number / 15, (number + 1) / 15 if number < 14 else 2.0
        inside = [i for i in range(samples) if low <= answers[i].max() < high]
        if sum(each[inside]) > 0:
            sure = numpy.average(answers[inside].max(axis=1), weights=each[inside])
            right = numpy.average(answers[inside].argmax(axis=1) == targets[inside], weights=each[inside])
            expected += each[inside].sum() / each.sum() * abs(sure - right)
    assert find_metric("classes", "calibration_error").value(answers, targets, weights) == pytest.approx(expected)


@settings(max_examples=40)
@given(st.integers(2, 40), st.integers(1, 3), st.integers(0, 99), WEIGHTS)
def test_metrics_of_numbers(samples: int, columns: int, seed: int, weighted: str) -> None:
    generator = array_generator(seed, "numbers")
    targets = generator.normal(5, 2, size=(samples, columns))
    answers = targets + generator.standard_t(3, size=targets.shape)
    weights = drawn_weights(weighted, samples, seed)
    found = {metric.name: metric.value(answers, targets, weights) for metric in metrics_of("numbers")}
    for name, theirs in (
        ("rmse", sk.root_mean_squared_error),
        ("mae", sk.mean_absolute_error),
        ("mape", sk.mean_absolute_percentage_error),
    ):
        assert found[name] == pytest.approx(theirs(targets, answers, sample_weight=weights), rel=1e-9), name
    if weights is None or (weights > 0).sum() > 1:
        expected = sk.r2_score(targets, answers, sample_weight=weights, multioutput="raw_values")
        each = find_metric("numbers", "r2").each
        assert each is not None and each(answers, targets, weights) == pytest.approx(expected, rel=1e-9)
        assert found["r2"] == pytest.approx(expected.mean(), rel=1e-9)
    else:
        assert math.isnan(found["r2"])


@settings(max_examples=40)
@given(st.integers(2, 40), st.integers(1, 4), st.integers(0, 99), WEIGHTS, st.booleans())
def test_metrics_of_labels(samples: int, labels: int, seed: int, weighted: str, ties: bool) -> None:
    generator = array_generator(seed, "labels")
    answers = generator.random((samples, labels))
    answers = numpy.round(answers, 1) if ties else answers
    targets = (generator.random((samples, labels)) < 0.3).astype(float)
    weights = drawn_weights(weighted, samples, seed)
    counted = numpy.ones(samples, dtype=bool) if weights is None else weights > 0
    given_ = answers > 0.5
    oracles: list[tuple[str, Callable[[int], float]]] = [
        ("accuracy", lambda k: sk.accuracy_score(targets[:, k], given_[:, k], sample_weight=weights)),
        ("f1", lambda k: sk.f1_score(targets[:, k], given_[:, k], sample_weight=weights, zero_division=0)),
        ("roc_auc", lambda k: sk.roc_auc_score(targets[:, k], answers[:, k], sample_weight=weights)),
        (
            "average_precision",
            lambda k: sk.average_precision_score(targets[:, k], answers[:, k], sample_weight=weights),
        ),
        ("log_loss", lambda k: sk.log_loss(targets[:, k], answers[:, k], labels=[0, 1], sample_weight=weights)),
        ("brier", lambda k: sk.brier_score_loss(targets[:, k], answers[:, k], labels=[0, 1], sample_weight=weights)),
    ]
    for metric, theirs in oracles:
        held = targets[counted].mean(axis=0)
        some, every = numpy.atleast_1d(held > 0), numpy.atleast_1d(held == 1)
        defined = {"f1": some, "average_precision": some, "roc_auc": some & ~every}.get(
            metric, numpy.ones(labels, dtype=bool)
        )
        expected = numpy.array([theirs(k) if defined[k] else math.nan for k in range(labels)])
        found = find_metric("labels", metric)
        assert found.each is not None
        assert found.each(answers, targets, weights) == pytest.approx(expected, abs=CLOSE, nan_ok=True), metric
        mean = numpy.nanmean(expected) if defined.any() else math.nan
        assert found.value(answers, targets, weights) == pytest.approx(mean, abs=CLOSE, nan_ok=True), metric


def example_of(kind: Kind, seed: int = 0) -> tuple[Floats, Targets]:
    generator = array_generator(seed, "example")
    if kind == "classes":
        return drawn_classes(30, 4, seed, ties=True)
    if kind == "labels":
        return numpy.round(generator.random((30, 3)), 1), (generator.random((30, 3)) < 0.4).astype(float)
    targets = generator.normal(3, 1, size=(30, 2))
    return targets + generator.normal(size=(30, 2)), targets


KINDS: tuple[Kind, ...] = ("classes", "numbers", "labels")
EVERY = [(kind, metric) for kind in KINDS for metric in metrics_of(kind)]
NAMES = [f"{kind} {metric.name}" for kind, metric in EVERY]


@pytest.mark.parametrize(("kind", "metric"), EVERY, ids=NAMES)
def test_whole_weights_count_samples_so_often(kind: Kind, metric: Metric) -> None:
    answers, targets = example_of(kind)
    times = array_generator(1, "times").integers(0, 4, size=30)
    repeated = metric.value(answers.repeat(times, axis=0), targets.repeat(times, axis=0))
    assert metric.value(answers, targets, times) == pytest.approx(repeated, abs=CLOSE)
    assert metric.value(answers, targets, 7.3 * times) == pytest.approx(repeated, abs=CLOSE)


@pytest.mark.parametrize(("kind", "metric"), EVERY, ids=NAMES)
def test_per_sample_values_have_the_value_as_their_mean(kind: Kind, metric: Metric) -> None:
    answers, targets = example_of(kind)
    if metric.per_sample is not None:
        weights = array_generator(2, "weights").random(30)
        values = metric.per_sample(answers, targets)
        assert values.shape == (30,)
        assert metric.value(answers, targets, weights) == pytest.approx(numpy.average(values, weights=weights))


@pytest.mark.parametrize(("kind", "metric"), EVERY, ids=NAMES)
def test_influences_are_derivatives_by_the_weights(kind: Kind, metric: Metric) -> None:
    if metric.influence is None:
        return
    answers, targets = example_of(kind)
    weights = 0.5 + array_generator(3, "weights").random(30)
    checked = judged(kind, answers, targets, weights)
    value, influences = metric.influence(checked.answers, checked.targets, weights)
    assert value == metric.value(answers, targets, weights)
    assert influences.sum() == pytest.approx(0, abs=1e-12)
    step = 1e-6
    for k in range(30):
        more, less = weights.copy(), weights.copy()
        more[k] += step
        less[k] -= step
        slope = (metric.value(answers, targets, more) - metric.value(answers, targets, less)) / (2 * step)
        assert influences[k] == pytest.approx(weights[k] * slope, abs=1e-7)
