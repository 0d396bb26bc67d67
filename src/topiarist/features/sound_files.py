"""Clips of any sample rate, length and number of channels, decoded no further than needed and brought to one form."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray
from scipy.signal import resample_poly

from topiarist.data.limits import check_size
from topiarist.data.sound import BYTES_A_VALUE, check_one_rate, import_reader, most_common, read_header, read_wave
from topiarist.errors import DataError
from topiarist.features.log_mel import LogMel

LARGEST_FACTOR = 200_000  # of two sample rates without their common divisor: the filter has 20 times as many taps
FILTER_REACH = 10  # samples of the slower rate that the filter of `resample_poly` reaches to each side


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
        """Say how many clips are resampled, padded and cut."""
        resampled = sum(rate != self.rate for rate in self.rates)
        found = [resampled_length(*clip, self.rate) for clip in zip(self.lengths, self.rates, strict=True)]
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
        check_rate(path, header.samplerate, rate)
    lengths = Counter(resampled_length(header.frames, header.samplerate, rate) for header in headers)
    length = most_common(lengths) if settings.seconds is None else round(settings.seconds * rate)
    if not settings.frames(length):
        raise DataError(f"clips of {length} samples are shorter than the window of {settings.window}: make it shorter")
    channels = max(header.channels for header in headers)
    widest = max(needed(length, header.samplerate, rate) for header in headers)
    kept = len(paths) * settings.bands * settings.frames(length)
    check_size(
        f"{len(paths)} clips of {length:,} samples", BYTES_A_VALUE * (kept + widest * (channels + 1) + 2 * length)
    )
    return Clips(
        paths=tuple(paths),
        rates=tuple(header.samplerate for header in headers),
        lengths=tuple(header.frames for header in headers),
        rate=rate,
        length=length,
    )


def read_clip(clips: Clips, number: int) -> NDArray[numpy.float32]:
    """Decode a clip as the mean of its channels (length,), resampled, cut at the end or filled with zeros there."""
    rate, path = clips.rates[number], clips.paths[number]
    wave = read_wave(import_reader(), path, min(clips.lengths[number], needed(clips.length, rate, clips.rate)))
    resampled = resample(wave, rate, clips.rate)[: clips.length]
    return numpy.pad(resampled, (0, clips.length - len(resampled)))


def read_stretch(clips: Clips, number: int, start: int, length: int) -> NDArray[numpy.float32]:
    """Decode a part of what `read_clip` gives; no more than that part where nothing is resampled."""
    if clips.rates[number] != clips.rate:
        return read_clip(clips, number)[start : start + length]
    found = max(0, min(length, clips.lengths[number] - start))
    if not found:
        return numpy.zeros(length, dtype=numpy.float32)
    wave = read_wave(import_reader(), clips.paths[number], found, start=start)
    return numpy.pad(wave, (0, length - len(wave)))


def resample(wave: NDArray[numpy.float32], rate: int, wanted: int) -> NDArray[numpy.float32]:
    """Bring a wave form (n_samples,) to another sample rate by an exact ratio."""
    if rate == wanted:
        return wave
    common = gcd(rate, wanted)
    resampled: Any = resample_poly(wave, wanted // common, rate // common)
    return numpy.asarray(resampled, dtype=numpy.float32)


def resampled_length(length: int, rate: int, wanted: int) -> int:
    """Give the length that `resample` gives."""
    return -(-length * wanted // rate)


def needed(length: int, rate: int, wanted: int) -> int:
    """Give how many samples of a clip decide the first `length` after resampling."""
    reach = 0 if rate == wanted else resampled_length(FILTER_REACH, min(rate, wanted), rate) + 1
    return resampled_length(length, wanted, rate) + reach


def check_rate(path: Path, rate: int, wanted: int) -> None:
    """Refuse a pair of sample rates that only a huge filter could join."""
    if rate < 1 or max(rate, wanted) // gcd(rate, wanted) > LARGEST_FACTOR:
        raise DataError(f"{path} has a sample rate of {rate} Hz, which cannot be brought to {wanted} Hz")
