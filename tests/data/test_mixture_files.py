"""Files of mixtures: whole or made again, found by all that decides them, refused where they are missing."""

from dataclasses import replace
from pathlib import Path

import numpy
import pytest
import torch

from topiarist.data import Data, Part, Source
from topiarist.data.block_mixing import BlockMixing, mixture_key, open_mixtures, with_mixtures, write_mixtures
from topiarist.errors import DataError

MIXING = BlockMixing(pieces=2, on="waveform")


def source() -> Source:
    random = numpy.random.default_rng(0)
    features = random.normal(loc=3, size=(20, 1, 4, 6)).astype(numpy.float32)
    return Source(name="clips", features=features, labels=numpy.arange(20) % 2)


def test_mixtures_of_wave_forms_join_the_training_part_as_the_network_reads_them(tmp_path: Path) -> None:
    data = Data.from_source(source())
    assert data.split is not None and isinstance(data.train, Part) and data.preprocessing is not None
    rows = data.split.train
    made = numpy.random.default_rng(1).normal(loc=3, size=(5, 1, 4, 6)).astype(numpy.float32)
    samples = numpy.array([[0, 1], [2, 3], [1, 1], [4, 0], [3, 2]])
    write_mixtures(tmp_path / "new" / "file.safetensors", made, samples)
    key = mixture_key(MIXING, rows, clips=20, seed=7)
    named = replace(data, source=replace(source(), mixtures={key: tmp_path / "new" / "file.safetensors"}))
    mixed = with_mixtures(named, MIXING, seed=7).train
    assert isinstance(mixed, Part) and len(mixed) == len(rows) + 5
    assert torch.equal(mixed.x[len(rows) :], data.preprocessing(made))
    assert torch.equal(mixed.y[len(rows) :], data.train.y[[0, 2, 1, 4, 3]])
    with pytest.raises(DataError, match="no mixtures of waveforms"):
        with_mixtures(named, MIXING, seed=8)
    (tmp_path / "new" / "file.safetensors").unlink()
    with pytest.raises(DataError, match="not on this machine"):
        with_mixtures(named, MIXING, seed=7)


def test_all_that_decides_mixtures_is_in_their_name() -> None:
    rows = numpy.arange(5)
    names = {
        mixture_key(MIXING, rows, clips=9, seed=0),
        mixture_key(BlockMixing(pieces=3, on="waveform"), rows, clips=9, seed=0),
        mixture_key(MIXING, rows[::-1], clips=9, seed=0),
        mixture_key(MIXING, rows, clips=8, seed=0),
        mixture_key(MIXING, rows, clips=9, seed=1),
    }
    assert len(names) == 5


def test_a_damaged_file_is_none(tmp_path: Path) -> None:
    path = tmp_path / "file.safetensors"
    assert open_mixtures(path) is None
    write_mixtures(path, numpy.ones((2, 1, 3, 4), dtype=numpy.float32), numpy.zeros((2, 2), dtype=int))
    assert open_mixtures(path) is not None
    content = path.read_bytes()
    path.write_bytes(content[:-3])
    assert open_mixtures(path) is None
    damaged = content.replace(numpy.ones(3, dtype=numpy.float32).tobytes(), b"\0" * 12, 1)
    assert damaged != content
    path.write_bytes(damaged)
    assert open_mixtures(path) is None
