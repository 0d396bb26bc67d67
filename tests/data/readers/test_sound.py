import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
import soundfile
from numpy.typing import NDArray

from topiarist.data import limits
from topiarist.data.readers.sound import read_sounds
from topiarist.errors import DataError, MissingExtraError

WAVE = numpy.array([0.0, 0.5, -0.5, 0.25])


def save(path: Path, wave: NDArray[Any], rate: int = 8000, **options: Any) -> Path:
    soundfile.write(path, wave, rate, **options)
    return path


@pytest.mark.parametrize("ending", ["wav", "flac"])
def test_wave_forms(tmp_path: Path, ending: str) -> None:
    waves, notes = read_sounds([save(tmp_path / f"a.{ending}", WAVE)] * 2)
    assert waves.dtype == numpy.float32
    assert waves.shape == (2, 1, 4)
    assert waves[1, 0].tolist() == WAVE.tolist()
    assert notes == ()


@pytest.mark.parametrize("ending", ["ogg", "mp3"])
def test_lossy_forms(tmp_path: Path, ending: str) -> None:
    tone = 0.5 * numpy.sin(numpy.arange(8000) / 5)
    waves, _ = read_sounds([save(tmp_path / f"a.{ending}", tone)])
    assert 0.25 < waves.std() < 0.45


def test_channels_are_averaged(tmp_path: Path) -> None:
    waves, _ = read_sounds([save(tmp_path / "a.wav", numpy.stack([WAVE, WAVE * 0], axis=1))])
    assert waves[0, 0].tolist() == (WAVE / 2).tolist()


def test_clips_are_cut_and_padded_to_the_most_common_length(tmp_path: Path) -> None:
    common = save(tmp_path / "common.wav", WAVE)
    short = save(tmp_path / "short.wav", WAVE[:2])
    long = save(tmp_path / "long.wav", numpy.tile(WAVE, 2))
    waves, notes = read_sounds([short, common, long, common])
    assert waves[0, 0].tolist() == [0.0, 0.5, 0.0, 0.0]
    assert waves[2, 0].tolist() == WAVE.tolist()
    assert notes == ("1 of 4 clips padded, 1 cut to 0.0005 s",)


def test_sample_rates_that_differ(tmp_path: Path) -> None:
    paths = [save(tmp_path / "a.wav", WAVE), save(tmp_path / "b.wav", WAVE, rate=16000)]
    with pytest.raises(DataError, match=r"8000 Hz \(1 clips\), 16000 Hz"):
        read_sounds(paths)


def test_what_cannot_be_decoded_is_named(tmp_path: Path) -> None:
    noise = numpy.random.default_rng(0).normal(size=9000) / 9
    content = save(tmp_path / "bad.flac", noise).read_bytes()
    for bad in (b"", b"text" * 50, content[:60], content[: len(content) // 2]):
        (tmp_path / "bad.flac").write_bytes(bad)
        with pytest.raises(DataError, match=r"bad\.flac"):
            read_sounds([tmp_path / "bad.flac"])


def test_an_empty_clip_and_one_that_is_not_finite(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no sound"):
        read_sounds([save(tmp_path / "a.wav", WAVE[:0])])
    with pytest.raises(DataError, match="not finite"):
        read_sounds([save(tmp_path / "b.wav", WAVE * numpy.nan, subtype="FLOAT")])


def test_too_many_clips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "a.wav", WAVE)
    monkeypatch.setattr(limits, "LARGEST_BYTES", 63)
    with pytest.raises(DataError, match="3 clips of 4 samples"):
        read_sounds([path] * 3)


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(MissingExtraError, match=r"topiarist\[sound\]"):
        read_sounds([Path("a.wav")])
