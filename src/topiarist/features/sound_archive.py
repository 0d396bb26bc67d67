"""Described sounds as a NumPy archive, which every command reads as data."""

import io

import numpy

from topiarist.features.sounds import SoundSet


def archive_of(sounds: SoundSet) -> bytes:
    """Give an `.npz` of `x`, `y`, `groups` and `finer` as far as they are known; of each part where there are parts."""
    columns = {
        "x": sounds.features,
        "y": sounds.labels.astype(str),
        "groups": None if sounds.groups is None else sounds.groups.astype(str),
        "finer": None if sounds.finer is None else sounds.finer.astype(str),
    }
    known = {name: values for name, values in columns.items() if values is not None}
    if sounds.parts is not None:
        rows = {part: numpy.flatnonzero(sounds.parts == part) for part in numpy.unique(sounds.parts)}
        known = {f"{name}_{part}": values[of] for part, of in rows.items() for name, values in known.items()}
    content = io.BytesIO()
    numpy.savez(content, allow_pickle=False, **known)
    return content.getvalue()
