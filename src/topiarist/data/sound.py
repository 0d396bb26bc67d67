"""Sound clips as raw wave forms, which need the extra 'sound'."""

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
BYTES_A_VALUE = 4


def read_sounds(paths: Sequence[Path]) -> tuple[NDArray[numpy.float32], tuple[str, ...]]:
    """Give wave forms (n_samples, 1, length), the mean of their channels, of the most common length."""
    soundfile = import_extra("soundfile", what="reading sound", extra="sound")
    headers = [read_header(soundfile, path) for path in paths]
    rates = Counter(header.samplerate for header in headers)
    if len(rates) > 1:
        found = ", ".join(f"{rate} Hz ({count} clips)" for rate, count in rates.most_common())
        raise DataError(f"clips must have one sample rate, found {found}: resample them first")
    lengths = Counter(header.frames for header in headers)
    length = max(lengths, key=lambda found: (lengths[found], -found))
    channels = max(header.channels for header in headers)
    check_size(f"{len(paths)} clips of {length:,} samples", BYTES_A_VALUE * length * (len(paths) + channels))
    waves = numpy.zeros((len(paths), 1, length), dtype=numpy.float32)
    for place, (path, header) in enumerate(zip(paths, headers, strict=True)):
        wave = read_wave(soundfile, path, min(length, header.frames))
        waves[place, 0, : len(wave)] = wave
    changed = len(paths) - lengths[length]
    notes = (f"{changed} of {len(paths)} clips cut or padded to {length} samples",) if changed else ()
    return waves, notes


def read_header(soundfile: Any, path: Path) -> Any:
    """Give the sample rate, length and channels of a clip."""
    try:
        header = soundfile.info(str(path))
    except soundfile.SoundFileError as error:
        raise DataError(f"{path} cannot be read as sound: {error}") from error
    if not header.frames:
        raise DataError(f"{path} holds no sound: its length is 0")
    return header


def read_wave(soundfile: Any, path: Path, length: int) -> NDArray[numpy.float32]:
    """Decode the first `length` samples of a clip, as the mean of its channels."""
    try:
        wave, _ = soundfile.read(str(path), frames=length, dtype="float32", always_2d=True)
    except soundfile.SoundFileError as error:
        raise DataError(f"{path} cannot be decoded as sound: {error}") from error
    if len(wave) < length:
        raise DataError(f"{path} is truncated: {length} samples promised, {len(wave)} found")
    if not numpy.isfinite(wave).all():
        raise DataError(f"{path} holds values that are not finite numbers")
    mono: NDArray[numpy.float32] = wave.mean(axis=1, dtype=numpy.float32)
    return mono
