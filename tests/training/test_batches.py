"""Batches are the same whether parts are copied into one tensor, left where they are, or read from a file."""

from pathlib import Path

import numpy
import pytest
import torch

from topiarist.data import LazySamples, Part
from topiarist.data.file_arrays import FileArray
from topiarist.data.joined import JoinedArrays
from topiarist.data.preprocessing import fit_preprocessing
from topiarist.data.samples import JoinedSamples
from topiarist.randomness import array_generator, generator
from topiarist.training.engines import batching
from topiarist.training.engines.batching import Batch, MemoryBatches

LIKE = torch.zeros(1)


def parts(*rows: int) -> list[Part]:
    random = generator(0, "samples")
    return [Part(torch.randn(count, 6, generator=random), torch.arange(count)) for count in rows]


def epoch(given: list[Part]) -> tuple[MemoryBatches, list[Batch]]:
    found = MemoryBatches(given, range(len(given)), batch_size=4, smallest=1, like=LIKE)
    return found, list(found.epoch(1))


def test_large_parts_are_not_copied_and_give_the_same_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = parts(11, 7)
    given = [first, second, first]
    _, wanted = epoch(given)
    monkeypatch.setattr(batching, "COPIED_BYTES", 0)
    batches, found = epoch(given)
    assert isinstance(batches.samples, JoinedSamples)
    assert [piece.data_ptr() for piece in batches.samples.pieces] == [  # type: ignore[union-attr]  # they are tensors
        part.x.data_ptr() for part in (first, second)
    ]
    for one, other in zip(found, wanted, strict=True):
        assert one.rows == other.rows and torch.equal(one.x, other.x) and torch.equal(one.y, other.y)


def filed_part(folder: Path, rows: int) -> Part:
    pixels = array_generator(0, "pixels").integers(0, 256, (200, 6), dtype=numpy.uint8)
    (folder / "pixels").write_bytes(pixels.tobytes())
    features = JoinedArrays([FileArray(folder / "pixels", 0, pixels.shape)])
    chosen = numpy.arange(0, 2 * rows, 2)
    fitted = fit_preprocessing(features, chosen, scaling="pixels")
    return Part(LazySamples(features, chosen, fitted), torch.arange(rows))


@pytest.mark.parametrize("read", [1, 100, 10_000])
@pytest.mark.parametrize("prepared", [1, 50, 10_000])
@pytest.mark.parametrize("members", [1, 2])
def test_rows_read_from_a_file_some_at_a_time_give_the_same_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: int, prepared: int, members: int
) -> None:
    part = filed_part(tmp_path, 90)
    _, wanted = epoch([Part(part.x, part.y)] * members)
    monkeypatch.setattr(batching, "READ_BYTES", read)
    monkeypatch.setattr(batching, "READ_SHARE", 10**9 if read < 10_000 else 1)
    monkeypatch.setattr(batching, "PREPARED_BYTES", prepared)
    batches, found = epoch([part] * members)
    assert len(found) == len(wanted) == 23
    for one, other in zip(found, wanted, strict=True):
        assert one.rows == other.rows and torch.equal(one.x, other.x) and torch.equal(one.y, other.y)
    some = list(batches.epoch(1, first=5, last=9))
    assert all(torch.equal(one.x, other.x) for one, other in zip(some, wanted[5:9], strict=True))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows were read from a file, call by call."""
    found: list[int] = []
    held = LazySamples.held

    def counted(samples: LazySamples, rows: torch.Tensor) -> LazySamples:
        found.append(len(rows))
        return held(samples, rows)

    monkeypatch.setattr(LazySamples, "held", counted)
    monkeypatch.setattr(batching, "READ_BYTES", 1)
    return found


def test_several_members_hold_no_more_of_a_file_than_a_share(tmp_path: Path, asked: list[int]) -> None:
    epoch([filed_part(tmp_path, 90)] * 4)
    assert len(asked) > 4 and max(asked) <= 45  # a third, and what a step more than that asks for


def test_an_epoch_reads_its_file_three_times_at_most(tmp_path: Path, asked: list[int]) -> None:
    epoch([filed_part(tmp_path, 90)])
    assert asked == [32, 32, 27]  # the last step is filled up with a row that it has
