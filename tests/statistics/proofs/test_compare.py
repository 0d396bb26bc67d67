"""Proofs by any metric: against scipy, DeLong's formula and plain loops; what networks, folds and weights do."""

import math
import time
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import ttest_1samp

from topiarist.errors import SettingsError
from topiarist.randomness import array_generator
from topiarist.statistics import compare, compare_answers, compare_each, default_margin, find_metric, holm, own_metric
from topiarist.statistics.metrics import Kind, metrics_of
from topiarist.statistics.proofs.differences import _small_groups, influenced
from topiarist.statistics.proofs.studentised import Studentised, edgeworth, studentise
from topiarist.statistics.samples import Floats

Answers = tuple[Floats, Floats, NDArray[Any]]
KINDS: tuple[Kind, ...] = ("classes", "numbers", "labels")
TESTED = [(kind, metric.name) for kind in KINDS for metric in metrics_of(kind) if metric.testable]


def drawn(kind: Kind, samples: int, *, apart: float = 0.2, seed: int = 0) -> Answers:
    """Return answers of a candidate and of a baseline that differ by some noise, and targets."""
    random = array_generator(seed, "answers", kind)
    if kind == "classes":
        targets = random.integers(0, 3, size=samples)
        logits = 1.5 * numpy.eye(3)[targets] + random.normal(size=(samples, 3))
        return softmax(logits + apart * random.normal(size=logits.shape), axis=1), softmax(logits, axis=1), targets
    if kind == "labels":
        labels = (random.random((samples, 3)) < 0.4).astype(float)
        scores = 2 * labels - 1 + random.normal(size=labels.shape)
        other = scores + apart * random.normal(size=labels.shape)
        return 1 / (1 + numpy.exp(-other)), 1 / (1 + numpy.exp(-scores)), labels
    numbers = random.normal(10, 1, size=(samples, 2)) * [1, 100]
    baseline = numbers + random.standard_t(4, size=numbers.shape) * [1, 100]
    return baseline + apart * random.normal(size=numbers.shape) * [1, 100], baseline, numbers


def compared(kind: Kind, name: str, answers: Answers, **given_: Any) -> Any:
    metric = find_metric(kind, name)
    return compare(metric, *answers, **({"margin": default_margin(metric)} | given_))


@pytest.mark.parametrize(("kind", "name"), TESTED)
def test_evidence_is_whole_and_says_what_follows(kind: Kind, name: str) -> None:
    metric = find_metric(kind, name)
    answers = drawn(kind, 300)
    found = compared(kind, name, answers)
    assert (found.metric, found.samples, found.margin) == (name, 300, default_margin(metric))
    assert found.score == pytest.approx(metric.value(answers[0], answers[2]))
    assert found.baseline_score == pytest.approx(metric.value(answers[1], answers[2]))
    if not metric.relative:
        assert found.difference == pytest.approx(metric.direction * (found.score - found.baseline_score))
    assert found.low <= found.difference <= found.high and math.isfinite(found.low) and math.isfinite(found.high)
    assert 0 < found.p <= 1 and found.proven == (found.p <= 0.05) and 0 <= found.power <= 1
    assert found.samples_needed >= 20 and isinstance(found.samples_needed, int)
    assert (found.won is None) == (found.lost is None) == (name not in ("accuracy", "exact_match"))
    assert (found.r2_difference is None) == (kind != "numbers")
    back = compared(kind, name, (answers[1], answers[0], answers[2]))
    assert numpy.sign(back.difference) == -numpy.sign(found.difference)
    assert found.to_json()["p"] == found.p


@pytest.mark.parametrize(("kind", "name"), TESTED)
def test_a_candidate_that_is_the_baseline_is_proven_by_enough_samples_and_by_no_few(kind: Kind, name: str) -> None:
    _, same, targets = drawn(kind, 3000)
    found = compared(kind, name, (same, same, targets))
    assert found.proven and found.difference == 0.0
    few = compared(kind, name, (same[:15], same[:15], targets[:15]))
    assert not few.proven and few.power == 0.0 and few.samples_needed > 15


@pytest.mark.parametrize(("kind", "name"), TESTED)
def test_a_much_worse_candidate_is_not_proven_and_a_much_better_one_is(kind: Kind, name: str) -> None:
    worse, baseline, targets = drawn(kind, 2000, apart=2.0)
    assert compared(kind, name, (worse, baseline, targets)).p > 0.5
    found = compared(kind, name, (baseline, worse, targets))
    assert found.proven and found.difference > 0


@pytest.mark.parametrize(("kind", "name"), TESTED)
def test_networks_are_averaged_and_their_order_is_nothing(kind: Kind, name: str) -> None:
    metric, (candidate, baseline, targets) = find_metric(kind, name), drawn(kind, 200, apart=0.5)
    other = (candidate + baseline) / 2
    one = compared(kind, name, (candidate[None], baseline[None], targets))
    assert one == compared(kind, name, (candidate, baseline, targets))
    both = compared(kind, name, (numpy.stack([candidate, other]), baseline, targets))
    turned = compared(kind, name, (numpy.stack([other, candidate]), baseline, targets))
    assert (turned.p, turned.low, turned.score) == pytest.approx((both.p, both.low, both.score))
    values = [metric.value(each, targets) for each in (candidate, other)]
    if name == "rmse":
        assert min(values) <= both.score <= max(values)
    else:
        assert both.score == pytest.approx(numpy.mean(values))


@pytest.mark.parametrize(("kind", "name"), TESTED)
def test_weights_that_are_equal_are_none_and_their_unit_is_nothing(kind: Kind, name: str) -> None:
    answers = drawn(kind, 200)
    plain = compared(kind, name, answers)
    equal = compared(kind, name, answers, weights=numpy.full(200, 0.25))
    assert equal.p == pytest.approx(plain.p, abs=1e-9) and equal.low == pytest.approx(plain.low)
    weights = array_generator(1, "weights").exponential(size=200)
    one, two = (compared(kind, name, answers, weights=times * weights) for times in (1.0, 7.3))
    assert two.p == pytest.approx(one.p, abs=1e-9) and two.high == pytest.approx(one.high)
    metric = find_metric(kind, name)
    assert one.score == pytest.approx(metric.value(answers[0], answers[2], weights))
    assert one.samples_needed != plain.samples_needed or plain.samples_needed == 20


@settings(max_examples=20)
@given(st.integers(20, 300), st.integers(0, 50), st.sampled_from(["rmse", "mae"]), st.sampled_from([0.01, 0.05, 0.2]))
def test_p_of_errors_is_at_least_students(samples: int, seed: int, name: str, alpha: float) -> None:
    candidate, baseline, targets = (each[:, :1] for each in drawn("numbers", samples, seed=seed))
    found = compared("numbers", name, (candidate, baseline, targets), alpha=alpha)
    power = 2 if name == "rmse" else 1
    d = (abs(candidate - targets) ** power - 1.02**power * abs(baseline - targets) ** power)[:, 0]
    assert found.p >= ttest_1samp(d, 0, alternative="less").pvalue - 1e-12
    assert found.proven == (found.low >= -0.02 - 1e-9)  # the bounds are those of the test
    assert found.difference == pytest.approx(1 - found.score / found.baseline_score)


def test_p_is_that_of_a_plain_studentised_bootstrap_where_that_is_larger() -> None:
    random = array_generator(0, "skewed")
    losses = 1.0 - random.exponential(size=60)  # skewed to the left: Student's t errs
    influences = (losses - losses.mean()) / 60
    found = studentise(influences, 0)
    drawn_ = losses[random.integers(0, 60, size=(20_000, 60))]
    t = (drawn_.mean(axis=1) - losses.mean()) / (drawn_.std(axis=1, ddof=1) / math.sqrt(60))
    for value in (-2.0, -1.0, 0.5, 1.5, 2.0):
        plain = float((t >= value).mean())
        student = float(Studentised(1.0, 59, 0.0, None).p(value))
        assert found.p(value) == pytest.approx(max(plain, student), abs=0.03)
    assert found.error == pytest.approx(losses.std(ddof=1) / math.sqrt(60))
    assert found.reach(0.05, below=False) == pytest.approx(-numpy.quantile(t, 0.05), abs=0.25)


def test_the_expansion_for_many_samples_agrees_with_the_bootstrap() -> None:
    values = array_generator(0, "many").exponential(size=2000)
    influences = values - values.mean()
    found = studentise(influences, 0)
    for t in (-1.5, 0.0, 1.0, 1.6, 2.0):
        assert found.resampled is not None
        share = float((found.resampled >= t).mean())
        assert edgeworth(t, found.skewness) == pytest.approx(share, abs=0.03)
    many = Studentised(found.error, found.freedom, found.skewness, None)
    for below in (True, False):
        assert many.reach(0.05, below=below) == pytest.approx(found.reach(0.05, below=below), abs=0.15)
    assert many.p(many.reach(0.05)) == pytest.approx(0.05, abs=0.005)


def test_the_error_of_an_area_is_delongs() -> None:
    random = array_generator(0, "areas")
    targets = (numpy.arange(80) < 30).astype(int)
    scores = random.normal(size=(2, 80)) * 0.3 + random.normal(size=80) + targets
    answers = [numpy.stack([1 - p, p], axis=1) for p in 1 / (1 + numpy.exp(-scores))]
    metric, folds = find_metric("classes", "roc_auc"), numpy.zeros(80, dtype=int)
    one, two = (influenced(metric, [each], targets, None, folds, 0) for each in answers)
    ours = one.influences - two.influences
    inflation, _ = _small_groups(metric, ours, targets, numpy.ones(80))
    won = [(each[targets == 1][:, None] > each[targets == 0]).astype(float) for each in scores]
    positive, negative = (won[0].mean(axis=axis) - won[1].mean(axis=axis) for axis in (1, 0))
    delong = positive.var(ddof=1) / 30 + negative.var(ddof=1) / 50
    assert inflation**2 * float(ours @ ours) == pytest.approx(delong)


def test_areas_are_found_within_folds_and_the_rest_is_pooled() -> None:
    candidate, baseline, targets = drawn("classes", 300)
    folds = numpy.repeat([0, 1, 2], [60, 90, 150])
    auc = find_metric("classes", "roc_auc")
    found = compared("classes", "roc_auc", (candidate, baseline, targets), folds=folds)
    within = [auc.value(candidate[folds == each], targets[folds == each]) for each in range(3)]
    assert found.score == pytest.approx(numpy.average(within, weights=[60, 90, 150]))
    for kind, name in TESTED:
        if not find_metric(kind, name).within_folds:
            answers = drawn(kind, 300)
            assert compared(kind, name, answers, folds=folds) == compared(kind, name, answers)
    one_class = numpy.where(folds == 2, 1, targets)  # no area there: that fold tells nothing
    left = compared("classes", "roc_auc", (candidate, baseline, one_class), folds=folds)
    assert left.score == pytest.approx(
        numpy.average(
            [auc.value(candidate[folds == each], one_class[folds == each]) for each in range(2)], weights=[60, 90]
        )
    )


def test_several_targets_count_alike_whatever_their_units() -> None:
    candidate, baseline, targets = drawn("numbers", 200)
    for name in ("rmse", "mae", "r2"):
        found = compared("numbers", name, (candidate, baseline, targets))
        scaled = compared("numbers", name, (candidate * [1000, 1], baseline * [1000, 1], targets * [1000, 1]))
        assert scaled.p == pytest.approx(found.p) and scaled.difference == pytest.approx(found.difference)
    constant = targets * [1, 0]
    with pytest.raises(SettingsError, match="target 2 of 2 does not vary: leave it out"):
        compared("numbers", "rmse", (candidate, baseline, constant))


@pytest.mark.parametrize(("kind", "name"), [("numbers", "rmse"), ("labels", "roc_auc"), ("labels", "accuracy")])
def test_each_target_or_label_with_holms_correction(kind: Kind, name: str) -> None:
    candidate, baseline, targets = drawn(kind, 400)
    metric = find_metric(kind, name)
    found = compare_each(metric, candidate, baseline, targets, margin=0.05)
    alone = [
        compare(metric, *(each[:, [k]] for each in (candidate, baseline, targets)), margin=0.05)
        for k in range(targets.shape[1])
    ]
    assert [each.p for each in found] == pytest.approx(holm([each.p for each in alone]))
    assert [each.difference for each in found] == [each.difference for each in alone]
    with pytest.raises(SettingsError, match="'f1' is for classes"):
        compare_each(find_metric("classes", "f1"), *drawn("classes", 30), margin=0.05)


def test_weighted_answers_vary_more() -> None:
    random = array_generator(0, "weighted")
    right = random.random((2, 400)) < 0.9
    weights = random.exponential(size=400)
    found = compare_answers(right[0], right[1], margin=0.05, weights=weights)
    plain = compare_answers(right[0], right[1], margin=0.05)
    difference = right[0].astype(float) - right[1]
    assert found.difference == pytest.approx(numpy.average(difference, weights=weights))
    drawn_ = random.integers(0, 400, size=(4000, 400))
    spread = (weights[drawn_] * difference[drawn_]).sum(axis=1) / weights[drawn_].sum(axis=1)
    assert (found.high - found.low) / 2 / 1.645 == pytest.approx(spread.std(), rel=0.1)
    assert found.high - found.low > 1.2 * (plain.high - plain.low)
    only = compare_answers(right[0], right[1], margin=0.05, weights=numpy.arange(400) < 300)
    cut = compare_answers(right[0][:300], right[1][:300], margin=0.05)
    assert only.p == pytest.approx(cut.p) and only.won == pytest.approx(cut.won)


def test_a_metric_of_the_users_is_compared_as_a_known_one() -> None:
    answers = drawn("classes", 300)
    known = find_metric("classes", "brier")

    def value(found: Floats, wanted: NDArray[Any], weights: Floats) -> float:
        return known.value(found, wanted, weights)

    assert known.per_sample is not None
    mean = compare(own_metric("mine", value, False, known.per_sample), *answers, margin=0.02)
    expected = compare(known, *answers, margin=0.02)
    assert mean.p == expected.p and mean.low == expected.low
    whole = compare(own_metric("mine", value, False), *answers, margin=0.02)
    assert whole.difference == pytest.approx(expected.difference)
    assert whole.high - whole.difference == pytest.approx(expected.high - expected.difference, rel=0.3)
    wrong = own_metric("wrong", lambda found, wanted: 0.0, False, known.per_sample)
    with pytest.raises(SettingsError, match="metric 'wrong' is 0, but the mean of its per-sample values is 0"):
        compare(wrong, *answers, margin=0.02)
    never = own_metric("never", lambda found, wanted: math.nan, True)
    with pytest.raises(SettingsError, match="metric 'never' is not finite for some of the samples"):
        compare(never, *answers, margin=0.02)


@pytest.mark.parametrize(
    ("kind", "name", "change", "message"),
    [
        ("classes", "calibration_error", {}, "calibration_error has no test that holds its level: choose log_loss"),
        ("classes", "brier", {"margin": 0.0}, "margin must be above 0; found 0.0"),
        ("classes", "accuracy", {"margin": 1.5}, "margin must lie between 0 and 1; found 1.5"),
        ("classes", "brier", {"alpha": 1.0}, "alpha must lie between 0 and 1"),
        ("classes", "brier", {"weights": [1.0]}, "weights must be one number per sample"),
        ("classes", "brier", {"folds": [1, 2]}, "folds must be one number per sample"),
        ("numbers", "rmse", {"weights": [-1.0] * 40}, "weights must be 0 or more; found -1"),
    ],
)
def test_wrong_settings_are_refused(kind: Kind, name: str, change: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        compared(kind, name, drawn(kind, 40), **change)


@pytest.mark.parametrize(("kind", "name"), [("classes", "accuracy"), ("classes", "log_loss"), ("numbers", "rmse")])
def test_one_sample_is_no_comparison(kind: Kind, name: str) -> None:
    answers, wanted = ([[0.4, 0.6]], [1]) if kind == "classes" else ([[0.4]], [[1.0]])
    with pytest.raises(SettingsError, match="networks are compared over 2 samples or more; found 1"):
        compare(find_metric(kind, name), answers, answers, wanted, margin=0.01)


def test_what_is_not_defined_is_refused() -> None:
    candidate, baseline, targets = drawn("classes", 40)
    with pytest.raises(SettingsError, match="roc_auc is not defined: the samples are all of one class"):
        compared("classes", "roc_auc", (candidate, baseline, numpy.ones(40, dtype=int)))
    with pytest.raises(SettingsError, match="of the same samples; found 39 and 40"):
        compared("classes", "brier", (candidate, baseline[:39], targets))
    numbers = drawn("numbers", 40)
    with pytest.raises(SettingsError, match="mape is not defined where a target is 0: choose rmse or mae"):
        compared("numbers", "mape", (numbers[0], numbers[1], numpy.zeros((40, 2))))
    with pytest.raises(SettingsError, match="r2 is not defined"):
        compared("numbers", "r2", (numbers[0], numbers[1], numpy.ones((40, 2))))
    perfect = compared("numbers", "rmse", (numbers[0], numbers[2], numbers[2]))
    assert perfect.p == 1.0 and "the baseline makes no error" in perfect.notes[0]


def test_a_comparison_of_a_thousand_samples_takes_less_than_50_milliseconds() -> None:
    for kind, name in TESTED:
        answers = drawn(kind, 1000)
        compared(kind, name, answers)
        begun = time.process_time()
        compared(kind, name, answers)
        assert time.process_time() - begun < 0.05, (kind, name)
