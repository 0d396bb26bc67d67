import io
import zipfile
from pathlib import Path
from typing import Any

import numpy
import pytest

from topiarist.data import limits
from topiarist.data.readers.arrays import read_arrays
from topiarist.errors import DataError

X = numpy.arange(12.0).reshape(4, 3)
Y = numpy.array([0, 1, 0, 1])


def write(tmp_path: Path, **arrays: Any) -> Path:
    numpy.savez_compressed(tmp_path / "a.npz", **arrays)
    return tmp_path / "a.npz"


def test_x_y_and_groups(tmp_path: Path) -> None:
    source = read_arrays(write(tmp_path, X=X, y=Y[:, None], groups=["p", "p", "q", "q"]), labelled=True)
    numpy.testing.assert_array_equal(source.features, X)
    assert source.labels is not None
    assert source.labels.tolist() == [0, 1, 0, 1]
    assert source.groups is not None
    assert source.groups.tolist() == ["p", "p", "q", "q"]
    assert (source.parts, source.scaling, source.notes) == (None, "zscore", ())


def test_pairs_give_parts(tmp_path: Path) -> None:
    path = write(tmp_path, x_test=X[:1] + 50, y_test=Y[:1], x_train=X, y_train=Y)
    source = read_arrays(path, labelled=True)
    assert isinstance(source.features, numpy.ndarray)
    assert source.features[:, 0].tolist() == [0, 3, 6, 9, 50]
    assert source.parts is not None
    assert source.parts.tolist() == ["train"] * 4 + ["test"]


def test_pictures_get_their_channels_in_front(tmp_path: Path) -> None:
    grey = numpy.arange(4 * 5 * 6, dtype=numpy.uint8).reshape(4, 5, 6)
    source = read_arrays(write(tmp_path, x=grey, y=Y), labelled=True)
    assert source.features.shape == (4, 1, 5, 6)
    assert source.scaling == "pixels"
    assert source.notes == ("samples of bytes (5, 6) taken as images of one channel",)
    colour = numpy.random.default_rng(0).normal(size=(4, 5, 6, 3))
    moved = read_arrays(write(tmp_path, x=colour, y=Y), labelled=True)
    assert isinstance(moved.features, numpy.ndarray)
    numpy.testing.assert_array_equal(moved.features[1, 2], colour[1, :, :, 2])
    assert moved.notes == ("channels of (5, 6, 3) moved to the front",)


def test_labels_may_be_absent_for_prediction_only(tmp_path: Path) -> None:
    path = write(tmp_path, x=X)
    assert read_arrays(path, labelled=False).labels is None
    with pytest.raises(DataError, match=r"no labels y found, only x \(4, 3\)"):
        read_arrays(path, labelled=True)


def test_missing_numbers_are_for_tables_only(tmp_path: Path) -> None:
    gaps = X.copy()
    gaps[0, 0] = numpy.nan
    assert numpy.isnan(read_arrays(write(tmp_path, x=gaps, y=Y), labelled=True).features).sum() == 1
    with pytest.raises(DataError, match="missing numbers"):
        read_arrays(write(tmp_path, x=gaps[:, :, None], y=Y), labelled=True)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": X}, r"found a \(4, 3\)"),
        ({}, "found nothing"),
        ({"x": X.astype(complex), "y": Y}, "x must hold real numbers, found type complex128"),
        ({"x": X.astype(str), "y": Y}, "x must hold real numbers"),
        ({"x": X.astype(object), "y": Y}, "never unpickled"),
        ({"x": X, "y": Y.astype(object)}, "never unpickled"),
        ({"x": numpy.full((4, 3), numpy.inf), "y": Y}, "infinite"),
        ({"x": X[0], "y": Y}, r"found shape \(3,\)"),
        ({"x": X[:0], "y": Y[:0]}, r"found shape \(0, 3\)"),
        ({"x": X, "y": Y[:3]}, r"one value for each of 4 samples, found \(3,\)"),
        ({"x": X, "y": numpy.ones((2, 2, 2))}, "one value for each of 4 samples"),
        ({"x": X, "y": Y, "groups": Y[:2]}, "groups must hold one value"),
        ({"x": X, "y": Y * 0}, "only the class 0"),
        ({"x": X, "y": Y, "weights": [1.0, -1.0, 1.0, 1.0]}, "weights must be at least 0"),
        ({"x": X, "y": [b"a", b"b", b"a", b"b"]}, "are not understood"),
        ({"x_train": X, "y_train": Y, "x_test": X[:, :2], "y_test": Y}, "differ in the shape"),
        ({"x_train": X, "y_train": Y, "x_test": X, "y_test": list("abab")}, "text and numbers"),
    ],
)
def test_refusals(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_arrays(write(tmp_path, **arrays), labelled=True)


def member(header: str, body: bytes = b"") -> bytes:
    padded = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode() + body


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"text",
        member("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 8), }", bytes(64)),
        member("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 8), }", bytes(64)),
        member("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", bytes(16)),
        member("{'descr': "),
        member("__import__('os')"),
        member("-" * 9000),
    ],
)
def test_members_that_lie(tmp_path: Path, content: bytes) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", content)
    with pytest.raises(DataError, match="cannot be read as a NumPy archive"):
        read_arrays(tmp_path / "a.npz", labelled=True)


def test_damaged_archives(tmp_path: Path) -> None:
    path = write(tmp_path, x=X, y=Y)
    content = path.read_bytes()
    damaged = bytearray(content)
    damaged[60] ^= 0xFF
    for bad in (b"", b"text", content[:-30], bytes(damaged)):
        path.write_bytes(bad)
        with pytest.raises(DataError, match="cannot be read as a NumPy archive"):
            read_arrays(path, labelled=True)


def test_a_zip_bomb_is_seen_before_it_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    numpy.save(buffer, numpy.zeros((1000, 1000)))
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", buffer.getvalue())
    monkeypatch.setattr(limits, "LARGEST_BYTES", 1_000_000)
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_, **__: pytest.fail("expanded"))
    with pytest.raises(DataError, match="at most 1,000,000"):
        read_arrays(tmp_path / "a.npz", labelled=True)
