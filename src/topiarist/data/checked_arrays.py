"""Arrays kept in safetensors files with a checksum each: a damaged one is as if it were not there."""

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy import ascontiguousarray
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from topiarist.files import cannot_write, canonical_json, parse_json, write_atomically

_CHECKSUMS = "checksums"  # one entry for all: safetensors writes several in an order that changes from call to call
_DAMAGE = (SafetensorError, OSError, ValueError, KeyError, TypeError)


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays by name, whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path.parent, error) from error
    plain = {name: ascontiguousarray(array) for name, array in arrays.items()}
    checksums = canonical_json({name: _checksum(array) for name, array in plain.items()})
    write_atomically(path, save(plain, metadata={_CHECKSUMS: checksums}))


def read_array(path: Path, name: str) -> NDArray[Any] | None:
    """Return an array, None where the file does not hold it or it is damaged."""
    try:
        with safe_open(path, framework="numpy") as file:
            found: NDArray[Any] = file.get_tensor(name)
            return found if _checksums_in(file.metadata())[name] == _checksum(found) else None
    except _DAMAGE:
        return None


def names_in(path: Path) -> tuple[str, ...]:
    """Return the names of the arrays in a file, none where it is damaged."""
    try:
        with safe_open(path, framework="numpy") as file:
            return tuple(_checksums_in(file.metadata()))
    except _DAMAGE:
        return ()


def _checksums_in(metadata: dict[str, str] | None) -> dict[str, str]:
    """Return the checksum of each array; files of before have one entry per array."""
    known = metadata or {}
    found: Any = parse_json(known[_CHECKSUMS]) if _CHECKSUMS in known else known
    if not isinstance(found, dict):
        raise ValueError("checksums have no names")
    return found


def _checksum(array: NDArray[Any]) -> str:
    return f"{zlib.crc32(array.tobytes()):08x}"
