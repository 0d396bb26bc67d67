import json
from typing import Any

import numpy
import pandas
import pytest
import torch
from hypothesis import given, strategies
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from sklearn.preprocessing import MinMaxScaler, StandardScaler, normalize

from topiarist.data.preprocessing import Preprocessing, fit_preprocessing
from topiarist.data.source import Features, Scaling
from topiarist.errors import DataError

SCALINGS: tuple[Scaling, ...] = ("none", "zscore", "minmax", "unit", "pixels")
NUMBERS = arrays.arrays(numpy.float64, (12, 3), elements=strategies.floats(-1000, 1000, width=32))
TRAINING = numpy.arange(8)


def fit(features: Features, rows: NDArray[Any] = TRAINING, **settings: Any) -> Preprocessing:
    return fit_preprocessing(features, rows, **{"scaling": "zscore", **settings})


def table() -> pandas.DataFrame:
    return pandas.DataFrame(
        {
            "length": [1.0, 2.0, numpy.nan, 4.0, 9.0, 1.5, 3.0, 2.5, 100.0, numpy.nan],
            "colour": ["red", "blue", None, "red", "blue", "red", "red", "blue", "green", "red"],
            "old": [True, False, True, True, False, False, True, True, True, False],
        }
    )


@pytest.mark.slow
@given(NUMBERS)
def test_zscore_and_minmax_are_those_of_scikit_learn(x: NDArray[numpy.float64]) -> None:
    spread = numpy.ptp(x[TRAINING], axis=0)
    x = x[:, (spread == 0) | (spread > 1e-3)]  # of nearly constant features, the two libraries may think differently
    x = numpy.concatenate([x, numpy.arange(12.0)[:, None]], axis=1)
    moves = numpy.ptp(x[TRAINING], axis=0) > 0
    scalers: dict[Scaling, Any] = {"zscore": StandardScaler(), "minmax": MinMaxScaler()}
    for scaling, scaler in scalers.items():
        found = fit(x, scaling=scaling)(x).numpy()
        expected = scaler.fit(x[TRAINING]).transform(x)
        numpy.testing.assert_allclose(found[:, moves], expected[:, moves], rtol=1e-5, atol=1e-5)
        assert (found[:, ~moves] == 0).all()  # a constant says nothing, in training or later


@pytest.mark.slow
@given(NUMBERS)
def test_unit_is_that_of_scikit_learn(x: NDArray[numpy.float64]) -> None:
    x = x.round(3)  # scikit-learn takes a norm below 2e-15 for zero
    numpy.testing.assert_allclose(fit(x, scaling="unit")(x).numpy(), normalize(x), rtol=1e-5, atol=1e-6)


def test_flat_pixels_have_one_mean_and_one_deviation() -> None:
    x = numpy.random.default_rng(0).integers(0, 17, (12, 6)).astype(float)
    x[:, 3] = 0
    x[0, 3] = 1  # a pixel that is rarely lit
    scaler = StandardScaler().fit(x[TRAINING].reshape(-1, 1))
    expected = scaler.transform(x.reshape(-1, 1)).reshape(x.shape)
    numpy.testing.assert_allclose(fit(x, scaling="pixels")(x).numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scaling", ["zscore", "pixels", "minmax"])
def test_pictures_are_scaled_by_channel(scaling: Scaling) -> None:
    x = numpy.random.default_rng(0).integers(0, 256, (12, 3, 4, 5)).astype(numpy.uint8)
    found = fit(x, scaling=scaling)(x).numpy()
    scaler = MinMaxScaler() if scaling == "minmax" else StandardScaler()
    by_channel = numpy.moveaxis(x, 1, -1).reshape(-1, 3).astype(float)
    scaler.fit(numpy.moveaxis(x[TRAINING], 1, -1).reshape(-1, 3).astype(float))
    expected = numpy.moveaxis(scaler.transform(by_channel).reshape(12, 4, 5, 3), -1, 1)
    numpy.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "float32", "float64", "bool"])
def test_every_type_of_number_gives_float32(dtype: str) -> None:
    x = numpy.arange(24).reshape(12, 2).astype(dtype)
    for scaling in SCALINGS:
        found = fit(x, scaling=scaling)(x)
        assert str(found.dtype) == "torch.float32" and found.isfinite().all()
    numpy.testing.assert_array_equal(fit(x, scaling="none")(x).numpy(), x.astype("float32"))


@pytest.mark.parametrize("scaling", SCALINGS)
def test_no_samples_are_no_samples(scaling: Scaling) -> None:
    x = numpy.arange(72.0).reshape(12, 2, 3)
    assert fit(x, scaling=scaling)(x[:0]).shape == (0, 2, 3)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_only_training_rows_count(scaling: Scaling) -> None:
    frame, x = table(), numpy.random.default_rng(1).normal(size=(12, 3))
    x[2, 1] = numpy.nan
    changed_frame, changed_x = frame.copy(), x.copy()
    changed_frame.loc[8:, "length"] = [-1e6, 3.0]
    changed_x[8:] = 1e6
    assert fit(frame, scaling=scaling) == fit(changed_frame, scaling=scaling)
    assert fit(x, scaling=scaling) == fit(changed_x, scaling=scaling)
    changed_x[0] = 5
    assert scaling in ("none", "unit") or fit(x, scaling=scaling) != fit(changed_x, scaling=scaling)


def test_missing_numbers_of_an_array_become_the_median_of_training() -> None:
    x = numpy.random.default_rng(2).normal(size=(12, 4))
    x[numpy.random.default_rng(3).random(x.shape) < 0.3] = numpy.nan
    x[:, 3] = numpy.nan  # a feature without a single value
    found = fit(x, scaling="none")(x).numpy()
    medians = numpy.append(numpy.nanmedian(x[TRAINING, :3], axis=0), 0)
    numpy.testing.assert_allclose(found, numpy.where(numpy.isnan(x), medians, x), rtol=1e-6)


def test_gaps_outside_training_are_filled_too() -> None:
    x = numpy.arange(24.0).reshape(12, 2)
    x[11, 0] = numpy.nan
    assert fit(x, scaling="none")(x)[11].tolist() == [numpy.median(x[TRAINING, 0]), 23.0]


def test_gaps_are_filled_in_samples_seen_as_pictures() -> None:
    x = numpy.arange(48.0).reshape(12, 4)
    x[3, 2] = numpy.nan
    flat, seen = fit(x, scaling="none"), fit(x, scaling="none", input_shape=(1, 2, 2))
    assert seen(x).shape == (12, 1, 2, 2)
    assert seen(x).flatten(1).equal(flat(x))


@pytest.mark.parametrize(("value", "said"), [(numpy.nan, "1 missing"), (numpy.inf, "1 infinite")])
def test_what_nothing_stands_for_is_refused(value: float, said: str) -> None:
    x = numpy.ones((12, 2))
    later = x.copy()
    later[5, 1] = value
    with pytest.raises(DataError, match=f"must hold finite numbers; found {said}"):
        fit(x)(later)


def test_one_hot_is_not_scaled() -> None:
    prepared = fit(table())
    found = prepared(table()).numpy()
    assert prepared.input_shape == (7,)  # length and where it is missing, three colours and none, old
    numpy.testing.assert_array_equal(found[:, 1], table()["length"].isna())
    numpy.testing.assert_array_equal(
        found[:, 2:5], pandas.get_dummies(table()["colour"], dtype=float).to_numpy() * [1, 0, 1]
    )
    numpy.testing.assert_array_equal(found[:, 5], table()["colour"].isna())
    filled = table()["length"].fillna(table()["length"][:8].median()).to_numpy()[:, None]
    expected = StandardScaler().fit(filled[:8]).transform(filled)
    numpy.testing.assert_allclose(found[:, :1], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_json_gives_an_equal_object_and_equal_samples(scaling: Scaling) -> None:
    gaps = numpy.random.default_rng(4).normal(size=(12, 4))
    gaps[1, 1] = numpy.nan
    for features in (table(), gaps, numpy.ones((12, 2, 3))):
        prepared = fit(features, scaling=scaling)
        again = Preprocessing.from_json(json.loads(json.dumps(prepared.to_json())))
        assert again == prepared
        assert again(features).equal(prepared(features))


def test_samples_are_seen_in_the_shape_asked_for() -> None:
    x = numpy.arange(12.0 * 64).reshape(12, 64)
    prepared = fit(x, scaling="none", input_shape=(1, 8, 8))
    assert prepared(x).shape == (12, 1, 8, 8)
    assert prepared(x.reshape(12, 8, 8)).equal(prepared(x))
    assert prepared(pandas.DataFrame(x)).equal(prepared(x))
    with pytest.raises(DataError, match=r"cannot see samples of shape \(64,\) as \(3, 3\)"):
        fit(x, input_shape=(3, 3))


@pytest.mark.parametrize("shape", [(5, 3), (5, 2, 2), (5,)])
def test_an_array_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match=r"reads samples of shape \(5,\); found"):
        fit(numpy.ones((12, 5)))(numpy.ones(shape))


def test_tables_and_arrays_are_not_mixed_up() -> None:
    with pytest.raises(DataError, match="a table with named columns; found an array"):
        fit(table())(numpy.ones((3, 5)))
    with pytest.raises(DataError, match="an array of numbers; found text"):
        fit(numpy.ones((12, 1)))(pandas.DataFrame({"a": ["x"]}))


def test_text_in_a_number_column_and_a_missing_column_are_named() -> None:
    prepared = fit(table())
    with pytest.raises(DataError, match="'length' must hold numbers; found 'long'"):
        prepared(table().assign(length="long"))
    with pytest.raises(DataError, match=r"missing: colour$"):
        prepared(table().drop(columns="colour"))


def test_the_samples_given_are_left_alone() -> None:
    x, frame = numpy.random.default_rng(5).normal(size=(12, 3)), table()
    before = x.copy()
    for scaling in SCALINGS:
        fit(x, scaling=scaling)(x)
        fit(frame, scaling=scaling)(frame)
    numpy.testing.assert_array_equal(x, before)
    pandas.testing.assert_frame_equal(frame, table())


@pytest.mark.parametrize("shape", [(30, 1, 4, 5), (30, 3, 2, 2), (30, 7)])
@pytest.mark.parametrize("dtype", [numpy.uint8, numpy.float32])
@pytest.mark.parametrize("scaling", ["pixels", "zscore", "minmax", "none"])
def test_large_samples_are_read_some_at_a_time_and_become_the_same(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], dtype: type, scaling: Scaling
) -> None:
    x: NDArray[Any] = numpy.random.default_rng(0).integers(0, 255, shape).astype(dtype)
    rows = numpy.arange(0, 30, 2)
    whole = fit_preprocessing(x, rows, scaling=scaling)
    expected = whole(x)
    monkeypatch.setattr("topiarist.data.preprocessing.LARGE_BYTES", 0)
    monkeypatch.setattr("topiarist.data.preprocessing.CHUNK_BYTES", 4 * x[0].nbytes)
    found = fit_preprocessing(x, rows, scaling=scaling)
    assert numpy.allclose(found.shift, whole.shift, rtol=1e-12) and numpy.allclose(found.scale, whole.scale, rtol=1e-12)
    assert torch.equal(whole(x), expected) and torch.equal(whole.of_rows(x, rows), expected[rows])
