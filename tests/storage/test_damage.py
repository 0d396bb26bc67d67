import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load as unpack
from safetensors.torch import save as pack
from torch import nn

from topiarist.data import Preprocessing
from topiarist.errors import ModelError
from topiarist.models import Card, attach, card_of, mlp
from topiarist.storage import load, read_card, serialise
from topiarist.storage.header import KEY, digest, parse_header
from topiarist.tasks import Classification


def network() -> nn.Module:
    model = mlp([3, 4, 2], "tanh", True)
    preprocessing = Preprocessing(scaling="minmax", input_shape=(3,), shift=(0.1, 2.0, -3.5), scale=(1.0, 2.0, 1e-3))
    known = Card(
        spec=card_of(model).spec, task=Classification(("no", "yes")), input_shape=(3,), preprocessing=preprocessing
    )
    attach(model, known)
    return model


def same(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    equal = all(a.dtype == b.dtype and torch.equal(a, b) for a, b in pairs)
    return equal and card_of(one) == card_of(other) and repr(one) == repr(other)


def refused(path: Path, content: bytes, match: str = "", into: nn.Module | None = None) -> None:
    path.write_bytes(content)
    with pytest.raises(ModelError, match=match) as caught:
        load(path, into=into)
    assert str(caught.value).startswith(f"cannot load {path}: ") and "\n" not in str(caught.value)


def test_every_truncation_is_found(tmp_path: Path) -> None:
    content = serialise(network())
    header = 8 + int.from_bytes(content[:8], "little")
    for length in [*range(0, header, 7), *range(header - 2, len(content))]:
        refused(tmp_path / "m.safetensors", content[:length], "it is empty" if not length else "not a whole")


def test_more_bytes_are_found(tmp_path: Path) -> None:
    refused(tmp_path / "m.safetensors", serialise(network()) + b"\0", "not a whole")


def test_a_header_of_a_terabyte_is_damage(tmp_path: Path) -> None:
    refused(tmp_path / "m.safetensors", (2**40).to_bytes(8, "little") + serialise(network())[8:], "not a whole")


@pytest.mark.slow
def test_every_flipped_byte_of_the_weights_is_found(tmp_path: Path) -> None:
    content = serialise(network())
    start = 8 + int.from_bytes(content[:8], "little")
    for place in range(start, len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        refused(tmp_path / "m.safetensors", bytes(flipped), "does not match its digest")


@pytest.mark.slow
@pytest.mark.parametrize("mask", [0x01, 0x04, 0x10, 0x80, 0xFF])
def test_no_flipped_byte_of_the_header_gives_another_network(tmp_path: Path, mask: int) -> None:
    content, path, original = serialise(network()), tmp_path / "m.safetensors", network()
    start = 8 + int.from_bytes(content[:8], "little")
    survived = 0
    for place in range(start):
        flipped = bytearray(content)
        flipped[place] ^= mask
        path.write_bytes(flipped)
        try:
            loaded = load(path)
        except ModelError as error:
            assert "\n" not in str(error)
        else:
            assert same(loaded, original)
            survived += 1
    assert survived <= 8  # the spaces after the header mean nothing


def rewritten(change: Callable[[dict[str, Any]], object], *, sign: bool) -> bytes:
    """Change the header of a file, with a digest that fits again or with the old one."""
    content = serialise(network())
    length = int.from_bytes(content[:8], "little")
    record = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][KEY])
    change(record)
    tensors = unpack(content)
    if sign:
        with suppress(ModelError):  # a header that cannot be read needs no digest
            record["digest"] = digest(parse_header(json.dumps(record)), tensors)
    packed: bytes = pack(tensors, metadata={KEY: json.dumps(record)})
    return packed


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.update(classes=["yes", "no"]),
        lambda record: record.update(input_shape=[4]),
        lambda record: record.update(library="0.0.9"),
        lambda record: record["spec"].update(activation="relu"),
        lambda record: record["preprocessing"].update(scaling="zscore"),
        lambda record: record["aliases"].update(extra="output.bias"),
        lambda record: record.update(digest="0" * 64),
    ],
)
def test_a_changed_header_is_found(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    refused(tmp_path / "m.safetensors", rewritten(change, sign=False), "does not match its digest")
    refused(tmp_path / "m.safetensors", rewritten(change, sign=False), "does not match its digest", into=network())


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda record: record.update(format=2, library="9.9", more={}), r"newer version of topiarist, 9\.9: upgrade"),
        (lambda record: record.update(format=0), "its header is of format 0, its tensors of 1"),
        (lambda record: record.update(format="1"), "format: Input should be a valid integer"),
        (lambda record: record.pop("spec"), "spec: Field required"),
        (lambda record: record.update(more=1), "more: Extra inputs are not permitted"),
        (lambda record: record.update(classes=[1, 2]), "classes.0: Input should be a valid string"),
        (lambda record: record.update(edits=[{"remove": 1}]), "the plan cannot be read"),
        (lambda record: record.update(preprocessing={}), "its preprocessing cannot be read"),
        (lambda record: record.update(spec={"family": "tree"}), "no family of networks is called 'tree'"),
        (lambda record: record["spec"].update(sizes=["x", 2]), "its spec makes no network"),
        (lambda record: record["spec"].update(sizes=[10**9, 10**9]), "its spec asks for a network of"),
        (lambda record: record["spec"].update(sizes=[3, 5, 2]), r"'hidden0.weight' is \(5, 3\)"),
        (lambda record: record["aliases"].update(extra="output.bias"), "the file holds 'extra'"),
        (lambda record: record["aliases"].update({"output.weight": "output.bias"}), r"'output.weight' is \(2, 4\)"),
    ],
)
def test_a_header_made_up_by_someone_is_one_line(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], match: str
) -> None:
    refused(tmp_path / "m.safetensors", rewritten(change, sign=True), match)


@pytest.mark.parametrize("text", ["", "{", "null", "[]", "1", "[" * 100_000, '{"format": 1' + "0" * 5000 + "}", "\0"])
def test_a_header_that_is_no_record_is_one_line(text: str) -> None:
    with pytest.raises(ModelError):
        parse_header(text)


def test_what_is_no_model_file_is_named(tmp_path: Path) -> None:
    torch.save(network().state_dict(), tmp_path / "zip.pt")
    torch.save(network().state_dict(), tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    for name in ["zip.pt", "old.pt"]:
        refused(tmp_path / name, (tmp_path / name).read_bytes(), "a pickle .* never read")
    refused(tmp_path / "text.safetensors", b"weights: none\n" * 9, "not a whole .safetensors file")
    with pytest.raises(ModelError, match="there is no such file"):
        load(tmp_path / "absent.safetensors")
    with pytest.raises(ModelError, match="it is a folder"):
        load(tmp_path)
    for path in [tmp_path, tmp_path / "absent", tmp_path / "zip.pt"]:
        with pytest.raises(ModelError):
            read_card(path)
