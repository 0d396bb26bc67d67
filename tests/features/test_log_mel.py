import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from numpy.typing import NDArray

from topiarist.errors import DataError, SettingsError
from topiarist.features.log_mel import FLOOR, LogMel, empty_bands, log_mel, mel_weights

Oracle = Callable[[NDArray[Any], int, LogMel], NDArray[Any]]


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        librosa = pytest.importorskip("librosa")
        _ = librosa.feature.melspectrogram  # loaded on first use

    def describe(wave: NDArray[Any], rate: int, settings: LogMel) -> NDArray[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            power = librosa.feature.melspectrogram(
                y=wave,
                sr=rate,
                n_fft=settings.window,
                hop_length=settings.hop,
                center=False,
                power=2.0,
                n_mels=settings.bands,
            )
        described: NDArray[Any] = numpy.log(numpy.maximum(power, FLOOR))
        return described

    return describe


def noise(length: int, *, seed: int = 0) -> NDArray[numpy.float32]:
    return (0.1 * numpy.random.default_rng(seed).standard_normal(length)).astype(numpy.float32)


def tone(length: int, *, hertz: float, rate: int) -> NDArray[numpy.float32]:
    """A loud tone at 16 bits: all but a few bands hold only what rounding left."""
    wave = 0.9 * numpy.sin(2 * numpy.pi * hertz / rate * numpy.arange(length))
    return numpy.asarray(numpy.rint(wave * 2**15) / 2**15, dtype=numpy.float32)


@pytest.mark.slow
@pytest.mark.parametrize("window", [1024, 2048, 4096])
@pytest.mark.parametrize("bands", [32, 48, 64])
@pytest.mark.parametrize("rate", [8000, 44100, 48000])
def test_librosa_agrees(oracle: Oracle, rate: int, bands: int, window: int) -> None:
    settings = LogMel(bands=bands, window=window)
    for wave in (noise(3 * rate), tone(rate, hertz=997, rate=rate), numpy.zeros(rate, dtype=numpy.float32)):
        found, expected = log_mel(wave, rate, settings), oracle(wave, rate, settings)
        assert found.shape == expected.shape
        numpy.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "bands", "window"), [(22050, 1, 2), (500, 3, 30), (1999, 7, 510), (22050, 200, 256), (2000, 5, 64)]
)
def test_librosa_agrees_on_unusual_settings(oracle: Oracle, rate: int, bands: int, window: int) -> None:
    settings = LogMel(bands=bands, window=window)
    wave = noise(2000)
    numpy.testing.assert_allclose(log_mel(wave, rate, settings), oracle(wave, rate, settings), rtol=0, atol=2e-5)


def test_ten_seconds_at_48_khz() -> None:
    features = log_mel(noise(480_000), 48_000, LogMel())
    assert features.shape == (48, 467)
    assert features.dtype == numpy.float32


def test_long_sound_is_described_piece_by_piece_as_a_whole() -> None:
    wave = noise(2048 * 200)
    whole = log_mel(wave, 48_000, LogMel())
    for first in (0, 1, 62, 63, 64, 65, 250):
        part = log_mel(wave[first * 1024 : first * 1024 + 4096], 48_000, LogMel())
        numpy.testing.assert_allclose(part, whole[:, first : first + 3], rtol=0, atol=1e-5)


@pytest.mark.parametrize("length", [2048, 3071, 3072, 3073])
def test_no_padding(length: int) -> None:
    wave = noise(length)
    features = log_mel(wave, 48_000, LogMel())
    assert features.shape[1] == (1 if length < 3072 else 2)
    numpy.testing.assert_allclose(features[:, :1], log_mel(wave[:2048], 48_000, LogMel()), rtol=0, atol=1e-5)


def test_any_leading_axes_and_kinds_of_arrays() -> None:
    waves = numpy.stack([noise(5000, seed=seed) for seed in range(6)]).reshape(2, 3, 5000)
    waves.setflags(write=False)
    together = log_mel(waves, 16_000, LogMel())
    assert together.shape == (2, 3, 48, 3)
    numpy.testing.assert_array_equal(together[1, 2], log_mel(waves[1, 2], 16_000, LogMel()))
    numpy.testing.assert_array_equal(together, log_mel(waves.astype(numpy.float64), 16_000, LogMel()))
    numpy.testing.assert_array_equal(together[..., ::-1, :, :], log_mel(waves[:, ::-1], 16_000, LogMel()))
    assert log_mel(waves[:0], 16_000, LogMel()).shape == (0, 3, 48, 3)


def test_silence_is_the_floor() -> None:
    features = log_mel(numpy.zeros(4096), 48_000, LogMel())
    numpy.testing.assert_allclose(features, numpy.log(1e-10), rtol=1e-6)


def test_twice_as_loud_is_log_4_more() -> None:
    wave = noise(8192)
    louder = log_mel(2 * wave, 48_000, LogMel())
    numpy.testing.assert_allclose(louder - log_mel(wave, 48_000, LogMel()), numpy.log(4), atol=1e-5)


def test_a_tone_is_loudest_in_its_band() -> None:
    rate, settings = 48_000, LogMel()
    for hertz in (1000, 5000, 15_000):
        loudest = log_mel(tone(4096, hertz=hertz, rate=rate), rate, settings)[:, 1].argmax()
        assert loudest == mel_weights(rate, 2048, 48)[:, round(hertz * 2048 / rate)].argmax()


def test_bands_have_area_one_and_overlap_by_half() -> None:
    weights = mel_weights(48_000, 2**16, 48)
    numpy.testing.assert_allclose(weights.sum(axis=1) * 48_000 / 2**16, 1, rtol=1e-3)
    assert ((weights > 0).sum(axis=0) <= 2).all()


def test_empty_bands_are_counted() -> None:
    assert empty_bands(48_000, LogMel()) == 0
    settings = LogMel(bands=200, window=256)
    empty = empty_bands(48_000, settings)
    found = log_mel(noise(5000), 48_000, settings)
    assert 0 < empty == (found == found.min()).all(axis=1).sum()


def test_the_number_of_threads_changes_nothing() -> None:
    wave, before = noise(480_000), torch.get_num_threads()
    alone = log_mel(wave, 48_000, LogMel())
    try:
        torch.set_num_threads(os.cpu_count() or 2)
        numpy.testing.assert_array_equal(log_mel(wave, 48_000, LogMel()), alone)
        assert torch.get_num_threads() == (os.cpu_count() or 2)
    finally:
        torch.set_num_threads(before)


def test_sound_shorter_than_a_window() -> None:
    with pytest.raises(DataError, match="2047 samples is shorter than the window of 2048"):
        log_mel(noise(2047), 48_000, LogMel())


@pytest.mark.parametrize(
    "wrong", [{"bands": 0}, {"window": 0}, {"window": 2047}, {"rate": 0}, {"seconds": 0.0}, {"hop": 512}]
)
def test_settings_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        LogMel(**wrong)
