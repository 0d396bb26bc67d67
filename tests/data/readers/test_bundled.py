import subprocess
import sys

import numpy
import pandas
import pytest
from sklearn import datasets

from topiarist.data.readers.bundled import BUNDLED, read_bundled


def test_digits_are_flat_arrays() -> None:
    source = read_bundled("digits")
    assert isinstance(source.features, numpy.ndarray)
    assert source.features.shape == (1797, 64)
    assert source.scaling == "pixels"
    assert source.classes == tuple("0123456789")


@pytest.mark.parametrize(("name", "rows", "columns", "classes"), [("breast-cancer", 569, 30, 2), ("wine", 178, 13, 3)])
def test_tables(name: str, rows: int, columns: int, classes: int) -> None:
    source = read_bundled(name)
    assert source.features.shape == (rows, columns)
    assert source.classes is not None
    assert len(source.classes) == classes


def test_iris_has_the_names_of_scikit_learn() -> None:
    source = read_bundled("iris")
    assert isinstance(source.features, pandas.DataFrame)
    assert source.features.columns[0] == "sepal length (cm)"
    assert source.classes == ("setosa", "versicolor", "virginica")
    assert source.labels is not None
    assert source.labels.tolist() == ["setosa"] * 50 + ["versicolor"] * 50 + ["virginica"] * 50


def test_all_names_are_read() -> None:
    assert [read_bundled(name).name for name in BUNDLED] == list(BUNDLED)


def test_digits_are_those_of_scikit_learn() -> None:
    source, (images, labels) = read_bundled("digits"), datasets.load_digits(return_X_y=True)
    numpy.testing.assert_array_equal(source.features, images, strict=True)
    assert source.labels is not None
    numpy.testing.assert_array_equal(source.labels, labels, strict=True)


@pytest.mark.parametrize("name", ["breast-cancer", "wine", "iris"])
def test_tables_are_those_of_scikit_learn(name: str) -> None:
    source = read_bundled(name)
    bunch = getattr(datasets, f"load_{name.replace('-', '_')}")(as_frame=True)
    assert isinstance(source.features, pandas.DataFrame)
    pandas.testing.assert_frame_equal(source.features, bunch.data)
    assert source.classes == tuple(bunch.target_names)
    assert source.labels is not None
    assert source.labels.tolist() == bunch.target_names[bunch.target].tolist()


@pytest.mark.slow
def test_scikit_learn_is_not_imported() -> None:
    code = (
        "import sys; from topiarist.data.readers.bundled import BUNDLED, read_bundled;"
        "[read_bundled(name) for name in BUNDLED]; sys.exit('sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
