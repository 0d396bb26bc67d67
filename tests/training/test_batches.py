"""Batches of several parts are the same whether the parts are copied into one tensor or left where they are."""

import pytest
import torch

from topiarist.data import Part
from topiarist.data.samples import JoinedSamples
from topiarist.randomness import generator
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
