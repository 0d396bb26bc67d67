"""Files of mixtures of wave forms: made before training, because what trains has spectrograms and no wave forms.

A file holds the described mixtures and what they were drawn from, with a checksum; a damaged one is made again.
"""

import hashlib
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from topiarist.data.source import Rows, Source
from topiarist.errors import DataError
from topiarist.files import write_atomically

FEATURES, SAMPLES, CHECKSUM = "features", "samples", "checksum"
DAMAGE = (SafetensorError, OSError, ValueError, KeyError, TypeError)

Features = NDArray[numpy.float32]
Mixing = Mapping[str, Any]  # the settings of a `BlockMixing` by name


def mixture_key(mixing: Mixing, rows: Rows, *, clips: int, seed: int) -> str:
    """Name mixtures by all that decides them: settings, seed, training rows and the number of all clips."""
    text = json.dumps([dict(sorted(mixing.items())), seed, clips])
    return hashlib.sha256(text.encode() + rows.astype(numpy.int64).tobytes()).hexdigest()[:24]


def write_mixtures(path: Path, features: Features, samples: Rows) -> None:
    """Write described mixtures (n_mixtures, …) and the training samples of their pieces (n_mixtures, pieces)."""
    content: dict[str, NDArray[Any]] = {FEATURES: features, SAMPLES: samples.astype(numpy.int64)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot write {path.parent}: {error.strerror or error}") from error
    write_atomically(path, save(content, metadata={CHECKSUM: checksum_of(features)}))


def open_mixtures(path: Path) -> tuple[Features, Rows] | None:
    """Return what `write_mixtures` wrote; None where the file is not there or damaged."""
    try:
        with safe_open(path, framework="numpy") as file:
            features, samples = file.get_tensor(FEATURES), file.get_tensor(SAMPLES)
            whole = (file.metadata() or {})[CHECKSUM] == checksum_of(features)
    except DAMAGE:
        return None
    return (features, samples) if whole and len(features) == len(samples) else None


def read_mixtures(source: Source, rows: Rows, mixing: Mixing, *, seed: int) -> tuple[Features, Rows]:
    """Return the mixtures of some training rows of a source, with the training samples of their pieces."""
    path = source.mixtures.get(mixture_key(mixing, rows, clips=len(source), seed=seed))
    if path is None:
        raise DataError(
            f"{source.name} has no mixtures of wave forms, which `topiarist reproduce scenes` makes:"
            " mix on='spectrogram'"
        )
    found = open_mixtures(path)
    if found is None:
        raise DataError(f"mixtures cannot be read from {path}: it is not on this machine, or damaged")
    return found


def checksum_of(features: Features) -> str:
    """Return a number that tells a damaged array from a whole one."""
    return f"{zlib.crc32(numpy.ascontiguousarray(features).tobytes()):08x}"
