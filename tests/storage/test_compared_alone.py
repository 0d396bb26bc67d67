"""Exports are compared on some of the samples: with these alone, they are compared on the same ones."""

import numpy
import pandas
import torch

from topiarist import models
from topiarist.data import Data
from topiarist.randomness import array_generator, isolated
from topiarist.storage.trial import MOST_CALIBRATING, MOST_COMPARED, compared_alone, make_trial


def table(rows: int, *, test: float = 0.3) -> Data:
    random = array_generator(0, "table")
    x = pandas.DataFrame(random.standard_normal((rows, 3)), columns=["a", "b", "c"])
    x["colour"] = numpy.array(["red", "green", "blue"])[random.integers(0, 3, rows)]
    y = (x["a"] > 0).map({True: "high", False: "low"})
    weights = random.random(rows) + 0.5
    return Data.from_arrays(
        x, y, sample_weight=weights, scaling="zscore", test_fraction=test, validation_fraction=0.1 if test else 0.0
    )


def test_the_same_samples_are_compared() -> None:
    data = table(5_000)
    less = compared_alone(data)
    assert less.source is not None
    assert len(less.test) == MOST_COMPARED and len(less.source) == MOST_COMPARED + MOST_CALIBRATING + 500
    with isolated(0):
        model = models.mlp([data.input_shape[0], 4, 2])
    wanted, found = make_trial(model, data, None), make_trial(model, less, None)
    assert found.origin == wanted.origin == "test part" and found.cells is not None and wanted.cells is not None
    for one, other in [(found.logits, wanted.logits), (found.labels, wanted.labels), (found.weights, wanted.weights)]:
        assert one is not None and other is not None and torch.equal(one, other)
    assert found.cells.keys() == wanted.cells.keys()
    assert all(numpy.array_equal(found.cells[name], wanted.cells[name]) for name in wanted.cells)
    assert str(found.calibration) == str(wanted.calibration)


def test_data_without_parts_to_compare_on_stay_as_they_are() -> None:
    data = table(60, test=0.0)
    assert compared_alone(data) is data
