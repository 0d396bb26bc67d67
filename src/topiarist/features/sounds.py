"""A folder of sounds as log-mel spectrograms, with their classes, finer classes, groups and parts where known."""

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.errors import DataError
from topiarist.features.log_mel import FLOOR, LogMel, empty_bands, log_mel
from topiarist.features.sound_cache import SoundCache, content_of
from topiarist.features.sound_files import Clips, open_clips, read_clip
from topiarist.features.sound_labels import find_sounds

Report = Callable[[int, int], None]

SILENCE = log(FLOOR) + 1e-4
DEFAULT = LogMel()


@dataclass(frozen=True, kw_only=True)
class SoundSet:
    """Spectrograms (n, 1, bands, frames) of clips, in the order of the table or by name, with a class each (n,).

    `finer` are classes within the classes, `groups` cities or folds, `parts` "train", "validation" or "test", each (n,)
    and None where unknown; `names` are the files below the folder, `rate` is the sample rate that was described;
    `notes` say what was decided, one line each.
    """

    features: NDArray[numpy.float32]
    labels: NDArray[Any]
    finer: NDArray[Any] | None
    groups: NDArray[Any] | None
    parts: NDArray[numpy.str_] | None
    names: tuple[str, ...]
    rate: int
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.features)


def describe_sounds(
    folder: str | Path,
    settings: LogMel = DEFAULT,
    *,
    target: str | None = None,
    finer: str | None = None,
    group: str | None = None,
    cache: Path | None = None,
    on_clip: Report | None = None,
) -> SoundSet:
    """Describe the sounds of a folder: one folder a class, or a meta.csv or labels.csv beside them.

    `target`, `finer` and `group` name columns of the table, where others than those found are meant; what was described
    before is taken from the folder `cache`; `on_clip` hears the number of clips done and of all.
    """
    place = Path(folder)
    sounds = find_sounds(place, target=target, finer=finer, group=group)
    clips = open_clips(sounds.paths, settings)
    features = describe_clips(clips, settings, cache=cache, on_clip=on_clip)
    return SoundSet(
        features=features,
        labels=sounds.labels,
        finer=sounds.finer,
        groups=sounds.groups,
        parts=sounds.parts,
        names=tuple(path.relative_to(place).as_posix() for path in sounds.paths),
        rate=clips.rate,
        notes=(*sounds.notes, *clips.notes, *feature_notes(features, clips.rate, settings)),
    )


def describe_clips(
    clips: Clips, settings: LogMel, *, cache: Path | None, on_clip: Report | None
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


def feature_notes(features: NDArray[numpy.float32], rate: int, settings: LogMel) -> tuple[str, ...]:
    """Say how many clips are silent, and how many bands are empty."""
    silent = int((features.max(axis=(1, 2, 3)) <= SILENCE).sum())
    empty = empty_bands(rate, settings)
    return (
        *((f"{silent} of {len(features)} clips are silent",) if silent else ()),
        *((f"{empty} of {settings.bands} bands are empty: use fewer bands or a longer window",) if empty else ()),
    )
