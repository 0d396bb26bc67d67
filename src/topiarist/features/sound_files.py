"""Clips of any sample rate, length and number of channels, decoded no further than needed and brought to one form.

`Waves` are the waveforms of clips, of which any stretch can be read: from memory, or from files that are not all held.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import gcd
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray
from scipy.signal import resample_poly

from topiarist.data.limits import check_size
from topiarist.data.readers.sound import (
    BYTES_PER_VALUE,
    check_one_rate,
    import_reader,
    most_common,
    read_header,
    read_wave,
)
from topiarist.errors import DataError
from topiarist.features.log_mel import LogMel

BYTES_HELD = 2**30  # of decoded clips; with more, each stretch is read from its file
_LARGEST_FACTOR = 200_000  # of two sample rates without their common divisor: the filter has 20 times as many taps
_FILTER_REACH = 10  # samples of the slower rate that the filter of `resample_poly` reaches to each side

Wave = NDArray[numpy.float32]


@dataclass(frozen=True, kw_only=True)
class Clips:
    """Files whose headers are read, and the sample rate and length in samples that all of them are brought to."""

    paths: tuple[Path, ...]
    rates: tuple[int, ...]
    lengths: tuple[int, ...]
    rate: int
    length: int

    @property
    def notes(self) -> tuple[str, ...]:
        """How many clips are resampled, padded and cut."""
        resampled = sum(rate != self.rate for rate in self.rates)
        found = [_resampled_length(*clip, self.rate) for clip in zip(self.lengths, self.rates, strict=True)]
        counts = {"padded": sum(n < self.length for n in found), "cut": sum(n > self.length for n in found)}
        (first, *others) = [(count, what) for what, count in counts.items() if count] or [(0, "")]
        total, seconds = len(self.paths), f"{self.length / self.rate:g} s"
        changed = ", ".join([f"{first[0]} of {total} clips {first[1]}", *(f"{count} {what}" for count, what in others)])
        return (
            *((f"{resampled} of {total} clips resampled to {self.rate} Hz",) if resampled else ()),
            *((f"{changed} to {seconds}",) if first[0] else ()),
        )


def open_clips(paths: Sequence[Path], settings: LogMel) -> Clips:
    """Read the headers of clips, and decide on the sample rate and length of all."""
    soundfile = import_reader()
    headers = [read_header(soundfile, path) for path in paths]
    if settings.rate is None:
        check_one_rate(headers, remedy="give the rate that all are brought to")
    rate = headers[0].samplerate if settings.rate is None else settings.rate
    for path, header in zip(paths, headers, strict=True):
        if header.samplerate < 1 or max(header.samplerate, rate) // gcd(header.samplerate, rate) > _LARGEST_FACTOR:
            raise DataError(f"{path} has a sample rate of {header.samplerate} Hz, which cannot be brought to {rate} Hz")
    lengths = Counter(_resampled_length(header.frames, header.samplerate, rate) for header in headers)
    length = most_common(lengths) if settings.seconds is None else round(settings.seconds * rate)
    if not settings.frames(length):
        raise DataError(f"clips of {length} samples are shorter than the window of {settings.window}: make it shorter")
    channels = max(header.channels for header in headers)
    widest = max(_needed(length, header.samplerate, rate) for header in headers)
    kept = len(paths) * settings.bands * settings.frames(length)
    check_size(
        f"{len(paths)} clips of {length:,} samples", BYTES_PER_VALUE * (kept + widest * (channels + 1) + 2 * length)
    )
    return Clips(
        paths=tuple(paths),
        rates=tuple(header.samplerate for header in headers),
        lengths=tuple(header.frames for header in headers),
        rate=rate,
        length=length,
    )


def read_clip(clips: Clips, number: int) -> Wave:
    """Decode a clip as the mean of its channels (length,): resampled, cut at the end or filled with zeros there."""
    rate, path = clips.rates[number], clips.paths[number]
    wave = read_wave(import_reader(), path, min(clips.lengths[number], _needed(clips.length, rate, clips.rate)))
    resampled = _resample(wave, rate, clips.rate)[: clips.length]
    return numpy.pad(resampled, (0, clips.length - len(resampled)))


def _read_stretch(clips: Clips, number: int, start: int, length: int) -> Wave:
    """Decode a part of what `read_clip` returns; no more than that part where nothing is resampled."""
    if clips.rates[number] != clips.rate:
        return read_clip(clips, number)[start : start + length]
    found = max(0, min(length, clips.lengths[number] - start))
    if not found:
        return numpy.zeros(length, dtype=numpy.float32)
    wave = read_wave(import_reader(), clips.paths[number], found, start=start)
    return numpy.pad(wave, (0, length - len(wave)))


def _resample(wave: Wave, rate: int, wanted: int) -> Wave:
    """Bring a waveform (n_samples,) to another sample rate by an exact ratio."""
    if rate == wanted:
        return wave
    common = gcd(rate, wanted)
    resampled: Any = resample_poly(wave, wanted // common, rate // common)
    return numpy.asarray(resampled, dtype=numpy.float32)


def _resampled_length(length: int, rate: int, wanted: int) -> int:
    return -(-length * wanted // rate)


def _needed(length: int, rate: int, wanted: int) -> int:
    """Return how many samples of a clip decide the first `length` after resampling."""
    reach = 0 if rate == wanted else _resampled_length(_FILTER_REACH, min(rate, wanted), rate) + 1
    return _resampled_length(length, wanted, rate) + reach


@dataclass(frozen=True)
class WavesInMemory:
    """Waveforms (n_clips, length) as they are."""

    waves: Wave
    rate: int

    @property
    def length(self) -> int:
        """The samples of each clip."""
        return int(self.waves.shape[1])

    def stretch(self, clip: int, start: int, length: int) -> Wave:
        """Return `length` samples of a clip from `start` on, as a view."""
        return self.waves[clip, start : start + length]


@dataclass(frozen=True)
class WavesOfFiles:
    """Waveforms decoded when they are needed; where all of them are small, each file is decoded once."""

    clips: Clips
    held: dict[int, Wave] = field(default_factory=dict, compare=False, repr=False)

    @property
    def rate(self) -> int:
        """The sample rate that clips are brought to."""
        return self.clips.rate

    @property
    def length(self) -> int:
        """The samples that clips are brought to."""
        return self.clips.length

    def stretch(self, clip: int, start: int, length: int) -> Wave:
        """Return a part of a clip, as `read_clip` returns it."""
        if len(self.clips.paths) * self.length * BYTES_PER_VALUE > BYTES_HELD:
            return _read_stretch(self.clips, clip, start, length)
        if clip not in self.held:
            self.held[clip] = read_clip(self.clips, clip)
        return self.held[clip][start : start + length]


Waves = WavesInMemory | WavesOfFiles
