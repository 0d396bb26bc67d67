from pathlib import Path
from typing import Any

import numpy
import pytest
import scipy.io

from topiarist.data.readers.matlab import holds_matlab, read_matlab, read_matlab_folder
from topiarist.errors import DataError

X = numpy.arange(32 * 32 * 3 * 4, dtype=numpy.uint32).reshape(32, 32, 3, 4).astype(numpy.uint8)
Y = numpy.array([[1], [10], [2], [10]], dtype=numpy.uint8)


def write(path: Path, **variables: Any) -> Path:
    scipy.io.savemat(path, variables, do_compression=True)
    return path


def test_one_file(tmp_path: Path) -> None:
    source = read_matlab(write(tmp_path / "train_32x32.mat", X=X, y=Y), labelled=True)
    assert isinstance(source.features, numpy.ndarray)
    assert source.features.shape == (4, 3, 32, 32)
    assert source.features.dtype == numpy.uint8
    assert source.features[3, 2, 5, 7] == X[5, 7, 2, 3]
    assert source.labels is not None
    assert source.labels.tolist() == [1, 0, 2, 0]
    assert source.parts is None
    assert source.scaling == "pixels"


def test_folder(tmp_path: Path) -> None:
    assert not holds_matlab(tmp_path)
    for part in ("train", "test", "extra"):
        write(tmp_path / f"{part}_32x32.mat", X=X, y=Y)
    assert holds_matlab(tmp_path)
    source = read_matlab_folder(tmp_path, labelled=True)
    assert source.parts is not None
    assert source.parts.tolist() == ["train"] * 4 + ["test"] * 4
    assert source.notes == ("extra_32x32.mat left out",)


def test_labels_may_be_absent_for_prediction_only(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mat", X=X)
    assert read_matlab(path, labelled=False).labels is None
    with pytest.raises(DataError, match="no labels y found beside X"):
        read_matlab(path, labelled=True)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"y": Y}, "X must be uint8"),
        ({"X": X.astype(float), "y": Y}, "found X float64"),
        ({"X": X[:, :, :, 0], "y": Y}, r"found X uint8 \(32, 32, 3\)"),
        ({"X": X, "y": Y[:3]}, "4 images but 3 labels"),
        ({"X": X, "y": Y + 5}, "y must hold the digits"),
        ({"X": X, "y": "cats"}, "no labels y"),
        ({"X": X, "y": Y * 0 + 1}, "only the class 1"),
    ],
)
def test_what_is_not_svhn(tmp_path: Path, variables: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_matlab(write(tmp_path / "a.mat", **variables), labelled=True)
