"""Gradient boosting is scikit-learn's own to the last bit, without a copy of the rows in float64."""

import io
import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import joblib
import numpy
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper

from topiarist.data import Data, Part
from topiarist.randomness import array_generator, child_seed
from topiarist.training.tables import binning, boosting
from topiarist.training.tables.binning import SampleColumns, fit_bins
from topiarist.training.tables.boosting import (
    CHUNK,
    FEWER_BINS,
    MOST_FULL_INPUTS,
    STOPPING_ROWS,
    fit_boosting,
)

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
def test_it_is_what_scikit_learn_fits_to_the_same_rows(
    monkeypatch: pytest.MonkeyPatch, kind: str, rows: int, weighted: bool
) -> None:
    monkeypatch.setattr(binning, "BLOCK_BYTES", 16 * rows)  # two of the four columns at a time
    data = make_data(kind, rows, weighted=weighted)
    part = part_of(data)
    x, weights = part.x.numpy(), None if part.weights is None else part.weights.numpy()
    columns = [part.y.numpy()] if kind == "classes" else list(part.y.numpy().T)
    learner = HistGradientBoostingRegressor if kind == "numbers" else HistGradientBoostingClassifier
    answer = "predict" if kind == "numbers" else "predict_proba"
    for model, column in zip(fit_boosting(part, data.task, seed=3).models, columns, strict=True):
        wanted = learner(**SETTINGS).fit(x, column, sample_weight=weights)
        assert type(model) is learner and sorted(vars(model)) == sorted(vars(wanted))
        numpy.testing.assert_array_equal(getattr(model, answer)(x), getattr(wanted, answer)(x))


def size_of(model: object) -> int:
    file = io.BytesIO()
    joblib.dump(model, file)
    return file.tell()


def test_of_very_many_numbers_some_rows_are_fitted_to(monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_data("numbers", 900)
    part = part_of(data)
    monkeypatch.setattr(boosting, "MOST_CELLS", 4 * 600)
    (found,) = fit_boosting(part, data.task, seed=3).models
    rows = numpy.sort(array_generator(3, "rows of boosting").choice(900, 600, replace=False))
    wanted = HistGradientBoostingRegressor(**SETTINGS).fit(part.x.numpy()[rows], part.y.numpy()[rows, 0])
    numpy.testing.assert_array_equal(found.predict(part.x.numpy()), wanted.predict(part.x.numpy()))


@pytest.mark.parametrize(("inputs", "bins"), [(MOST_FULL_INPUTS, 255), (MOST_FULL_INPUTS + 1, FEWER_BINS)])
def test_many_inputs_have_fewer_bins(inputs: int, bins: int) -> None:
    data = make_data("numbers", 90, columns=inputs)
    assert fit_boosting(part_of(data), data.task, seed=0).models[0].max_bins == bins


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


def test_of_many_rows_some_are_drawn_to_bin_all_columns_by() -> None:
    x = array_generator(0, "columns").standard_normal((3_000, 5)).astype(numpy.float32)
    x[::7, 2] = numpy.nan
    settings = {"n_bins": 20, "subsample": 500, "random_state": 3, "n_threads": 1}
    wanted, found = _BinMapper(**settings), _BinMapper(**settings)
    bins = wanted.fit_transform(x.astype(float))
    columns = SampleColumns(torch.from_numpy(x), numpy.arange(3_000))
    blocks, binned = [slice(0, 2), slice(2, 4), slice(4, 5)], numpy.empty(x.shape, numpy.uint8, order="F")
    columns.blocks = lambda: iter(blocks)  # type: ignore[method-assign]
    fit_bins(found, columns, binned, {})
    assert numpy.array_equal(binned, bins) and size_of(found) == size_of(wanted)
    for name in ("n_bins_non_missing_", "is_categorical_", "missing_values_bin_idx_"):
        assert numpy.array_equal(getattr(found, name), getattr(wanted, name))
    assert all(map(numpy.array_equal, found.bin_thresholds_, wanted.bin_thresholds_))


def test_no_copy_of_many_rows_is_in_memory() -> None:
    data = make_data("numbers", 2 * MANY, columns=60)
    part = part_of(data)
    x, y = part.x.numpy(), part.y.numpy()[:, 0]
    own = peak_of(lambda: HistGradientBoostingRegressor(**SETTINGS).fit(x, y))
    assert peak_of(lambda: fit_boosting(part, data.task, seed=3)) < own - 1.7 * 8 * x.size


def peak_of(fit: Callable[[], object]) -> int:
    """Return the most memory, in bytes, that Python and numpy take for a call."""
    tracemalloc.start()
    try:
        fit()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
