"""Sound clips as raw waveforms, which need the extra 'sound'."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.data.extras import import_extra
from topiarist.data.limits import check_size
from topiarist.errors import DataError

SOUND_ENDINGS = (".wav", ".flac", ".ogg", ".mp3")
BYTES_PER_VALUE = 4
_LONGEST = 2**62  # a longer clip does not know its length
_LEAST_OF_A_STREAM = 0x7FFFF000  # the bytes that a WAV file promises where its writer could not know them
_SHORTENED = re.compile(r"^data : (\d+) \(should be (\d+)\)", re.MULTILINE)
_OGG_PAGE, _OGG_HEADER = 65307, 27  # bytes of a page at most, and before the lengths of its pieces (RFC 3533)


def read_sounds(paths: Sequence[Path]) -> tuple[NDArray[numpy.float32], tuple[str, ...]]:
    """Return waveforms (n_samples, 1, length), the mean of their channels, of the most common length."""
    soundfile = import_reader()
    headers = [read_header(soundfile, path) for path in paths]
    check_one_rate(headers, remedy="resample them first")
    lengths = Counter(header.frames for header in headers)
    length = most_common(lengths)
    channels = max(header.channels for header in headers)
    check_size(f"{len(paths)} clips of {length:,} samples", BYTES_PER_VALUE * length * (len(paths) + channels))
    waves = numpy.zeros((len(paths), 1, length), dtype=numpy.float32)
    for place, (path, header) in enumerate(zip(paths, headers, strict=True)):
        wave = read_wave(soundfile, path, min(length, header.frames))
        waves[place, 0, : len(wave)] = wave
    changed = len(paths) - lengths[length]
    return waves, (f"{changed} of {len(paths)} clips cut or padded to {length} samples",) if changed else ()


def import_reader() -> Any:
    """Import the package that decodes sound."""
    return import_extra("soundfile", what="reading sound", extra="sound")


def check_one_rate(headers: Sequence[Any], *, remedy: str) -> None:
    """Raise where clips have several sample rates."""
    rates = Counter(header.samplerate for header in headers)
    if len(rates) > 1:
        found = ", ".join(f"{rate} Hz ({count} clips)" for rate, count in rates.most_common())
        raise DataError(f"clips must have one sample rate, found {found}: {remedy}")


def most_common(lengths: "Counter[int]") -> int:
    """Return the most common length, of equals the shortest."""
    return max(lengths, key=lambda length: (lengths[length], -length))


def read_header(soundfile: Any, path: Path) -> Any:
    """Return the sample rate, length and channels of a clip; raise where it is not whole.

    A WAV file that promises more than it holds and an Ogg file without its end would seem shorter than they are.
    """
    try:
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


def read_wave(soundfile: Any, path: Path, length: int, *, start: int = 0) -> NDArray[numpy.float32]:
    """Decode `length` samples of a clip from `start` on, as the mean of its channels."""
    try:
        wave, _ = soundfile.read(str(path), start=start, frames=length, dtype="float32", always_2d=True)
    except soundfile.SoundFileError as error:
        raise DataError(f"{path} cannot be decoded as sound: {error}") from error
    if len(wave) < length:
        raise DataError(f"{path} is truncated: {length} samples promised, {len(wave)} found")
    with numpy.errstate(over="ignore", invalid="ignore"):
        mono: NDArray[numpy.float32] = wave.mean(axis=1, dtype=numpy.float32)
    if not numpy.isfinite(mono).all():
        raise DataError(f"{path} holds values that are not finite numbers")
    return mono
