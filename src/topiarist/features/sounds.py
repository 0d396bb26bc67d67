"""A folder of sounds as log-mel spectrograms, with their classes, finer classes, groups and parts where known."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.data.readers.sound import Clips, read_clip, scan_clips
from topiarist.data.sound_form import SoundForm
from topiarist.data.source import Source
from topiarist.errors import DataError
from topiarist.features.log_mel import FLOOR, LogMel, empty_bands, log_mel
from topiarist.features.sound_cache import SoundCache, content_of
from topiarist.features.sound_labels import find_sounds

OnClip = Callable[[int, int], None]  # clips done, clips in total

_SILENCE = log(FLOOR) + 1e-4
_DEFAULT = LogMel()


@dataclass(frozen=True, kw_only=True)
class SoundSet(Source):
    """Spectrograms (n, 1, bands, frames) of clips, in the order of the table or by name, with a class each (n,).

    `names` are the files below the folder, `rate` is the sample rate that was described.
    """

    features: NDArray[numpy.float32]
    labels: NDArray[Any]
    names: tuple[str, ...]
    rate: int


def describe_sounds(
    folder: str | Path,
    settings: LogMel = _DEFAULT,
    *,
    target: str | None = None,
    finer: str | None = None,
    group: str | None = None,
    cache: Path | None = None,
    on_clip: OnClip | None = None,
) -> SoundSet:
    """Describe the sounds of a folder: one folder per class, or a meta.csv or labels.csv beside them.

    `target`, `finer` and `group` name columns of the table, where others than those found are meant; clips that were
    described before are taken from the folder `cache`; `on_clip` is called with the number of clips done and of all.
    """
    place = Path(folder)
    sounds = find_sounds(place, target=target, finer=finer, group=group)
    assert sounds.labels is not None
    clips = open_clips(sounds.paths, settings)
    features = describe_clips(clips, settings, cache=cache, on_clip=on_clip)
    return SoundSet(
        name=place.resolve().name,
        features=features,
        labels=sounds.labels,
        finer=sounds.finer,
        groups=sounds.groups,
        parts=sounds.parts,
        names=tuple(path.relative_to(place).as_posix() for path in sounds.paths),
        rate=clips.rate,
        sound=form_of(clips, settings),
        notes=(*sounds.notes, *clips.notes, *_feature_notes(features, clips.rate, settings)),
    )


def form_of(clips: Clips, settings: LogMel) -> SoundForm:
    """Return how clips are described, so that others can be described alike."""
    return SoundForm(bands=settings.bands, window=settings.window, rate=clips.rate, samples=clips.length)


def open_clips(paths: Sequence[Path], settings: LogMel) -> Clips:
    """Read the headers of clips, and raise where the settings do not suit them."""
    clips = scan_clips(paths, rate=settings.rate, seconds=settings.seconds)
    frames, window = settings.frames(clips.length), settings.window
    if not frames:
        raise DataError(f"clips of {clips.length} samples are shorter than the window of {window}: make it shorter")
    clips.check_memory(settings.bands * frames)
    return clips


def describe_clips(
    clips: Clips, settings: LogMel, *, cache: Path | None, on_clip: OnClip | None = None
) -> NDArray[numpy.float32]:
    """Describe clips one by one (n, 1, bands, frames), those that are known from the cache."""
    known = SoundCache(cache, settings, rate=clips.rate, length=clips.length)
    features = numpy.empty((len(clips.paths), *known.shape), dtype=numpy.float32)
    try:
        for number, path in enumerate(clips.paths):
            content = "" if cache is None else content_of(path)
            found = known.find(content)
            if found is None:
                found = log_mel(read_clip(clips, number)[numpy.newaxis], clips.rate, settings)
                if not numpy.isfinite(found).all():
                    raise DataError(f"{path} is too loud to describe: its values are beyond what sound can hold")
                known.keep(content, found)
            features[number] = found
            if on_clip is not None:
                on_clip(number + 1, len(clips.paths))
    finally:
        known.flush()
    return features


def _feature_notes(features: NDArray[numpy.float32], rate: int, settings: LogMel) -> tuple[str, ...]:
    silent = int((features.max(axis=(1, 2, 3)) <= _SILENCE).sum())
    empty = empty_bands(rate, settings)
    return (
        *((f"{silent} of {len(features)} clips are silent",) if silent else ()),
        *((f"{empty} of {settings.bands} bands are empty: use fewer bands or a longer window",) if empty else ()),
    )


def archive_of(sounds: SoundSet) -> bytes:
    """Return an `.npz` of `x`, `y`, `groups` and `finer` as far as known, which every command reads as data.

    Where there are parts, each has arrays of its own: `x_train`, `y_train`, `x_test` and so on. `sound` says how the
    clips were described.
    """
    texts = {"y": sounds.labels, "groups": sounds.groups, "finer": sounds.finer}
    known = {"x": sounds.features, **{name: found.astype(str) for name, found in texts.items() if found is not None}}
    if sounds.parts is not None:
        rows = {part: numpy.flatnonzero(sounds.parts == part) for part in numpy.unique(sounds.parts)}
        known = {f"{name}_{part}": values[of] for part, of in rows.items() for name, values in known.items()}
    known |= {} if sounds.sound is None else {"sound": sounds.sound.to_array()}
    content = io.BytesIO()
    numpy.savez(content, allow_pickle=False, **known)
    return content.getvalue()
