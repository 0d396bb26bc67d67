"""Changes inside files of tensors: a header of JSON or a tensor; digests and checksums are made anew."""

import json
import random  # noqa: TID251  # generators that are given, no global state
import struct
import zlib
from contextlib import suppress
from typing import Any

from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, frombuffer, uint8

from benchmarks.fuzzing.mutating import mutated
from benchmarks.fuzzing.trees import changed, deep
from topiarist.methods.surgeon import checkpoint as surgeon
from topiarist.rightsizing import stages
from topiarist.storage.codes import deflated, inflated
from topiarist.storage.header import KEY, parse_header, sign
from topiarist.storage.packed import LARGEST_HEADER, LENGTH_BYTES, PACKED, parse_packed_header
from topiarist.training import checkpoint as training
from topiarist.training.resumable import DIGEST, FINGERPRINT, digest_of

OF_TENSORS, TOO_DEEP, OF_STREAMS = 0.2, 0.01, 0.3  # shares of the changes
CHECKSUMS = "checksums"
RESUMED = (training.KEY, surgeon.KEY, stages.KEY)
Tensors = dict[str, Tensor]


def changed_tensors(content: bytes, draw: random.Random) -> bytes:
    """Return a file of tensors with one of them changed, or its header."""
    length = struct.unpack("<Q", content[:8])[0]
    texts: dict[str, str] = json.loads(content[8 : 8 + length]).get("__metadata__", {})
    tensors = load_tensors(content)
    if PACKED in tensors:
        return _packed(texts[KEY], tensors[PACKED].numpy().tobytes(), draw)
    if draw.random() < OF_TENSORS:
        _change_tensor(tensors, draw)
    elif texts:
        name = draw.choice(list(texts))
        texts[name] = _changed_text(texts[name], draw)
    return save_tensors(tensors, {name: _guarded(name, text, tensors) for name, text in texts.items()} or None)


def _change_tensor(tensors: Tensors, draw: random.Random) -> None:
    """Change a tensor, or lose it."""
    name = draw.choice(list(tensors))
    tensor = tensors.pop(name)
    forms = [tensor.reshape(-1)[:1], tensor.double(), tensor * float("inf"), tensor.flatten(), tensor.int(), -tensor]
    match draw.randrange(len(forms) + 2):
        case 0:
            pass
        case 1:
            tensors[f"{name}_"] = tensor
        case number:
            tensors[name] = forms[number - 2].contiguous().clone()


def _changed_text(text: str, draw: random.Random) -> str:
    """Change JSON, but seldom what says whose it is; other text, anywhere."""
    try:
        before = json.loads(text)
    except ValueError:
        return draw.choice(["", text[:-1], text + text, "{}", "null"])
    if draw.random() < TOO_DEEP:
        return deep(draw)
    after = changed(before, draw)
    if isinstance(before, dict) and isinstance(after, dict) and FINGERPRINT in before:
        after[FINGERPRINT] = before[FINGERPRINT]  # a checkpoint of another training is not read at all
    return json.dumps(after)


def _guarded(name: str, text: str, tensors: Tensors) -> str:
    """Return a header with the digest or the checksums of what it stands with; as it is where it is no header."""
    with suppress(Exception):
        if name == KEY:
            return sign(parse_header(text), tensors).to_text()
        if name in RESUMED:
            header = json.loads(text)
            header.pop(DIGEST, None)
            return json.dumps({**header, DIGEST: digest_of(header, tensors)})
        if name == CHECKSUMS:
            return json.dumps({key: _checksum(tensors[key]) for key in json.loads(text)})
    return text


def _checksum(tensor: Any) -> str:
    return f"{zlib.crc32(tensor.numpy().tobytes()):08x}"


def _packed(text: str, row: bytes, draw: random.Random) -> bytes:
    """Change the deflated header of a packed file, or its streams, and sign it anew."""
    length = int.from_bytes(row[:LENGTH_BYTES], "little")
    header, streams = row[LENGTH_BYTES : LENGTH_BYTES + length], row[LENGTH_BYTES + length :]
    if draw.random() < 0.3:
        streams = mutated(streams, draw, other=streams)
    else:
        record = (
            json.dumps(changed(json.loads(inflated(header, LARGEST_HEADER)), draw))
            if draw.random() < 0.99
            else deep(draw)
        )
        header = deflated(record.encode())
    whole = len(header).to_bytes(LENGTH_BYTES, "little") + header + streams
    tensor = frombuffer(bytearray(whole), dtype=uint8)
    with suppress(Exception):  # where it is no header any more, it is written as it is
        text = sign(parse_packed_header(text, tensor), {PACKED: tensor}).to_text()
    return save_tensors({PACKED: tensor}, {KEY: text})
