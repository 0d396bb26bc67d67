import struct
import sys
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest
import soundfile
from numpy.typing import NDArray
from scipy.signal import resample_poly

from topiarist.data import limits
from topiarist.data.readers.sound import Clips, read_clip
from topiarist.errors import DataError, MissingExtraError
from topiarist.features.log_mel import LogMel
from topiarist.features.sounds import open_clips

SMALL = LogMel(window=64, bands=8)


def noise(length: int, *, channels: int = 1, seed: int = 0) -> NDArray[Any]:
    wave = numpy.clip(0.1 * numpy.random.default_rng(seed).standard_normal((length, channels)), -0.9, 0.9)
    return wave[:, 0] if channels == 1 else wave


def save(path: Path, wave: NDArray[Any], rate: int = 8000, **options: Any) -> Path:
    soundfile.write(path, wave, rate, **options)
    return path


def read(path: Path, settings: LogMel = SMALL) -> NDArray[numpy.float32]:
    return read_clip(open_clips([path], settings), 0)


def asked(bands: int = 8, **values: Any) -> LogMel:
    return LogMel(window=64, bands=bands, **values)


@pytest.mark.parametrize(
    ("ending", "subtype", "error"),
    [
        ("wav", "PCM_U8", 2**-7),
        ("wav", "PCM_16", 2**-15),
        ("wav", "PCM_24", 2**-23),
        ("wav", "PCM_32", 2**-24),
        ("wav", "FLOAT", 2**-24),
        ("wav", "DOUBLE", 2**-24),
        ("flac", "PCM_16", 2**-15),
        ("flac", "PCM_24", 2**-23),
    ],
)
@pytest.mark.parametrize("channels", [1, 2, 6])
def test_kinds_of_samples_and_channels(tmp_path: Path, ending: str, subtype: str, error: float, channels: int) -> None:
    wave = noise(500, channels=channels)
    found = read(save(tmp_path / f"a.{ending}", wave, subtype=subtype))
    assert found.dtype == numpy.float32
    numpy.testing.assert_allclose(found, wave.reshape(500, -1).mean(axis=1), rtol=0, atol=error)


@pytest.mark.parametrize("ending", ["ogg", "mp3"])
def test_lossy_forms(tmp_path: Path, ending: str) -> None:
    if ending.upper() not in soundfile.available_formats():
        pytest.skip(f"this libsndfile writes no {ending}")
    tone = 0.5 * numpy.sin(numpy.arange(16_000) / 5)
    found = read(save(tmp_path / f"a.{ending}", numpy.stack([tone, tone], axis=1), rate=16_000), asked(seconds=0.5))
    assert len(found) == 8000
    assert abs(numpy.corrcoef(found[1000:], tone[1000:8000])[0, 1]) > 0.99
    assert numpy.abs(found).max() < 0.6


@pytest.mark.parametrize("rates", [(48_000, 16_000), (16_000, 48_000), (44_100, 48_000), (8000, 8001), (22_050, 8000)])
def test_resampling_needs_no_more_than_what_is_decoded(tmp_path: Path, rates: tuple[int, int]) -> None:
    rate, wanted = rates
    wave = noise(rate).astype(numpy.float32)
    path = save(tmp_path / "a.wav", wave, rate, subtype="FLOAT")
    whole = numpy.asarray(resample_poly(wave, wanted, rate))
    clips = open_clips([path], asked(rate=wanted))
    assert (clips.rate, clips.length) == (wanted, len(whole))
    found = read_clip(clips, 0)
    numpy.testing.assert_allclose(found, whole, rtol=0, atol=1e-6)
    some = read(path, asked(rate=wanted, seconds=0.25))
    assert len(some) == wanted // 4
    numpy.testing.assert_allclose(some, whole[: wanted // 4], rtol=0, atol=1e-6)


def test_a_tone_keeps_its_pitch(tmp_path: Path) -> None:
    tone = 0.5 * numpy.sin(2 * numpy.pi * 440 * numpy.arange(44_100) / 44_100)
    found = read(save(tmp_path / "a.wav", tone, 44_100), asked(rate=16_000))
    assert len(found) == 16_000
    assert numpy.abs(numpy.fft.rfft(found)).argmax() == 440


def clip_notes(tmp_path: Path, lengths: Sequence[int], settings: LogMel, rate: int = 8000) -> tuple[str, ...]:
    paths = [save(tmp_path / f"{place}.wav", noise(length), rate) for place, length in enumerate(lengths)]
    return open_clips(paths, settings).notes


@pytest.mark.parametrize(
    ("lengths", "settings", "expected"),
    [
        ([4000, 4000], asked(), ()),
        ([4000, 2000, 4000, 9000, 100], asked(), ("2 of 5 clips padded, 1 cut to 0.5 s",)),
        ([4000, 2000], asked(), ("1 of 2 clips cut to 0.25 s",)),
        ([4000, 2000], asked(seconds=0.5), ("1 of 2 clips padded to 0.5 s",)),
        (
            [4000, 2000, 8000],
            asked(seconds=0.5, rate=16_000),
            ("3 of 3 clips resampled to 16000 Hz", "1 of 3 clips padded, 1 cut to 0.5 s"),
        ),
    ],
)
def test_notes(tmp_path: Path, lengths: list[int], settings: LogMel, expected: tuple[str, ...]) -> None:
    assert clip_notes(tmp_path, lengths, settings) == expected


def test_clips_are_padded_and_cut_at_the_end(tmp_path: Path) -> None:
    wave = noise(3000)
    path = save(tmp_path / "a.wav", wave, subtype="FLOAT")
    numpy.testing.assert_allclose(read(path, asked(seconds=0.25)), wave[:2000], atol=1e-7)
    longer = read(path, asked(seconds=0.5))
    numpy.testing.assert_allclose(longer[:3000], wave, atol=1e-7)
    assert longer[3000:].tolist() == [0.0] * 1000


def test_the_most_common_length_is_told_after_resampling(tmp_path: Path) -> None:
    paths = [
        save(tmp_path / "a.wav", noise(8000), 8000),
        save(tmp_path / "b.wav", noise(16_000), 16_000),
        save(tmp_path / "c.wav", noise(16_000), 8000),
    ]
    clips = open_clips(paths, asked(rate=16_000))
    assert clips.length == 16_000
    assert clips.notes == ("2 of 3 clips resampled to 16000 Hz", "1 of 3 clips cut to 1 s")
    with pytest.raises(DataError, match=r"8000 Hz \(2 clips\), 16000 Hz \(1 clips\): resample them, or give the rate"):
        open_clips(paths, SMALL)


def bad_files(tmp_path: Path) -> dict[str, tuple[bytes, str]]:
    contents = {
        ending: save(tmp_path / f"good.{ending}", noise(16_000), 16_000).read_bytes()
        for ending in ("wav", "flac", "ogg", "mp3")
    }
    cut = {f"cut.{ending}": (content[: len(content) * 2 // 3], "") for ending, content in contents.items()}
    nearly = {f"nearly.{ending}": (contents[ending][:-8], "truncated") for ending in ("wav", "ogg")}
    wrong = bytearray(contents["flac"])
    wrong[len(wrong) // 2 :] = bytes(len(wrong) - len(wrong) // 2)
    unknown = bytearray(contents["flac"])
    unknown[21:26] = bytes([unknown[21] & 0xF0, 0, 0, 0, 0])
    return {
        **cut,
        **nearly,
        "none.wav": (b"", "it has 0 bytes"),
        "none.mp3": (b"", "it has 0 bytes"),
        "text.wav": (b"no sound at all" * 50, "cannot be read as sound"),
        "header.wav": (contents["wav"][:30], "cannot be read as sound"),
        "zeros.flac": (bytes(wrong), "cannot be decoded"),
        "unknown.flac": (bytes(unknown), "does not say how long"),
        "empty.wav": (save(tmp_path / "e.wav", noise(0)).read_bytes(), "holds no sound"),
        "empty.flac": (save(tmp_path / "e.flac", noise(0)).read_bytes(), ""),
        "nan.wav": (save(tmp_path / "n.wav", noise(9000) * numpy.nan, subtype="FLOAT").read_bytes(), "not finite"),
        "infinite.wav": (
            save(tmp_path / "i.wav", noise(9000, channels=2) * numpy.inf, subtype="FLOAT").read_bytes(),
            "not finite",
        ),
        "large.wav": (
            save(tmp_path / "l.wav", numpy.full((900, 6), 3e38), subtype="FLOAT").read_bytes(),
            "not finite",
        ),
    }


def test_bad_files_are_named_in_one_line(tmp_path: Path) -> None:
    for name, (content, reason) in bad_files(tmp_path).items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError) as caught:
            read(tmp_path / name)
        assert name in str(caught.value)
        assert reason in str(caught.value), name
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("promised", [0xFFFFFFFF, 0x7FFFF000])
def test_a_wav_file_that_was_streamed_is_whole(tmp_path: Path, promised: int) -> None:
    path = save(tmp_path / "a.wav", noise(5000), subtype="PCM_16")
    content = bytearray(path.read_bytes())
    place = content.index(b"data") + 4
    content[place : place + 4] = struct.pack("<I", promised)
    path.write_bytes(content)
    numpy.testing.assert_allclose(read(path), noise(5000), atol=2**-15)


def sparse_wav(path: Path, *, seconds: int, rate: int = 48_000, channels: int = 2) -> Path:
    """Write hours of silence that take no room on disk."""
    size = seconds * rate * channels * 2
    header = b"RIFF" + struct.pack("<I", 36 + size) + b"WAVEfmt "
    header += struct.pack("<IHHIIHH", 16, 1, channels, rate, rate * channels * 2, channels * 2, 16)
    with path.open("wb") as stream:
        stream.write(header + b"data" + struct.pack("<I", size))
        stream.truncate(len(header) + 8 + size)
    return path


@pytest.mark.parametrize("rate", [48_000, 16_000])
@pytest.mark.parametrize("seconds", [None, 2.0])
def test_a_long_file_is_decoded_no_further_than_needed(tmp_path: Path, rate: int, seconds: float | None) -> None:
    long = sparse_wav(tmp_path / "long.wav", seconds=3 * 3600)
    short = [save(tmp_path / f"{name}.wav", noise(96_000, channels=2), 48_000) for name in "ab"]
    settings = LogMel(rate=rate, seconds=seconds)
    clips = open_clips([long, *short], settings)
    assert clips.lengths[0] == 3 * 3600 * 48_000
    assert clips.notes[-1] == "1 of 3 clips cut to 2 s"
    read_clip(clips, 1)  # what is imported on first use is not counted
    tracemalloc.start()
    try:
        assert len(read_clip(clips, 0)) == 2 * rate
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * 2 * 48_000 * 4


def test_sizes_are_checked_before_anything_is_decoded(tmp_path: Path) -> None:
    long = sparse_wav(tmp_path / "long.wav", seconds=3 * 3600)
    with pytest.raises(DataError, match=r"1 clips of 518,400,000 samples takes"):
        open_clips([long], LogMel())
    with pytest.raises(DataError, match=r"at most"):
        open_clips([save(tmp_path / "a.wav", noise(8000))], asked(seconds=86_400, rate=48_000))


def test_too_many_clips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "a.wav", noise(64))
    monkeypatch.setattr(limits, "LARGEST_BYTES", 4 * (3 * 8 + 4 * 64) - 1)
    with pytest.raises(DataError, match="3 clips of 64 samples"):
        open_clips([path] * 3, SMALL)
    assert isinstance(open_clips([path] * 2, SMALL), Clips)


def test_sample_rates_without_a_common_divisor(tmp_path: Path) -> None:
    path = save(tmp_path / "a.wav", noise(100), 500_009)
    with pytest.raises(DataError, match=r"a\.wav has a sample rate of 500009 Hz, which cannot be brought to 48000 Hz"):
        open_clips([path], asked(rate=48_000))
    assert open_clips([path], SMALL).rate == 500_009


def test_clips_shorter_than_the_window(tmp_path: Path) -> None:
    path = save(tmp_path / "a.wav", noise(63))
    with pytest.raises(DataError, match="63 samples are shorter than the window of 64"):
        open_clips([path], SMALL)
    assert len(read(path, asked(seconds=0.008))) == 64


def test_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(MissingExtraError, match=r"topiarist\[sound\]"):
        open_clips([tmp_path / "a.wav"], SMALL)
