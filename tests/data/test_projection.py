"""Blocks of columns along their principal axes: as in scikit-learn, from training rows alone, stored exactly."""

import json
import time
from typing import Any

import numpy
import pandas
import pytest
from hypothesis import given, strategies
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from topiarist.data import Data, Part, Preprocessing
from topiarist.data.preprocessing import fit_preprocessing
from topiarist.data.projection import ColumnBlock, fit_projection, principal_axes, project
from topiarist.data.source import Features, Scaling
from topiarist.errors import DataError

SCALINGS: tuple[Scaling, ...] = ("none", "zscore", "minmax", "unit", "pixels")
TRAINING = numpy.arange(40)


def rows_of(columns: int, *, rows: int = 50, seed: int = 0) -> NDArray[numpy.float64]:
    """Return samples whose spread falls from column to column, then mixed, with means far from zero."""
    random = numpy.random.default_rng(seed)
    mixed = random.normal(size=(rows, columns)) * 0.8 ** numpy.arange(columns) @ random.normal(size=(columns, columns))
    return numpy.asarray(mixed + 10 * random.normal(size=columns))


def fit(features: Features, sizes: Any = ((7, 3), (60, 2)), **settings: Any) -> Preprocessing:
    return fit_preprocessing(features, TRAINING, **{"scaling": "none", "projection": sizes, **settings})


def by_scikit_learn(x: NDArray[Any], training: NDArray[Any], components: int) -> NDArray[Any]:
    """Return scikit-learn's components, each turned so that the largest entry of its axis is positive."""
    oracle = PCA(components, svd_solver="full").fit(training)
    axes = oracle.components_
    turned = numpy.sign(axes[numpy.arange(components), numpy.abs(axes).argmax(axis=1)])
    return numpy.asarray(oracle.transform(x) * turned)


@pytest.mark.parametrize("columns", [1, 7, 39, 40, 41, 300])
@pytest.mark.parametrize("few", [True, False])
def test_the_components_are_those_of_scikit_learn(columns: int, few: bool) -> None:
    x = rows_of(columns)
    components = min(3, columns) if few else min(columns, 20)
    (block,) = fit_projection(x[TRAINING], ((columns, components),))
    expected = by_scikit_learn(x, x[TRAINING], components)
    numpy.testing.assert_allclose(block(x), expected, rtol=1e-5, atol=2e-6 * numpy.abs(expected).max())


def test_blocks_stand_side_by_side() -> None:
    x = rows_of(67)
    found = fit(x)(x).numpy()
    expected = numpy.hstack([by_scikit_learn(x[:, :7], x[:40, :7], 3), by_scikit_learn(x[:, 7:], x[:40, 7:], 2)])
    numpy.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_scaling_comes_after_the_projection(scaling: Scaling) -> None:
    x = rows_of(67)
    prepared = fit(x, scaling=scaling)
    assert prepared.input_shape == (5,)
    projected = project(x, prepared.projection)
    later = fit_preprocessing(projected, TRAINING, scaling=scaling)
    numpy.testing.assert_allclose(prepared(x).numpy(), later(projected).numpy(), rtol=1e-6, atol=1e-6)


def test_gaps_are_filled_before_the_projection() -> None:
    x = rows_of(67)
    x[3, 5] = x[45, 60] = numpy.nan
    filled = numpy.where(numpy.isnan(x), numpy.nanmedian(x[TRAINING], axis=0), x)
    numpy.testing.assert_allclose(fit(x)(x).numpy(), fit(filled)(filled).numpy(), rtol=1e-6)


def test_a_table_of_numbers_is_projected_too() -> None:
    x = rows_of(67)
    table = pandas.DataFrame(x, columns=[f"c{number}" for number in range(67)])
    assert fit(table)(table[table.columns[::-1]]).equal(fit(x)(x))


@pytest.mark.parametrize("scaling", SCALINGS)
def test_only_training_rows_count(scaling: Scaling) -> None:
    x = rows_of(67)
    changed = x.copy()
    changed[40:] *= -1000
    assert fit(x, scaling=scaling) == fit(changed, scaling=scaling)
    changed[0] += 1
    assert fit(x, scaling=scaling) != fit(changed, scaling=scaling)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_json_gives_an_equal_object_and_equal_samples(scaling: Scaling) -> None:
    x = rows_of(67)
    prepared = fit(x, scaling=scaling)
    again = Preprocessing.from_json(json.loads(json.dumps(prepared.to_json())))
    assert again == prepared and again(x).equal(prepared(x))


def test_without_a_projection_a_record_is_what_it_was() -> None:
    record = fit(rows_of(3), None).to_json()
    assert sorted(record) == ["columns", "fill", "input_shape", "scale", "scaling", "shift"]
    assert Preprocessing.from_json(record).projection == ()


@pytest.mark.parametrize(
    "change",
    [{"columns": 6}, {"columns": -7}, {"columns": "7"}, {"offset": []}, {"axes": "no base64!"}, {"axes": None}],
)
def test_a_record_that_was_made_up_is_refused(change: dict[str, Any]) -> None:
    (block,) = fit(rows_of(7), ((7, 3),)).projection
    with pytest.raises((ValueError, TypeError)):
        ColumnBlock.from_json({**block.to_json(), **change})


@pytest.mark.slow
@given(strategies.integers(0, 10**6), strategies.integers(2, 12), strategies.integers(1, 12))
def test_axes_are_orthonormal_and_point_to_their_largest_entry(seed: int, rows: int, columns: int) -> None:
    x = rows_of(columns, rows=rows, seed=seed)
    axes = principal_axes(x - x.mean(axis=0), min(rows - 1, columns))
    numpy.testing.assert_allclose(axes.T @ axes, numpy.eye(axes.shape[1]), atol=1e-6)
    largest = axes[numpy.abs(axes).argmax(axis=0), numpy.arange(axes.shape[1])]
    assert (largest > 0).all()


@pytest.mark.parametrize("columns", [5, 60])
def test_an_axis_without_spread_is_zero(columns: int) -> None:
    x = numpy.repeat(rows_of(columns, rows=4), 10, axis=0)  # duplicates: three directions at most
    x[:, 2] = 7.0
    (block,) = fit_projection(x, ((columns, 5),))
    assert (numpy.abs(block.matrix()).max(axis=0) > 0).tolist() == [True, True, True, False, False]
    elsewhere = block(rows_of(columns, seed=1))
    assert (elsewhere[:, 3:] == 0).all() and numpy.isfinite(elsewhere).all()
    numpy.testing.assert_allclose(block(x)[:, :3], by_scikit_learn(x, x, 3), rtol=1e-4, atol=1e-4)


def test_constant_samples_are_zero_in_every_scaling() -> None:
    for scaling in SCALINGS:
        assert (fit(numpy.full((50, 6), 3.0), ((6, 2),), scaling=scaling)(numpy.ones((2, 6))) == 0).all()


@pytest.mark.parametrize("factor", [1e-150, 1e150])
def test_very_small_and_very_large_numbers(factor: float) -> None:
    x = rows_of(9)
    axes = principal_axes(factor * (x - x.mean(axis=0)), 4)
    numpy.testing.assert_allclose(axes, principal_axes(x - x.mean(axis=0), 4), atol=1e-9)


def test_components_far_below_the_first_are_exact() -> None:
    random = numpy.random.default_rng(0)
    x = random.normal(size=(40, 60)) * numpy.array([1e6, 1e3, 1.0, *[1e-3] * 57])
    (block,) = fit_projection(x, ((60, 3),))
    expected = by_scikit_learn(x, x, 3)
    assert (numpy.abs(block(x) - expected).max(axis=0) < 1e-3 * numpy.abs(expected).max(axis=0)).all()


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "float32", "bool"])
def test_every_type_of_number(dtype: str) -> None:
    x = numpy.random.default_rng(0).integers(0, 100, (50, 6)).astype(dtype)
    found = fit(x, ((6, 2),))(x)
    numpy.testing.assert_allclose(found.numpy(), fit(x.astype(float), ((6, 2),))(x.astype(float)).numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        (((7, 3), (59, 2)), r"must hold all 67 columns; found 7 \+ 59"),
        ((), "must hold all 67 columns; found no"),
        (((7, 0), (60, 2)), r"1 component or more; found \(7, 0\)"),
        (((0, 1), (67, 2)), r"1 column and 1 component or more; found \(0, 1\)"),
        (((7, 8), (60, 2)), "7 columns and 40 training rows has at most 7 principal components; asked for 8"),
        (((7, 3), (60, 40)), "60 columns and 40 training rows has at most 39 principal components; asked for 40"),
        ((67, 5), "pairs"),
        (((67,),), "pairs"),
        (((67, 2.5),), "pairs"),
        ("67:5", "pairs"),
    ],
)
def test_impossible_blocks_are_refused(sizes: Any, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        fit(rows_of(67), sizes)
    assert "\n" not in str(caught.value)


def test_what_would_not_fit_into_a_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topiarist.data.projection._MOST_NUMBERS", 100)
    with pytest.raises(DataError, match="100 numbers at most"):
        fit(rows_of(67))


def test_pictures_and_text_are_refused() -> None:
    with pytest.raises(DataError, match=r"flat samples .* found samples \(8, 8\)"):
        fit(numpy.ones((50, 8, 8)), ((64, 2),))
    table = pandas.DataFrame({"a": numpy.arange(50.0), "colour": ["red", "blue"] * 25})
    with pytest.raises(DataError, match="found text in 'colour'"):
        fit(table, ((3, 2),))


def test_samples_of_another_width_are_refused() -> None:
    with pytest.raises(DataError, match=r"reads samples of shape \(67,\); found \(5,\)"):
        fit(rows_of(67))(numpy.ones((3, 5)))


def test_each_fold_fits_its_own_axes() -> None:
    x, y = rows_of(67, rows=60), numpy.arange(60) % 3
    data = Data.from_arrays(x, y, projection=((7, 3), (60, 2)), scaling="zscore")
    assert data.input_shape == (5,)
    folds = data.folds(3)
    for fold in folds:
        assert fold.preprocessing is not None
        assert [(block.columns, block.components) for block in fold.preprocessing.projection] == [(7, 3), (60, 2)]
        assert fold.split is not None and isinstance(fold.test, Part)
        fitted = fit_preprocessing(x, fold.split.train, scaling="zscore", projection=((7, 3), (60, 2)))
        assert fitted == fold.preprocessing and fitted(x[fold.split.test]).equal(fold.test.x)
    assert len({fold.preprocessing for fold in folds}) == 3


def test_projected_inputs_can_be_seen_in_another_shape() -> None:
    x, y = rows_of(8, rows=60), numpy.arange(60) % 3
    data = Data.from_arrays(x, y, projection=((4, 3), (4, 3)), input_shape=(2, 3), scaling="zscore")
    assert data.input_shape == (2, 3) and all(fold.input_shape == (2, 3) for fold in data.folds(2))


@pytest.mark.slow
def test_many_more_columns_than_rows_are_fast() -> None:
    x = numpy.random.default_rng(0).normal(size=(607, 9552)).astype(numpy.float32)
    begun = time.process_time()
    blocks = fit_projection(x, ((4096, 5), (5456, 5)))
    assert time.process_time() - begun < 5  # seconds of all cores; about 0.3 on a quiet machine
    assert sum(len(json.dumps(block.to_json())) for block in blocks) < 260_000
