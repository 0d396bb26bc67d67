"""Samples as networks read them: what `find_source` finds, but sounds as log-mel spectrograms.

A fully connected network for wave forms of five seconds has millions of weights and learns little; a convolutional one
cannot read them.
"""

from pathlib import Path
from typing import Any

from topiarist.data import Data, Source, find_source
from topiarist.data.annotated import find_annotated, holds_annotations
from topiarist.data.download import cache_folder
from topiarist.data.folder import find_in_classes, media_in
from topiarist.data.sound import SOUND_ENDINGS
from topiarist.errors import DataError
from topiarist.features.log_mel import LogMel
from topiarist.features.sound_files import open_clips
from topiarist.features.sounds import DEFAULT, describe_clips, describe_sounds

CACHE = "sounds"


def load_described(location: str | Path, *, target: str | None = None, group: str | None = None, **how: Any) -> Data:
    """Read and split data as `load_data` does, sounds as spectrograms; `how` is the rest of what that takes."""
    return Data.from_source(find_described(location, target=target, group=group), **how)


def find_described(
    location: str | Path,
    *,
    target: str | None = None,
    group: str | None = None,
    labelled: bool = True,
    settings: LogMel = DEFAULT,
) -> Source:
    """Read raw samples as `find_source` does, but describe sounds; a note says how.

    What was described before is taken from the cache.
    """
    place = Path(location)
    if not holds_sounds(place):
        return find_source(location, target=target, group=group, labelled=labelled)
    cache = cache_folder() / CACHE
    note = (
        f"sounds are read as log-mel spectrograms of {settings.bands} bands, window {settings.window}:"
        f" topiarist data sounds {location} --out FILE.npz makes others"
    )
    if not labelled:
        return describe_any(place, target, settings, cache=cache, note=note)
    if not place.is_dir():
        raise DataError(f"{place} is a single sample without a label; give a folder with one folder per class")
    found = describe_sounds(place, settings, target=target, group=group, cache=cache)
    return Source(
        name=place.resolve().name,
        features=found.features,
        labels=found.labels,
        groups=found.groups,
        parts=found.parts,
        finer=found.finer,
        notes=(note, *found.notes),
    )


def describe_any(place: Path, target: str | None, settings: LogMel, *, cache: Path, note: str) -> Source:
    """Describe sounds for prediction: labels may be absent, and nothing is left out."""
    labels = None
    if place.is_dir() and holds_annotations(place):
        table = find_annotated(place, target=target, group=None, labelled=False)
        paths, labels = table.paths, table.labels
    else:
        paths = sound_paths(place)
        labels = find_in_classes(place).labels if place.is_dir() and find_in_classes(place).paths else None
    clips = open_clips(paths, settings)
    features = describe_clips(clips, settings, cache=cache, on_clip=None)
    return Source(name=place.resolve().name, features=features, labels=labels, notes=(note, *clips.notes))


def holds_sounds(place: Path) -> bool:
    """Return whether a file is a sound, or all samples of a folder are."""
    try:
        paths = sound_paths(place)
    except (DataError, OSError):  # whoever reads it will say what is wrong
        return False
    return bool(paths) and all(path.suffix.lower() in SOUND_ENDINGS for path in paths)


def sound_paths(place: Path) -> tuple[Path, ...]:
    """Return the files that a folder holds as samples, by its table, its class folders or itself."""
    if not place.is_dir():
        return (place,) if place.is_file() else ()
    if holds_annotations(place):
        return find_annotated(place, target=None, group=None, labelled=False).paths
    return find_in_classes(place).paths or tuple(media_in(place))
