"""Arrays in files are those in memory, row by row, and leave nothing of what was read in memory."""

import copy
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from topiarist.data.file_arrays import CALL_BYTES, WINDOW_BYTES, FileArray
from topiarist.data.joined import JoinedArrays, join_arrays
from topiarist.data.preprocessing import fit_preprocessing
from topiarist.data.readers import idx
from topiarist.data.samples import LazySamples, read_once
from topiarist.errors import DataError
from topiarist.randomness import array_generator

START = 16
PIXELS = array_generator(0, "pixels").integers(0, 256, (5_000, 20, 30), dtype=numpy.uint8)  # 3 MB: several windows


@pytest.fixture
def filed(tmp_path: Path) -> FileArray:
    path = tmp_path / "pixels"
    path.write_bytes(bytes(START) + PIXELS.tobytes())
    return FileArray(path, START, PIXELS.shape)


def lazily(filed: FileArray, rows: numpy.ndarray) -> LazySamples:
    features = JoinedArrays([filed])
    return LazySamples(features, rows, fit_preprocessing(features, rows, scaling="pixels"))


def test_rows_are_those_of_the_array(filed: FileArray) -> None:
    assert PIXELS.nbytes > 2 * WINDOW_BYTES and len(PIXELS) * filed.row_bytes > 100 * CALL_BYTES
    order = array_generator(0, "order")
    asked: dict[str, Any] = {
        "all": slice(None),
        "some": slice(10, 4_000, 3),
        "in an order": order.permutation(len(PIXELS)),
        "again and again": order.integers(0, len(PIXELS), 300),
        "far between": numpy.array([0, 4_999, 2_500]),
        "close": numpy.array([7, 9, 8, 8]),
        "one": numpy.array([3]),
        "none": numpy.array([], dtype=int),
    }
    for name, rows in asked.items():
        assert numpy.array_equal(filed[rows], PIXELS[rows]), name
    assert (len(filed), filed.ndim, filed.size, filed.nbytes) == (5_000, 3, PIXELS.size, PIXELS.nbytes)
    assert numpy.array_equal(numpy.asarray(filed), PIXELS)


def test_rows_can_be_seen_another_way(filed: FileArray) -> None:
    seen = filed.seen(lambda rows: rows.transpose(0, 2, 1)[:, numpy.newaxis])
    assert seen.shape == (5_000, 1, 30, 20)
    assert numpy.array_equal(seen[5:9], PIXELS[5:9].transpose(0, 2, 1)[:, numpy.newaxis])


def test_what_is_sent_elsewhere_is_the_content(filed: FileArray) -> None:
    sent = copy.deepcopy(filed)  # as what is sent to a worker is made
    assert isinstance(sent, numpy.ndarray) and numpy.array_equal(sent, PIXELS)


def test_a_file_that_became_shorter_is_one_line(filed: FileArray) -> None:
    with filed.path.open("r+b") as file:
        file.truncate(START + 700)
    with pytest.raises(DataError, match=r"pixels became shorter while it was read$"):
        filed[:]


def test_only_large_files_stay_apart(filed: FileArray, monkeypatch: pytest.MonkeyPatch) -> None:
    both = numpy.concatenate([PIXELS, PIXELS[:7]])
    assert isinstance(join_arrays([filed, PIXELS[:7]]), numpy.ndarray)
    monkeypatch.setattr("topiarist.data.joined.LARGE_BYTES", 1)
    joined = join_arrays([filed, PIXELS[:7]])
    assert isinstance(joined, JoinedArrays) and joined.in_files
    for rows in (numpy.array([5_003, 1, 4_999]), numpy.array([4, 2]), slice(4_990, 5_007)):
        assert numpy.array_equal(joined[rows], both[rows])


def test_emnist_is_turned_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idx, "FILED_BYTES", 10)
    monkeypatch.setattr("topiarist.data.joined.LARGE_BYTES", 1)
    path = tmp_path / "emnist-letters-train-images-idx3-ubyte"
    path.write_bytes(b"\0\0\x08\x03" + b"".join(size.to_bytes(4, "big") for size in PIXELS.shape) + PIXELS.tobytes())
    features = idx.read_idx_file(path, labelled=False).features
    assert isinstance(features, JoinedArrays) and features.in_files
    assert numpy.array_equal(features[3:50], PIXELS[3:50].transpose(0, 2, 1)[:, numpy.newaxis])


def test_rows_held_in_memory_are_the_same_samples(filed: FileArray) -> None:
    samples = lazily(filed, numpy.arange(0, 5_000, 2))
    rows = torch.tensor([8, 2_000, 8, 0])
    held = samples.held(rows)
    assert isinstance(held.features, numpy.ndarray) and len(held.features) == 4
    assert torch.equal(held[:], samples[rows])


def test_rows_that_parts_share_are_read_once(filed: FileArray) -> None:
    samples, others = lazily(filed, numpy.arange(40)), torch.zeros(3, 20, 30)
    parts = [samples.take(torch.tensor(rows)) for rows in ([3, 1, 5], [5, 7])]
    one, two, same = read_once([*parts, others])
    assert same is others and isinstance(one, LazySamples) and isinstance(two, LazySamples)
    assert one.features is two.features and len(one.features) == 4
    assert torch.equal(one[:], parts[0][:]) and torch.equal(two[:], parts[1][:])
