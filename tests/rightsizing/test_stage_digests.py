"""Whose work a folder holds is found without samples in memory, and tells samples apart."""

from pathlib import Path

import numpy
import pytest

from topiarist import load_data
from topiarist.data import LazySamples, Part
from topiarist.rightsizing.stages import data_digest


def test_samples_in_a_file_are_told_apart_and_never_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topiarist.data.samples.MOST_BYTES", 0)
    random = numpy.random.Generator(numpy.random.PCG64(0))
    x, y = random.integers(0, 255, (60, 64), dtype=numpy.uint8), numpy.arange(60) % 3
    digests: list[str] = []
    for _ in range(2):
        numpy.savez(tmp_path / "samples.npz", x=x, y=y)
        data = load_data(str(tmp_path / "samples.npz"))
        assert isinstance(data.train, Part) and isinstance(data.train.samples, LazySamples)
        monkeypatch.setattr(LazySamples, "__getitem__", lambda samples, rows: pytest.fail("samples were prepared"))
        digests.append(data_digest(data))
        monkeypatch.undo()
        monkeypatch.setattr("topiarist.data.samples.MOST_BYTES", 0)
        x = x.copy()
        x[7, 5] ^= 1
    assert digests[0] != digests[1]
