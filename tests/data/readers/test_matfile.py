import struct
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy
import pytest
import scipy.io
from hypothesis import given, strategies
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from topiarist.data import limits
from topiarist.data.readers.matlab import read_matfile
from topiarist.errors import DataError

X = numpy.arange(24, dtype=numpy.uint8).reshape(2, 3, 4)


@pytest.mark.slow
@given(
    array=arrays.arrays(
        strategies.sampled_from(["u1", "i1", "u2", "i4", "u8", "f4", "f8"]),
        arrays.array_shapes(min_dims=2, max_dims=4, min_side=0, max_side=4),
    ),
    packed=strategies.booleans(),
)
def test_what_scipy_writes_is_read(array: NDArray[Any], packed: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.mat"
        scipy.io.savemat(path, {"a_long_name": array, "y": [1, 2]}, do_compression=packed)
        found = read_matfile(path)
    assert found["a_long_name"].dtype == array.dtype
    numpy.testing.assert_array_equal(found["a_long_name"], array)
    assert found["y"].tolist() == [[1, 2]]


def test_other_kinds_are_passed_over(tmp_path: Path) -> None:
    scipy.io.savemat(tmp_path / "a.mat", {"s": {"t": 1}, "text": "cat", "c": [1j], "X": X})
    assert list(read_matfile(tmp_path / "a.mat")) == ["X"]


def test_the_other_order_of_bytes(tmp_path: Path) -> None:
    parts = struct.pack(">IIII", 6, 8, 10, 0) + struct.pack(">IIii", 5, 8, 1, 2)
    parts += struct.pack(">HHc3x", 1, 1, b"X") + struct.pack(">HHhh", 4, 3, 258, -1)
    content = b"MATLAB 5.0".ljust(124) + b"\x01\x00MI" + struct.pack(">II", 14, len(parts)) + parts
    (tmp_path / "a.mat").write_bytes(content)
    assert read_matfile(tmp_path / "a.mat")["X"].tolist() == [[258, -1]]


@pytest.mark.parametrize("packed", [False, True])
def test_every_damaged_byte_and_every_truncation(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"X": X}, do_compression=packed)
    content = path.read_bytes()
    for place in range(124, len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:
            read_matfile(path)
        except DataError:
            continue
        assert not packed or place < 126  # zlib has a checksum; plain values may be anything
    for length in range(129, len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(DataError, match="damaged or truncated"):
            read_matfile(path)


@pytest.mark.parametrize("content", [b"", b"a,b\n" * 100, bytes(200)])
def test_what_is_no_matlab_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.mat").write_bytes(content)
    with pytest.raises(DataError, match="not a MATLAB file of level 5"):
        read_matfile(tmp_path / "a.mat")


def test_version_73(tmp_path: Path) -> None:
    (tmp_path / "a.mat").write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(600))
    with pytest.raises(DataError, match=r"version 7\.3"):
        read_matfile(tmp_path / "a.mat")


@pytest.mark.parametrize(("promised", "message"), [(10_000_000, "at most 1,000,000"), (100, "the 100 bytes promised")])
def test_a_bomb_is_not_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, promised: int, message: str) -> None:
    bomb = zlib.compress(struct.pack("<II", 14, promised) + bytes(10_000_000))
    content = b"MATLAB 5.0".ljust(124) + b"\x00\x01IM" + struct.pack("<II", 15, len(bomb)) + bomb
    (tmp_path / "a.mat").write_bytes(content)
    monkeypatch.setattr(limits, "LARGEST_BYTES", 1_000_000)
    with pytest.raises(DataError, match=message):
        read_matfile(tmp_path / "a.mat")
