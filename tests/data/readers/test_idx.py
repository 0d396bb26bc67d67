import gzip
import struct
import tempfile
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given, strategies
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from topiarist.data import limits
from topiarist.data.readers.idx import holds_idx, read_idx_array, read_idx_file, read_idx_folder
from topiarist.errors import DataError

IMAGES = numpy.arange(4 * 2 * 3, dtype=numpy.uint8).reshape(4, 2, 3)
LABELS = numpy.array([0, 1, 0, 1], dtype=numpy.uint8)


def encoded(array: NDArray[Any]) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write(folder: Path, prefix: str = "", *, ending: str = ".gz", dash: str = "-") -> None:
    for part in ("train", "t10k"):
        for kind, axes, array in (("images", 3, IMAGES), ("labels", 1, LABELS)):
            content = encoded(array)
            name = f"{prefix}{part}-{kind}{dash}idx{axes}-ubyte{ending}"
            (folder / name).write_bytes(gzip.compress(content) if ending else content)


@pytest.mark.slow
@given(
    array=arrays.arrays(numpy.uint8, arrays.array_shapes(max_dims=4, min_side=0, max_side=5)),
    packed=strategies.booleans(),
)
def test_round_trip(array: NDArray[numpy.uint8], packed: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        path.write_bytes(gzip.compress(encoded(array)) if packed else encoded(array))
        numpy.testing.assert_array_equal(read_idx_array(path), array)


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("dash", ["-", "."])
def test_folder(tmp_path: Path, ending: str, dash: str) -> None:
    write(tmp_path, ending=ending, dash=dash)
    source = read_idx_folder(tmp_path, labelled=True)
    assert holds_idx(tmp_path)
    assert isinstance(source.features, numpy.ndarray)
    assert source.features.shape == (8, 1, 2, 3)
    assert source.features.dtype == numpy.uint8
    assert source.labels is not None
    assert source.parts is not None
    for part in ("train", "test"):
        numpy.testing.assert_array_equal(source.features[source.parts == part, 0], IMAGES)
        assert source.labels[source.parts == part].tolist() == [0, 1, 0, 1]
    assert source.scaling == "pixels"


def test_one_file_and_its_labels(tmp_path: Path) -> None:
    write(tmp_path)
    source = read_idx_file(tmp_path / "train-images-idx3-ubyte.gz", labelled=True)
    assert len(source) == 4
    assert source.parts is None


def test_emnist_is_transposed(tmp_path: Path) -> None:
    write(tmp_path, "emnist-byclass-")
    source = read_idx_file(tmp_path / "emnist-byclass-train-images-idx3-ubyte.gz", labelled=True)
    assert isinstance(source.features, numpy.ndarray)
    numpy.testing.assert_array_equal(source.features[:, 0], IMAGES.transpose(0, 2, 1))


def test_two_families_are_too_many(tmp_path: Path) -> None:
    write(tmp_path, "emnist-byclass-")
    write(tmp_path, "emnist-letters-")
    with pytest.raises(DataError, match="several sets"):
        read_idx_folder(tmp_path, labelled=True)


def test_labels_may_be_absent_for_prediction_only(tmp_path: Path) -> None:
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(encoded(IMAGES))
    assert read_idx_file(path, labelled=False).labels is None
    assert read_idx_folder(tmp_path, labelled=False).labels is None
    with pytest.raises(DataError, match="train-labels-idx1-ubyte"):
        read_idx_file(path, labelled=True)


def test_counts_that_differ(tmp_path: Path) -> None:
    write(tmp_path, ending="")
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(encoded(LABELS[:3]))
    with pytest.raises(DataError, match=r"labels of shape \(3,\) for 4 images"):
        read_idx_folder(tmp_path, labelled=True)


def test_labels_given_as_images(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(DataError, match=r"shape \(4,\); images"):
        read_idx_file(tmp_path / "train-labels-idx1-ubyte.gz", labelled=True)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins with nothing"),
        (b"\0\0\x08", "not an IDX file"),
        (b"\x01\0\x08\x03" + bytes(12), "begins with 01 00 08 03"),
        (b"\0\0\x08\0", "not an IDX file"),
        (b"\0\0\x0d\x01" + bytes(4), "type 0x0d"),
        (encoded(IMAGES)[:9], "header ends too early"),
        (encoded(IMAGES)[:-1], "truncated: 24 bytes promised, 23 found"),
        (encoded(IMAGES) + b"\0", "more than the 24 bytes"),
        (b"\0\0\x08\x03" + b"\xff" * 12, "at most"),
    ],
)
def test_damage(tmp_path: Path, content: bytes, message: str, packed: bool) -> None:
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(DataError, match=message):
        read_idx_array(path)


def test_truncated_gzip_and_wrong_checksum(tmp_path: Path) -> None:
    content = gzip.compress(encoded(IMAGES))
    path = tmp_path / "a.gz"
    path.write_bytes(content[:-10])
    with pytest.raises(DataError, match="truncated"):
        read_idx_array(path)
    path.write_bytes(content[:-8] + bytes(4) + content[-4:])
    with pytest.raises(DataError, match=r"damaged gzip \(CRC"):
        read_idx_array(path)


def test_a_bomb_is_refused_by_its_header_or_read_no_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(encoded(numpy.zeros((100, 100, 100), dtype=numpy.uint8))))
    monkeypatch.setattr(limits, "LARGEST_BYTES", 999_999)
    with pytest.raises(DataError, match="1,000,000 bytes or more"):
        read_idx_array(path)
    path.write_bytes(gzip.compress(encoded(LABELS) + bytes(10_000_000)))
    with pytest.raises(DataError, match="more than the 4 bytes"):
        read_idx_array(path)
