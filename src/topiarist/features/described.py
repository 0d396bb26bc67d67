"""Samples as networks read them: what `find_source` finds, but sounds as log-mel spectrograms.

A fully connected network for waveforms of five seconds has millions of weights and learns little; a convolutional one
cannot read them.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from topiarist.data.columns.choices import ColumnChoices
from topiarist.data.load import find_source
from topiarist.data.preparation import PreparationOptions
from topiarist.data.readers.catalogue import cache_folder
from topiarist.data.readers.folders import find_media
from topiarist.data.readers.sound import SOUND_ENDINGS
from topiarist.data.readers.tables import CellReading
from topiarist.data.readers.target_columns import TargetColumns
from topiarist.data.source import Scaling, Source
from topiarist.errors import DataError
from topiarist.tasks import TaskKind

if TYPE_CHECKING:
    from topiarist.data.dataset import Data
    from topiarist.features.log_mel import LogMel

_CACHE = "sounds"


def load_described(
    location: str | Path,
    *,
    target: TargetColumns | None = None,
    group: str | None = None,
    weight: str | None = None,
    task: TaskKind | None = None,
    scaling: Scaling | None = None,
    columns: ColumnChoices | None = None,
    **options: Unpack[PreparationOptions],
) -> "Data":
    """Read and split data as `load_data` does, sounds as spectrograms."""
    from topiarist.data.dataset import Data  # noqa: PLC0415  # its parts are tensors; to read raw samples needs no torch

    source = find_described(location, target=target, group=group, weight=weight, task=task, columns=columns)
    return Data.from_source(source, scaling=scaling, **options)


def find_described(
    location: str | Path,
    *,
    target: TargetColumns | None = None,
    group: str | None = None,
    weight: str | None = None,
    task: TaskKind | None = None,
    labelled: bool = True,
    settings: "LogMel | None" = None,
    columns: ColumnChoices | None = None,
    cells: CellReading | None = None,
) -> Source:
    """Read raw samples as `find_source` does, but describe sounds; a note says how.

    Clips that were described before are taken from the cache.
    """
    place = Path(location)
    if not _holds_sounds(place):
        named = {"target": target, "group": group, "weight": weight, "task": task}
        return find_source(location, **named, labelled=labelled, columns=columns, cells=cells)  # type: ignore[arg-type]
    if weight is not None or not (target is None or isinstance(target, str)):
        raise DataError(f"{location} holds sounds: weights and several targets are read from tables")
    if columns:
        raise DataError(f"{location} has no columns to choose from: leave out --drop, --category, --number and --date")
    from topiarist.features.log_mel import LogMel  # noqa: PLC0415  # it computes with torch
    from topiarist.features.sounds import describe_sounds  # noqa: PLC0415

    settings = settings or LogMel()
    if not labelled:
        found = _describe_any(place, target, settings)
    elif place.is_dir():
        found = describe_sounds(place, settings, target=target, group=group, cache=cache_folder() / _CACHE)
    else:
        raise DataError(f"{place} is a single sample without a label; use a folder with one folder per class")
    note = f"sounds are read as {found.sound}: topiarist data sounds {location} --out FILE.npz makes others"
    return replace(found, notes=(note, *found.notes))


def _describe_any(place: Path, target: str | None, settings: "LogMel") -> Source:
    """Describe sounds for prediction: labels may be absent, and nothing is left out."""
    from topiarist.features.sounds import describe_clips, form_of, open_clips  # noqa: PLC0415  # it computes with torch

    found = find_media(place, labelled=False, target=target)
    clips = open_clips(found.paths, settings)
    features = describe_clips(clips, settings, cache=cache_folder() / _CACHE)
    form = form_of(clips, settings)
    return Source(name=place.resolve().name, features=features, labels=found.labels, notes=clips.notes, sound=form)


def _holds_sounds(place: Path) -> bool:
    """Return whether a file is a sound, or all samples of a folder are."""
    try:
        paths = find_media(place, labelled=False).paths if place.exists() else ()
    except (DataError, OSError):  # whoever reads it will say what is wrong
        return False
    return bool(paths) and all(path.suffix.lower() in SOUND_ENDINGS for path in paths)
