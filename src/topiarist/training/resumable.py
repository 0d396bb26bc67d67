"""Files that work is resumed from: tensors, a header of JSON and a digest of both; a damaged one is refused in a line.

Without the digest, a bit that changed in a weight would be trained on. Whoever changes a file on purpose can make its
digest anew: so what is read is checked too, and what does not go together is damage.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from topiarist.errors import ModelError, TopiaristError, first_line, is_out_of_memory
from topiarist.files import JsonObject, canonical_json, parse_json, write_atomically

DIGEST, FINGERPRINT = "digest", "fingerprint"
# What reading fails with where a file says something else than was written: other names, kinds, shapes, numbers.
DAMAGE = (SafetensorError, OSError, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


class Resumable(NamedTuple):
    """What a file holds."""

    header: JsonObject
    tensors: dict[str, Tensor]


def write_resumable(path: Path, key: str, header: JsonObject, tensors: Mapping[str, Tensor]) -> None:
    """Replace a file, as a whole; the header stands under a key."""
    copied = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    written: JsonObject = json.loads(json.dumps(header))  # lists in the place of tuples, as it will be read
    text = json.dumps({**written, DIGEST: digest_of(written, copied)})
    write_atomically(path, save(copied, {key: text}))


def read_resumable(path: Path, key: str, fingerprint: str | None = None) -> Resumable | None:
    """Return what a file holds; None where it is that of other work. Raise what is in DAMAGE where it is damaged."""
    with safe_open(path, "pt") as file:
        header = parse_json((file.metadata() or {}).get(key, "{}"))
        if fingerprint is not None and header.get(FINGERPRINT) != fingerprint:
            return None
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118  # not a dict
    if header.pop(DIGEST, None) != digest_of(header, tensors):
        raise ValueError("its digest is not that of what it holds")
    return Resumable(header, tensors)


@contextmanager
def refusing_damage(path: Path, *, remove: Path | None = None) -> Iterator[None]:
    """Turn what reading a damaged file raises into one line, which says what to remove: the file itself, or more."""
    try:
        yield
    except (*DAMAGE, TopiaristError) as error:
        if is_out_of_memory(error):
            raise
        raise ModelError(f"cannot read {path}: {_told(error)}; remove {remove or path} to start over") from error


def _told(error: Exception) -> str:
    """Return what is wrong in a line; of several complaints about a record, the first with its place."""
    if not isinstance(error, ValidationError):
        return first_line(error)
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def digest_of(header: JsonObject, tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of a header and of tensors with their names, types and shapes."""
    found = hashlib.sha256(canonical_json(header).encode())
    for name, tensor in sorted(tensors.items()):
        found.update(canonical_json([name, str(tensor.dtype), list(tensor.shape)]).encode())
        found.update(tensor.flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()
