"""Temperatures against scipy's minimiser, and what calibration means."""

import math

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from topiarist.errors import SettingsError
from topiarist.randomness import array_generator
from topiarist.statistics import calibration_of, find_metric, fit_temperature, reliability


@settings(max_examples=40)
@given(st.integers(2, 60), st.integers(2, 5), st.floats(0.1, 8), st.integers(0, 99), st.booleans())
def test_no_temperature_has_a_smaller_log_loss(
    samples: int, classes: int, scale: float, seed: int, weighted: bool
) -> None:
    generator = array_generator(seed, "logits")
    targets = generator.integers(0, classes, size=samples)
    logits = scale * (generator.normal(size=(samples, classes)) + numpy.eye(classes)[targets])
    weights = generator.exponential(size=samples) if weighted else None
    found = fit_temperature(logits, targets, weights)
    if (logits.argmax(axis=1) == targets).all():
        assert found == 1.0
        return

    def log_loss(logarithm: float) -> float:
        losses = -log_softmax(logits * math.exp(logarithm), axis=1)[numpy.arange(samples), targets]
        return float(numpy.average(losses, weights=weights))

    best = minimize_scalar(log_loss, bounds=(math.log(0.01), math.log(100)), method="bounded", options={"xatol": 1e-9})
    assert 0.01 <= found <= 100.0 + 1e-9
    assert log_loss(-math.log(found)) <= best.fun + 1e-12


def test_logits_that_are_too_large_are_found_out() -> None:
    generator = array_generator(0, "logits")
    honest = 2 * generator.normal(size=(4000, 3))
    shares = numpy.exp(honest) / numpy.exp(honest).sum(axis=1, keepdims=True)
    targets = (shares.cumsum(axis=1) < generator.random((4000, 1))).sum(axis=1)
    temperature = fit_temperature(3 * honest, targets)
    assert temperature == pytest.approx(3, rel=0.06)
    before, after = calibration_of(3 * honest, targets), calibration_of(3 * honest, targets, temperature=temperature)
    assert before.calibration_error is not None and after.calibration_error is not None
    assert after.log_loss < before.log_loss and after.brier < before.brier
    assert after.calibration_error < 0.03 < 0.1 < before.calibration_error
    bins = reliability(3 * honest, targets)
    assert sum(each.share for each in bins) == pytest.approx(1)
    gap = sum(each.share * abs(each.confidence - each.accuracy) for each in bins)
    assert gap == pytest.approx(before.calibration_error)


def test_a_label_is_a_choice_of_two() -> None:
    generator = array_generator(1, "logits")
    logits = 3 * generator.normal(size=(50, 2))
    targets = (generator.random((50, 2)) < 0.5).astype(float)
    weights = generator.random(50)
    flat = numpy.stack([0 * logits.ravel(), logits.ravel()], axis=1)
    alone = fit_temperature(flat, targets.ravel(), weights.repeat(2))
    assert fit_temperature(logits, targets, weights) == pytest.approx(alone)
    found = calibration_of(logits, targets, weights=weights)
    assert found.calibration_error is None
    expected = find_metric("labels", "log_loss").value(1 / (1 + numpy.exp(-logits)), targets, weights)
    assert found.log_loss == pytest.approx(expected)
    assert sum(each.share for each in reliability(logits, targets, weights=weights)) == pytest.approx(1)


def test_samples_that_tell_nothing_change_nothing() -> None:
    assert fit_temperature([[2.0, 0.0], [0.0, 3.0]], [0, 1]) == 1.0  # all right
    assert fit_temperature([[2.0, 2.0], [1.0, 1.0]], [0, 1]) == 1.0  # nothing said
    assert fit_temperature([[2.0, 0.0], [0.0, 3.0]], [1, 0]) == pytest.approx(100)  # all wrong: say nothing
    assert fit_temperature([[2.0, 0.0], [0.0, 3.0], [9.0, 0.0]], [0, 1, 1], [1, 1, 0]) == 1.0


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(SettingsError, match="with a target each"):
        fit_temperature([[1.0, 2.0]], [0, 1])
    with pytest.raises(SettingsError, match="n_labels"):
        fit_temperature([[1.0, 2.0]], [[1.0]])
    with pytest.raises(SettingsError, match="targets must be 0 to 1; found 2 to 2"):
        fit_temperature([[1.0, 2.0]], [2])
    with pytest.raises(SettingsError, match="temperature must be above 0; found 0"):
        calibration_of([[1.0, 2.0]], [1], temperature=0)
