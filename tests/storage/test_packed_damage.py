"""Packed files that are damaged, or made up by someone: one line, and no memory for what they claim."""

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load as unpack
from safetensors.torch import save as pack
from torch import Tensor

from tests.storage.test_damage import network, refused, same
from topiarist.errors import ModelError
from topiarist.models import mlp
from topiarist.storage import Packing, load, read_card, serialise
from topiarist.storage.codes import deflated
from topiarist.storage.header import KEY, sign
from topiarist.storage.packed import LENGTH_BYTES, PACKED, PackedHeader, parse_packed_header, streams_start

Change = Callable[[dict[str, Any]], object]


def content(bits: int = 8) -> bytes:
    model = network()
    for parameter in model.parameters():
        parameter.data.view(-1)[::2] = 0
    return serialise(model, packing=Packing.model_validate({"bits": bits}))


def opened(data: bytes) -> tuple[str, Tensor]:
    start = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:start])["__metadata__"][KEY], unpack(data)[PACKED]


def written(header: PackedHeader, packed: bytes) -> bytes:
    tensors = {PACKED: torch.frombuffer(bytearray(packed), dtype=torch.uint8)}
    signed: bytes = pack(tensors, metadata={KEY: sign(header, tensors).to_text()})
    return signed


def forged(change: Change, data: bytes | None = None) -> bytes:
    """Change the index of a file and sign it again."""
    text, packed = opened(content() if data is None else data)
    streams = packed[streams_start(packed) :].numpy().tobytes()
    header = parse_packed_header(text, packed)
    record = header.model_dump(mode="json")
    record["streams"] = streams
    change(record)
    streams = record.pop("streams")
    changed = PackedHeader.model_validate_json(json.dumps(record))
    return written(changed, changed.to_bytes() + streams)


def entry(number: int, place: int, value: object) -> Change:
    """Change a part of an entry: name, type, stored type, shape, mask."""
    return lambda record: record["tensors"][number].__setitem__(place, value)


def test_every_truncation_is_found(tmp_path: Path) -> None:
    data = content()
    for length in range(0, len(data), 5):
        refused(tmp_path / "m.safetensors", data[:length], "it is empty" if not length else "not a whole")


@pytest.mark.slow
@pytest.mark.parametrize("mask", [0x01, 0x10, 0x80, 0xFF])
def test_no_flipped_byte_gives_another_network(tmp_path: Path, mask: int) -> None:
    data, path = content(), tmp_path / "m.safetensors"
    path.write_bytes(data)
    original, survived = load(path), 0
    for place in range(len(data)):
        flipped = bytearray(data)
        flipped[place] ^= mask
        path.write_bytes(flipped)
        try:
            loaded = load(path)
        except ModelError as error:
            assert str(error).startswith(f"cannot load {path}: ") and "\n" not in str(error)
        else:
            assert same(loaded, original)
            survived += 1
    assert survived <= 8  # the spaces after the header mean nothing


HOSTILE: dict[str, tuple[Change, str]] = {
    "a huge shape": (entry(0, 3, [10**12, 10**12]), r"'hidden0\.weight' is \(4, 3\) in the module, \(1000000000000, "),
    "another name": (entry(0, 0, "more"), "the file holds 'more', which the module does not have"),
    "a name twice": (lambda record: record["tensors"].append(record["tensors"][0]), "two tensors of one name"),
    "a tensor too few": (lambda record: record["tensors"].pop(), "the file is damaged"),
    "another type": (entry(0, 1, "int64"), "of int64 is stored as int8"),
    "scales without channels": (entry(1, 2, "int8"), r"'hidden0\.bias' of float32 is stored as int8"),
    "a wider type": (entry(0, 2, "complex64"), "of float32 is stored as complex64"),
    "more than all are kept": (entry(0, 4, [0, 10**12]), "keeps 1000000000000 of 12 weights"),
    "fewer are kept": (entry(0, 4, [0, 1]), "a mask"),
    "an unknown mask": (entry(0, 4, [99, 1]), "no mask of kind 99"),
    "no mask": (entry(0, 4, None), "streams"),
    "huge streams": (lambda record: record.update(sizes=[10**12 for _ in record["sizes"]]), "streams"),
    "no streams": (lambda record: record.update(sizes=[]), "streams"),
    "more bytes": (lambda record: record.update(streams=record["streams"] + b"\0"), "streams"),
    "other bytes": (lambda record: record.update(streams=b"\xff" * len(record["streams"])), "the file is damaged"),
    "an alias of nothing": (lambda record: record["aliases"].update(extra="output.bias"), "the file holds 'extra'"),
    "another spec": (lambda record: record["spec"].update(sizes=[3, 5, 2]), r"'hidden0\.weight' is \(5, 3\)"),
    "an enormous spec": (lambda record: record["spec"].update(sizes=[10**9, 10**9]), "its spec asks for a network of"),
    "a later format": (lambda record: record.update(format=3), "written by a newer version"),
    "an earlier format": (lambda record: record.update(format=1), "its header is of format 1, its tensors of 2"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_someone_made_up_is_one_line(tmp_path: Path, what: str) -> None:
    change, match = HOSTILE[what]
    refused(tmp_path / "m.safetensors", forged(change), match)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "match"),
    [
        (b" " * 2**25, "not as long as they should be"),
        (b"[" * 2**23, "its header cannot be read"),
        (b"{}", "spec: Field required"),
        (b'{"tensors": [["a", "nonsense", "int8", [1], null]]}', "cannot be read"),
        (b"\xff", "its header cannot be read"),
        (b"", "its header cannot be read"),
    ],
)
def test_a_header_made_up_by_someone_is_one_line(tmp_path: Path, text: bytes, match: str) -> None:
    header, inner = parse_packed_header(*opened(content())), deflated(text)
    path = tmp_path / "m.safetensors"
    refused(path, written(header, len(inner).to_bytes(LENGTH_BYTES, "little") + inner), match)
    with pytest.raises(ModelError, match=match):
        read_card(path)


@pytest.mark.parametrize("tensor", [torch.zeros(8), torch.tensor(7, dtype=torch.uint8), torch.zeros(0).byte()])
def test_a_tensor_that_is_no_row_of_bytes_is_one_line(tmp_path: Path, tensor: Tensor) -> None:
    text, _ = opened(content())
    refused(tmp_path / "m.safetensors", pack({PACKED: tensor}, metadata={KEY: text}), "the file is damaged")


@pytest.mark.slow
def test_a_bomb_takes_no_memory(tmp_path: Path) -> None:
    bomb = deflated(bytes(2**26))

    def plant(record: dict[str, Any]) -> None:
        record.update(streams=record["streams"][: -record["sizes"][-1]] + bomb)
        record["sizes"][-1] = len(bomb)

    data = forged(plant)
    tracemalloc.start()
    try:
        refused(tmp_path / "m.safetensors", data, "not as long as they should be")
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_signed_nonsense_is_one_line_or_a_network(tmp_path: Path, data: st.DataObject) -> None:
    numbers = st.integers(-2, 40) | st.sampled_from([2**31, 2**62, 2**63 - 1])

    def change(record: dict[str, Any]) -> None:
        found = data.draw(st.sampled_from(record["tensors"]))
        kinds = st.sampled_from(["int8", "float16", "float32", "float64", "bool"])
        place, value = data.draw(
            st.sampled_from([(1, kinds), (2, kinds), (4, st.none() | st.tuples(numbers, numbers))])
        )
        found[place] = data.draw(value)
        streams = bytearray(record["streams"])
        streams[data.draw(st.integers(0, len(streams) - 1))] = data.draw(st.integers(0, 255))
        record["streams"] = bytes(streams)

    path = tmp_path / "m.safetensors"
    try:
        path.write_bytes(forged(change))
    except ValueError:  # an index that cannot be written
        return
    into = mlp([3, 4, 2], "tanh", True)
    try:
        load(path, into=into)
    except ModelError as error:
        assert str(error).startswith(f"cannot load {path}: ") and "\n" not in str(error)
