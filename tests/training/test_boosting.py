"""Gradient boosting is scikit-learn's own to the last bit, with one copy of the rows in float64."""

import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import numpy
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from topiarist.data import Data, Part
from topiarist.randomness import array_generator, child_seed
from topiarist.training.tables.boosting import CHUNK, STOPPING_ROWS, fit_boosting

MANY, FEW = STOPPING_ROWS + 800, STOPPING_ROWS - 800  # of many rows, some end the fitting
SETTINGS = {"random_state": child_seed(3, "boosting") % 2**32}


def make_data(kind: str, rows: int, *, columns: int = 4, weighted: bool = False) -> Data:
    random = array_generator(0, "rows")
    x = random.standard_normal((rows, columns)).astype(numpy.float32)
    line = x[:, 0] + x[:, 1] * x[:, 2]
    y = {
        "classes": numpy.array(["low", "middle", "high"])[numpy.digitize(line, [-1, 0.5])],
        "numbers": line,
        "labels": numpy.stack([line > 0, x[:, 3] > 1], axis=1).astype(int),
    }[kind]
    weights = random.random(rows) + 0.5 if weighted else None
    parts = {"test_fraction": 0.0, "validation_fraction": 0.0}
    return Data.from_arrays(x, y, task=kind, sample_weight=weights, scaling="auto", **parts)  # type: ignore[arg-type]


def part_of(data: Data) -> Part:
    assert isinstance(data.train, Part)
    return data.train


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["classes", "numbers", "labels"])
@pytest.mark.parametrize(("rows", "weighted"), [(MANY, False), (MANY, True), (FEW, True)])
def test_it_is_what_scikit_learn_fits_to_the_same_rows(kind: str, rows: int, weighted: bool) -> None:
    data = make_data(kind, rows, weighted=weighted)
    part = part_of(data)
    x, weights = part.x.numpy(), None if part.weights is None else part.weights.numpy()
    columns = [part.y.numpy()] if kind == "classes" else list(part.y.numpy().T)
    learner = HistGradientBoostingRegressor if kind == "numbers" else HistGradientBoostingClassifier
    answer = "predict" if kind == "numbers" else "predict_proba"
    for model, column in zip(fit_boosting(part, data.task, seed=3).models, columns, strict=True):
        wanted = learner(**SETTINGS).fit(x, column, sample_weight=weights)
        numpy.testing.assert_array_equal(getattr(model, answer)(x), getattr(wanted, answer)(x))


def test_answers_do_not_depend_on_how_many_rows_are_asked_at_once() -> None:
    data = make_data("classes", CHUNK + 500)
    part = part_of(data)
    found = fit_boosting(part.take(torch.arange(500)), data.task, seed=0)
    assert torch.equal(found(part.x)[CHUNK:], found(part.x[CHUNK:]))


def test_a_class_with_a_single_row_among_many_is_learned() -> None:
    data = make_data("classes", MANY)
    part = part_of(data)
    y = part.y.clamp(max=1)
    y[7] = 2
    found = fit_boosting(replace(part, y=y), data.task, seed=0)
    assert found.shown[0].tolist() == [0, 1, 2] and found(part.x).isfinite().all()


def test_a_copy_of_many_rows_less_is_in_memory() -> None:
    data = make_data("numbers", 2 * MANY, columns=60)
    part = part_of(data)
    x, y = part.x.numpy(), part.y.numpy()[:, 0]
    own = peak_of(lambda: HistGradientBoostingRegressor(**SETTINGS).fit(x, y))
    assert peak_of(lambda: fit_boosting(part, data.task, seed=3)) < own - 0.8 * 8 * x.size


def peak_of(fit: Callable[[], object]) -> int:
    """Return the most memory, in bytes, that Python and numpy take for a call."""
    tracemalloc.start()
    try:
        fit()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
