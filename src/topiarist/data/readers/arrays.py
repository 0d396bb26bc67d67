"""NumPy archives: `x` and `y`, or pairs such as `x_train` and `y_train`, `groups`, `finer` classes, and `original`.

`y` holds a target per sample, or several (n_samples, n_targets); `weights` say how much each sample counts.
`original` holds for each sample the number of the one that it is an augmented copy of, its own for an original. Beside
pairs, `original_train` counts the samples of `x_train`; a part without is all originals.
"""

import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy
from numpy.lib import format as npy
from numpy.typing import NDArray

from topiarist.data.joined import LARGE_BYTES, join_arrays
from topiarist.data.labels import as_labels
from topiarist.data.limits import check_size
from topiarist.data.preprocessing import chunks
from topiarist.data.sound_form import SoundForm
from topiarist.data.source import Source
from topiarist.data.targets import check_weights
from topiarist.errors import DataError

_PARTS = ("train", "validation", "test")
_CHANNELS = (1, 3, 4)
_CHUNK_BYTES = 2**20
_NAME_LENGTH_AT = 26  # bytes into the header of a member: two lengths, then the name, what is extra, and the content
_DAMAGE = (ValueError, SyntaxError, TypeError, EOFError, tokenize.TokenError, zipfile.BadZipFile, zlib.error)
_Arrays = dict[str, NDArray[Any]]


def read_arrays(path: Path, *, labelled: bool) -> Source:
    """Read an archive; nothing in it is unpickled."""
    arrays = _read_archive(path)
    held = ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "nothing"
    parts = [part for part in _PARTS if f"x_{part}" in arrays]
    suffixes = [f"_{part}" for part in parts] if "x" not in arrays else [""]
    if not suffixes:
        raise DataError(f"{path}: x and y (or x_train, y_train, x_test, y_test) are needed, found {held}")
    samples = [_check_samples(path, f"x{suffix}", arrays[f"x{suffix}"]) for suffix in suffixes]
    if len({x.shape[1:] for x in samples}) > 1:
        raise DataError(f"{path}: the parts differ in the shape of a sample")
    counts = {suffix: len(x) for suffix, x in zip(suffixes, samples, strict=True)}
    images = [_as_images(x) for x in samples]
    features, notes = join_arrays([x for x, _ in images]), images[0][1]
    labels = _gather(path, arrays, "y", counts, several=True)
    groups, finer, weights = (_gather(path, arrays, name, counts) for name in ("groups", "finer", "weights"))
    if labels is None and labelled:
        raise DataError(f"{path}: no labels y found, only {held}")
    return Source(
        name=path.resolve().name,
        features=features,
        labels=None if labels is None else as_labels(str(path), labels, training=labelled),
        groups=None if groups is None else as_labels(str(path), groups, training=False),
        finer=None if finer is None else as_labels(str(path), finer, training=False),
        weights=None if weights is None else check_weights(str(path), weights, len(features)),
        originals=_gather_originals(path, arrays, counts),
        parts=numpy.repeat(parts, list(counts.values())) if len(suffixes) > 1 else None,
        scaling="pixels" if features.dtype == numpy.uint8 else "zscore",
        notes=notes,
        sound=_form_of_sound(path, arrays),
    )


def _form_of_sound(path: Path, arrays: _Arrays) -> SoundForm | None:
    """Return how the samples were made of sounds, where the archive says so."""
    if "sound" not in arrays:
        return None
    try:
        return SoundForm.from_array(arrays["sound"])
    except ValueError as error:
        raise DataError(f"{path}: sound cannot be read: {error}") from error


def _read_archive(path: Path) -> _Arrays:
    """Read every array, after checking the sizes that the archive declares; names in lower case."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
            check_size(str(path), sum(member.file_size for member in members if not _stays_in_file(member)))
            return {member.filename.removesuffix(".npy").lower(): _read_array(archive, member) for member in members}
    except _DAMAGE as error:
        raise DataError(f"{path} cannot be read as a NumPy archive: {error}") from error
    except (NotImplementedError, RuntimeError) as error:  # an unknown compression, a password
        raise DataError(f"{path} cannot be opened: {error}; save it with numpy.savez") from error


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """Read one array whose header agrees with its size."""
    with archive.open(member) as stream:
        version = npy.read_magic(stream)
        header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        try:
            shape, columns_first, dtype = header(stream)
        except (MemoryError, RecursionError) as error:  # of Python's parser, which nests; a header has 10,000 bytes
            raise ValueError(f"{member.filename} is damaged: its header nests too deeply to be one") from error
        if dtype.hasobject:
            raise ValueError(f"{member.filename} holds Python objects, which are never unpickled")
        start = stream.tell()
        expected = start + math.prod(shape) * dtype.itemsize
        if member.file_size != expected:
            raise ValueError(f"{member.filename} has {member.file_size:,} bytes where its header means {expected:,}")
    if _stays_in_file(member):
        return _mapped(archive, member, start, shape, dtype, order="F" if columns_first else "C")
    with archive.open(member) as stream:
        array: NDArray[Any] = npy.read_array(stream, allow_pickle=False)
    return array


def _stays_in_file(member: zipfile.ZipInfo) -> bool:
    """Return whether an array is read as a map: one that is large, and not compressed."""
    return member.compress_type == zipfile.ZIP_STORED and member.file_size > LARGE_BYTES and not member.flag_bits & 1


def _mapped(
    archive: zipfile.ZipFile,
    member: zipfile.ZipInfo,
    start: int,
    shape: tuple[int, ...],
    dtype: numpy.dtype[Any],
    *,
    order: Literal["C", "F"],
) -> NDArray[Any]:
    """Return an array, which begins `start` bytes into its member, as a map of the file, once its checksum is right."""
    with archive.open(member) as stream:
        while stream.read(_CHUNK_BYTES):  # at the end, it compares the checksum
            pass
    path = Path(str(archive.filename))
    with path.open("rb") as file:
        file.seek(member.header_offset + _NAME_LENGTH_AT)
        name, extra = struct.unpack("<HH", file.read(4))
    begin = member.header_offset + _NAME_LENGTH_AT + 4 + name + extra + start
    found: NDArray[Any] = numpy.asarray(numpy.memmap(path, dtype, "c", begin, shape, order))
    return found


def _check_samples(path: Path, name: str, x: NDArray[Any]) -> NDArray[Any]:
    """Return finite numbers, raise for others; a number may be missing in a table (n_samples, n_features)."""
    if x.dtype.kind not in "biuf":
        raise DataError(f"{path}: {name} must hold real numbers, found type {x.dtype}")
    if x.ndim < 2 or not x.size:
        raise DataError(f"{path}: {name} must be (n_samples, n_features) or more, found shape {x.shape}")
    if x.dtype.kind != "f":
        return x
    if _any(numpy.isinf, x):
        raise DataError(f"{path}: {name} holds infinite numbers; replace them")
    if x.ndim > 2 and _any(numpy.isnan, x):
        raise DataError(f"{path}: {name} holds missing numbers, which only a table (2 axes) may; replace them")
    return x


def _any(holds: Callable[[NDArray[Any]], NDArray[Any]], x: NDArray[Any]) -> bool:
    """Return whether something holds for a number, looking at some samples at a time."""
    return any(holds(x[some]).any() for some in chunks(x, numpy.arange(len(x))))


def _gather(
    path: Path, arrays: _Arrays, name: str, counts: dict[str, int], *, several: bool = False
) -> NDArray[Any] | None:
    """Join one value per sample, or several, over the parts, by the suffixes of names; None where one has none."""
    wanted = {f"{name}{suffix}": count for suffix, count in counts.items()}
    if not all(key in arrays for key in wanted):
        return None
    for key, count in wanted.items():
        shape = arrays[key].shape
        if shape not in ((count,), (count, 1)) and not (several and len(shape) == 2 and shape[0] == count and shape[1]):
            raise DataError(f"{path}: {key} must hold one value for each of {count} samples, found {arrays[key].shape}")
    kinds = {"text" if arrays[key].dtype.kind in "US" else "numbers" for key in wanted}
    if len(kinds) > 1:
        raise DataError(f"{path}: {', '.join(wanted)} hold text and numbers; use one of the two")
    widths = {arrays[key].shape[1:] for key in wanted} - {(), (1,)}
    if len(widths) > 1 or (widths and any(arrays[key].shape[1:] not in widths for key in wanted)):
        raise DataError(f"{path}: {', '.join(wanted)} differ in their number of targets")
    return numpy.concatenate([arrays[key] if widths else arrays[key].ravel() for key in wanted])


def _gather_originals(path: Path, arrays: _Arrays, counts: dict[str, int]) -> NDArray[Any] | None:
    """Join the numbers of the originals over the parts, counted through; None where no part has any."""
    if not any(f"original{suffix}" in arrays for suffix in counts):
        return None
    joined, before = [], 0
    for suffix, count in counts.items():
        name = f"original{suffix}"
        numbers = _gather(path, {name: numpy.arange(count), **arrays}, "original", {suffix: count})
        assert numbers is not None
        if numbers.dtype.kind not in "iu" or not ((numbers >= 0) & (numbers < count)).all():
            raise DataError(f"{path}: {name} must hold whole numbers from 0 to {count - 1}, one per sample")
        joined.append(numbers.astype(numpy.int64) + before)
        before += count
    return numpy.concatenate(joined)


def _as_images(x: NDArray[Any]) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Move the channels of images to the first axis of a sample; bytes without channels get one."""
    if x.ndim == 3 and x.dtype == numpy.uint8:
        return x[:, numpy.newaxis], (f"samples of bytes {x.shape[1:]} taken as images of one channel",)
    if x.ndim == 4 and x.shape[3] in _CHANNELS and x.shape[1] not in _CHANNELS:
        moved = x.transpose(0, 3, 1, 2)
        note = f"channels of {x.shape[1:]} moved to the front"
        return moved if x.nbytes > LARGE_BYTES else numpy.ascontiguousarray(moved), (note,)
    return x, ()
