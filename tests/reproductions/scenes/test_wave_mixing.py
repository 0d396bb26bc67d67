"""Mixtures of waveforms: the stretches that were drawn, described as a whole, alike from files and memory."""

from pathlib import Path

import numpy
import pytest

from topiarist.data.block_mixing import BlockMixing, draw_mixtures
from topiarist.data.readers import sound as waves_module
from topiarist.data.readers.sound import WavesInMemory, WavesOfFiles, read_clip
from topiarist.features.log_mel import LogMel, log_mel
from topiarist.features.sounds import open_clips
from topiarist.randomness import array_generator
from topiarist.reproductions.scenes.data import describe_mixtures, mixed_wave

RATE, LENGTH = 8000, 4000
SOUND = LogMel(bands=8, window=256)


def random_waves(clips: int) -> numpy.ndarray:
    return numpy.random.default_rng(0).normal(scale=0.1, size=(clips, LENGTH)).astype(numpy.float32)


def test_a_mixture_is_the_drawn_stretches_joined_and_described_as_a_whole() -> None:
    waves, rows = WavesInMemory(random_waves(9), RATE), numpy.array([8, 1, 4, 6, 2, 3])
    drawn = draw_mixtures(
        LENGTH,
        numpy.array([0, 0, 0, 1, 1, 1]),
        finer=None,
        groups=None,
        mixing=BlockMixing(pieces=3, on="waveform"),
        generator=array_generator(0, "test"),
    )
    features = describe_mixtures(waves, rows, drawn, SOUND)
    assert features.shape == (6, 1, 8, SOUND.frames(LENGTH))
    for number in range(6):
        wave, place = mixed_wave(waves, rows, drawn, number), 0
        for sample, start, length in zip(drawn.samples[number], drawn.starts[number], drawn.lengths, strict=True):
            assert (wave[place : place + length] == waves.waves[rows[sample], start : start + length]).all()
            place += length
        assert place == LENGTH
        assert numpy.array_equal(features[number, 0], log_mel(wave, RATE, SOUND))


@pytest.mark.parametrize("held", [2**30, 0])
def test_a_stretch_of_a_file_is_that_of_the_whole_clip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    soundfile = pytest.importorskip("soundfile")
    monkeypatch.setattr(waves_module, "BYTES_HELD", held)
    paths = [tmp_path / f"{number}.wav" for number in range(3)]
    for path, wave, (rate, length) in zip(
        paths, random_waves(3), ((RATE, LENGTH), (RATE, 1000), (RATE // 2, 2000)), strict=True
    ):
        soundfile.write(path, wave[:length], rate)
    clips = open_clips(paths, LogMel(bands=8, window=256, rate=RATE, seconds=0.5))
    waves = WavesOfFiles(clips)
    for clip in range(3):
        whole = read_clip(clips, clip)
        for start, length in ((0, 400), (900, 300), (3700, 300), (1500, 2500)):
            assert numpy.array_equal(waves.stretch(clip, start, length), whole[start : start + length])
    assert bool(waves.held) == bool(held)
