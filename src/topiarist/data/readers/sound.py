"""Sound clips (extra 'sound'): of any sample rate, length and number of channels, brought to one form.

Clips are decoded no further than needed. `Waves` are the waveforms of clips, of which any stretch can be read: from
memory, or from files that are not all held.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import gcd
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.data.extras import import_extra
from topiarist.data.limits import check_size
from topiarist.data.readers.decoders import silent_decoder
from topiarist.errors import DataError

SOUND_ENDINGS = (".wav", ".flac", ".ogg", ".mp3")
BYTES_HELD = 2**30  # of decoded clips; with more, each stretch is read from its file
_BYTES_PER_VALUE = 4
_LONGEST = 2**62  # a longer clip does not know its length
_LEAST_OF_A_STREAM = 0x7FFFF000  # the bytes that a WAV file promises where its writer could not know them
_SHORTENED = re.compile(r"^data : (\d+) \(should be (\d+)\)", re.MULTILINE)
_OGG_PAGE, _OGG_HEADER = 65307, 27  # bytes of a page at most, and before the lengths of its pieces (RFC 3533)
_LARGEST_FACTOR = 200_000  # of two sample rates without their common divisor: the filter has 20 times as many taps
_FILTER_REACH = 10  # samples of the slower rate that the filter of `resample_poly` reaches to each side

Wave = NDArray[numpy.float32]


@dataclass(frozen=True, kw_only=True)
class Clips:
    """Files whose headers are read, and the sample rate and length in samples that all of them are brought to."""

    paths: tuple[Path, ...]
    rates: tuple[int, ...]
    lengths: tuple[int, ...]
    channels: int  # of the clip that has most
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

    def check_memory(self, values_per_clip: int) -> None:
        """Raise where so many values per clip, beside the clip that is being decoded, would take too much memory."""
        widest = max(_needed(self.length, rate, self.rate) for rate in self.rates)
        values = len(self.paths) * values_per_clip + widest * (self.channels + 1) + 2 * self.length
        check_size(f"{len(self.paths)} clips of {self.length:,} samples", _BYTES_PER_VALUE * values)


def read_sounds(paths: Sequence[Path]) -> tuple[Wave, tuple[str, ...]]:
    """Return waveforms (n_samples, 1, length), the mean of their channels, of the most common length."""
    clips = scan_clips(paths)
    clips.check_memory(clips.length)
    waves = numpy.empty((len(paths), 1, clips.length), dtype=numpy.float32)
    for number in range(len(paths)):
        waves[number, 0] = read_clip(clips, number)
    return waves, clips.notes


def scan_clips(paths: Sequence[Path], *, rate: int | None = None, seconds: float | None = None) -> Clips:
    """Read the headers of clips, and decide on the sample rate and length of all: their own where they agree."""
    headers = [_read_header(path) for path in paths]
    rates = Counter(header.samplerate for header in headers)
    if rate is None and len(rates) > 1:
        found = ", ".join(f"{rate} Hz ({count} clips)" for rate, count in rates.most_common())
        raise DataError(f"clips must have one sample rate, found {found}: resample them, or give the rate for all")
    wanted = headers[0].samplerate if rate is None else rate
    for path, header in zip(paths, headers, strict=True):
        own = header.samplerate
        if own < 1 or max(own, wanted) // gcd(own, wanted) > _LARGEST_FACTOR:
            raise DataError(f"{path} has a sample rate of {own} Hz, which cannot be brought to {wanted} Hz")
    lengths = Counter(_resampled_length(header.frames, header.samplerate, wanted) for header in headers)
    common = max(lengths, key=lambda length: (lengths[length], -length))  # of equals the shortest
    return Clips(
        paths=tuple(paths),
        rates=tuple(header.samplerate for header in headers),
        lengths=tuple(header.frames for header in headers),
        channels=max(header.channels for header in headers),
        rate=wanted,
        length=common if seconds is None else round(seconds * wanted),
    )


def _import_reader() -> Any:
    return import_extra("soundfile", what="reading sound", extra="sound")


def _read_header(path: Path) -> Any:
    """Return the sample rate, length and channels of a clip; raise where it is not whole.

    A WAV file that promises more than it holds and an Ogg file without its end would seem shorter than they are.
    """
    soundfile = _import_reader()
    try:
        with silent_decoder():
            header = soundfile.info(str(path))
    except soundfile.SoundFileError as error:
        empty = path.is_file() and not path.stat().st_size
        raise DataError(f"{path} cannot be read as sound: {'it has 0 bytes' if empty else error}") from error
    shortened = _SHORTENED.search(header.extra_info)
    if shortened is not None and int(shortened[1]) < _LEAST_OF_A_STREAM:
        raise DataError(f"{path} is truncated: {shortened[1]} bytes promised, {shortened[2]} found")
    if header.format == "OGG" and not _has_last_page(path):
        raise DataError(f"{path} is truncated: its end is missing")
    if not header.frames:
        raise DataError(f"{path} holds no sound: its length is 0")
    if header.frames > _LONGEST:
        raise DataError(f"{path} does not say how long it is: save it again as a whole")
    return header


def _has_last_page(path: Path) -> bool:
    """Return whether the last page of an Ogg file is whole and marked as the last."""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - _OGG_PAGE))
        end = stream.read()
    page = end[end.rfind(b"OggS") :]
    lengths = page[_OGG_HEADER : _OGG_HEADER + page[_OGG_HEADER - 1]] if len(page) > _OGG_HEADER else b""
    marked = bool(lengths) and bool(page[5] & 4)
    return marked and len(page) >= _OGG_HEADER + len(lengths) + sum(lengths)


def _read_wave(path: Path, length: int, *, start: int = 0) -> Wave:
    """Decode `length` samples of a clip from `start` on, as the mean of its channels."""
    soundfile = _import_reader()
    try:
        with silent_decoder():
            wave, _ = soundfile.read(str(path), start=start, frames=length, dtype="float32", always_2d=True)
    except soundfile.SoundFileError as error:
        raise DataError(f"{path} cannot be decoded as sound: {error}") from error
    if len(wave) < length:
        raise DataError(f"{path} is truncated: {length} samples promised, {len(wave)} found")
    with numpy.errstate(over="ignore", invalid="ignore"):
        mono: Wave = wave.mean(axis=1, dtype=numpy.float32)
    if not numpy.isfinite(mono).all():
        raise DataError(f"{path} holds values that are not finite numbers")
    return mono


def read_clip(clips: Clips, number: int) -> Wave:
    """Decode a clip as the mean of its channels (length,): resampled, cut at the end or filled with zeros there."""
    rate, path = clips.rates[number], clips.paths[number]
    wave = _read_wave(path, min(clips.lengths[number], _needed(clips.length, rate, clips.rate)))
    resampled = _resample(wave, rate, clips.rate)[: clips.length]
    return numpy.pad(resampled, (0, clips.length - len(resampled)))


def _read_stretch(clips: Clips, number: int, start: int, length: int) -> Wave:
    """Decode a part of what `read_clip` returns; no more than that part where nothing is resampled."""
    if clips.rates[number] != clips.rate:
        return read_clip(clips, number)[start : start + length]
    found = max(0, min(length, clips.lengths[number] - start))
    if not found:
        return numpy.zeros(length, dtype=numpy.float32)
    wave = _read_wave(clips.paths[number], found, start=start)
    return numpy.pad(wave, (0, length - len(wave)))


def _resample(wave: Wave, rate: int, wanted: int) -> Wave:
    """Bring a waveform (n_samples,) to another sample rate by an exact ratio."""
    if rate == wanted:
        return wave
    from scipy.signal import resample_poly  # noqa: PLC0415  # only where clips are resampled

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
        if len(self.clips.paths) * self.length * _BYTES_PER_VALUE > BYTES_HELD:
            return _read_stretch(self.clips, clip, start, length)
        if clip not in self.held:
            self.held[clip] = read_clip(self.clips, clip)
        return self.held[clip][start : start + length]


Waves = WavesInMemory | WavesOfFiles
