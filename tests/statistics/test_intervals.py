"""Intervals of a metric's value hold what they promise, and are never empty where all is right."""

import numpy
import pytest
import scipy

from topiarist.randomness import array_generator
from topiarist.statistics import find_metric
from topiarist.statistics.metrics.judged import Kind
from topiarist.statistics.proofs import value_interval
from topiarist.statistics.proofs.intervals import wilson


def test_shares_have_the_interval_that_scipy_finds() -> None:
    for right, samples in ((6, 6), (0, 9), (3, 10), (950, 1000)):
        oracle = scipy.stats.binomtest(right, samples).proportion_ci(0.95, method="wilson")
        assert wilson(right / samples, samples) == pytest.approx((oracle.low, oracle.high))


@pytest.mark.parametrize(("kind", "name"), [("numbers", "rmse"), ("numbers", "r2"), ("labels", "roc_auc")])
def test_intervals_cover_what_is_true(kind: Kind, name: str) -> None:
    random, metric = array_generator(0, "intervals"), find_metric(kind, name)

    def drawn(samples: int) -> tuple[numpy.ndarray, numpy.ndarray]:
        x = random.normal(size=(samples, 1))
        if kind == "numbers":
            return x, x + random.normal(size=(samples, 1))
        noise = random.logistic(size=(samples, 1))
        return 1 / (1 + numpy.exp(-x)), (x + noise > 0).astype(numpy.float64)

    truth = metric.value(*drawn(400_000))
    found = [value_interval(metric, *drawn(150)) for _ in range(300)]
    covered = numpy.mean([low <= truth <= high for low, high in found])
    assert 0.9 <= covered <= 0.985


def test_where_all_is_right_so_few_samples_say_little() -> None:
    scores, labels = numpy.array([[0.1], [0.2], [0.8], [0.9]]), numpy.array([[0.0], [0.0], [1.0], [1.0]])
    low, high = value_interval(find_metric("labels", "roc_auc"), scores, labels)
    assert high == 1 and low < 0.5
